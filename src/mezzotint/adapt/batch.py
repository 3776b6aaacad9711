"""Batches: samples of about one length side by side, so that attention stays small.

Every row of a batch goes through the linear layers as one matrix; attention runs on each
sample by itself, in blocks of rows that each end at the last column they may see. Lengths
are rounded up so that few matrix shapes occur: each new one costs planning time on a CPU.
All randomness comes from (seed, epoch, sample), so a batch is the same whenever it is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mezzotint.adapt.objective import CLEAN, NONE, PAD, Objective, lay_out
from mezzotint.adapt.samples import Sample
from mezzotint.canvas import BoolArray, FloatArray, IntArray

STEP = 32  # clean rows are rounded up to a multiple of it
BLOCK = 128  # query rows that attend together
_ARRAYS = ("tokens", "positions", "targets", "role", "group", "rate")


@dataclass(frozen=True, slots=True)
class Batch:
    """B samples of S rows each, `clean` of them clean (padding included). Arrays are (B, S).

    visible: (B, S, S). rows: how many are no padding. role, group, rate: see Layout.
    """

    tokens: IntArray
    positions: IntArray
    targets: IntArray
    role: IntArray
    group: IntArray
    rate: FloatArray
    visible: BoolArray
    clean: int

    @property
    def rows(self) -> int:
        return int((self.role != PAD).sum())

    @property
    def clean_targets(self) -> BoolArray:
        """Of each target, in the order of the batch: is it a clean row's?"""
        return self.role[self.targets != NONE] == CLEAN  # type: ignore[no-any-return]

    @property
    def learnt(self) -> tuple[int, int]:
        """Targets of clean rows, and of window rows."""
        clean = self.clean_targets
        return int(clean.sum()), int((~clean).sum())

    def without_windows(self) -> Batch:
        """The clean rows alone: what the twin learns from the same samples."""
        c = self.clean
        kept = {name: getattr(self, name)[:, :c] for name in _ARRAYS}
        return replace(self, **kept, visible=self.visible[:, :c, :c])


def blocks(clean: int, rows: int) -> list[tuple[int, int, int]]:
    """(start, stop, end): query rows [start, stop) see no column from `end` on."""
    edges = [*range(0, clean, BLOCK), clean]
    pairs = [(a, b, b) for a, b in pairwise(edges)]
    return [*pairs, (clean, rows, rows)] if rows > clean else pairs


def epoch_batches(
    lengths: Sequence[int], windows: int, rows: int, seed: int, epoch: int
) -> list[list[int]]:
    """Sample numbers batch by batch, each sample once, in an order drawn from (seed, epoch).

    A batch holds samples of one rounded length, at most `rows` rows with `windows` for each.
    """
    rng = np.random.default_rng((seed, epoch))
    buckets: dict[int, list[int]] = defaultdict(list)
    for i in rng.permutation(len(lengths)).tolist():
        buckets[round_up(lengths[i])].append(i)
    out = []
    for length, members in sorted(buckets.items()):
        size = max(rows // (length + windows), 1)
        out += [members[at : at + size] for at in range(0, len(members), size)]
    return [out[i] for i in rng.permutation(len(out))]


def make_batch(
    samples: Sequence[Sample], members: Sequence[int], objective: Objective, seed: int, epoch: int
) -> Batch:
    """The batch of samples `members`, masked as (seed, epoch, member) says."""
    layouts = []
    clean = round_up(max(len(samples[i]) for i in members))
    for i in members:
        rng = np.random.default_rng((seed, epoch, i))
        rows = lay_out(samples[i], objective, rng)
        layouts.append(rows.padded(clean, objective.window_rows))
    stacked = {name: np.stack([getattr(x, name) for x in layouts]) for name in _ARRAYS}
    return Batch(**stacked, visible=np.stack([x.visible() for x in layouts]), clean=clean)


def round_up(length: int) -> int:
    return -(-length // STEP) * STEP
