"""Batches: bunches of samples, of about one length, side by side, so that attention stays small.

A bunch is samples in a row of the file that begin alike, such as requests under one list of
tools: what they share is computed once. Every row of a batch goes through the linear layers
as one matrix; attention runs on each bunch by itself, in blocks of rows that each end at the
last column they may see. Lengths are rounded up so that few matrix shapes occur: each new
one costs planning time on a CPU.
All randomness comes from (seed, epoch, sample), so a batch is the same whenever it is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mezzotint.adapt.objective import CLEAN, NONE, PAD, Objective, lay_out, together
from mezzotint.adapt.samples import Sample
from mezzotint.canvas import BoolArray, FloatArray, IntArray

STEP = 64  # clean rows are rounded up to a multiple of it
ALIKE = 16  # tokens that samples of a bunch share, at least
LARGEST = 8  # samples of a bunch, at most
BLOCK = 128  # query rows that attend together
_ARRAYS = ("tokens", "positions", "targets", "role", "group", "rate")


@dataclass(frozen=True, slots=True)
class Bunch:
    """Samples, by number, with the same first `shared` tokens, none of which is learnt.

    clean: clean rows of all of them.
    """

    members: tuple[int, ...]
    shared: int
    clean: int


def bunches(samples: Sequence[Sample]) -> list[Bunch]:
    """Neighbours of the same beginning, as far as `ALIKE` and `LARGEST` allow."""
    found: list[Bunch] = []
    for number, sample in enumerate(samples):
        last = found[-1] if found else Bunch((), 0, 0)
        shared = min(last.shared, _alike(samples[last.members[0]], sample)) if last.members else 0
        if shared < ALIKE or len(last.members) == LARGEST:
            found.append(Bunch((number,), _unlearnt(sample), len(sample)))
            continue
        saved = len(last.members) * shared - (len(last.members) - 1) * last.shared
        found[-1] = Bunch((*last.members, number), shared, last.clean + len(sample) - saved)
    return found


def _unlearnt(sample: Sample) -> int:
    """Leading rows whose next token is not learnt."""
    return int(sample.wanted.argmax()) - 1


def _alike(one: Sample, other: Sample) -> int:
    length = min(_unlearnt(one), _unlearnt(other))
    same = one.tokens[:length] == other.tokens[:length]
    return length if same.all() else int(same.argmin())


@dataclass(frozen=True, slots=True)
class Batch:
    """B bunches of S rows each, `clean` of them clean (padding included). Arrays are (B, S).

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
    some: Sequence[Bunch], windows: int, rows: int, seed: int, epoch: int
) -> list[list[Bunch]]:
    """The bunches batch by batch, each once, in an order drawn from (seed, epoch).

    A batch holds bunches of one rounded length and size, at most `rows` rows with `windows`
    for each sample.
    """
    rng = np.random.default_rng((seed, epoch))
    buckets: dict[tuple[int, int], list[Bunch]] = defaultdict(list)
    for i in rng.permutation(len(some)).tolist():
        buckets[round_up(some[i].clean), len(some[i].members)].append(some[i])
    out = []
    for (length, count), members in sorted(buckets.items()):
        size = max(rows // (length + count * windows), 1)
        out += [members[at : at + size] for at in range(0, len(members), size)]
    return [out[i] for i in rng.permutation(len(out))]


def make_batch(
    samples: Sequence[Sample], some: Sequence[Bunch], objective: Objective, seed: int, epoch: int
) -> Batch:
    """The batch of `some` bunches of `samples`, each masked as (seed, epoch, number) says."""
    clean = round_up(max(bunch.clean for bunch in some))
    windows = objective.window_rows * max(len(bunch.members) for bunch in some)
    layouts = []
    for bunch in some:
        each = [
            lay_out(samples[i], objective, np.random.default_rng((seed, epoch, i)))
            for i in bunch.members
        ]
        layouts.append(together(each, bunch.shared).padded(clean, windows))
    stacked = {name: np.stack([getattr(x, name) for x in layouts]) for name in _ARRAYS}
    return Batch(**stacked, visible=np.stack([x.visible() for x in layouts]), clean=clean)


def round_up(length: int) -> int:
    return -(-length // STEP) * STEP
