"""How well tokens fit where they stand: their log probabilities by causal rows.

What was read before is not computed again, and several continuations of one beginning ride in
one pass. It knows tokens and sessions; not words, nor what to put where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mezzotint.backend import Pass, Session, extend, shared
from mezzotint.canvas import FloatArray, IntArray

CHUNK = 128  # scored rows of a pass: each brings a row of the whole vocabulary
TOP = 16  # likeliest tokens remembered for a position


@dataclass(frozen=True, slots=True)
class Reading:
    """Of tokens from `start` on: their log probabilities (n,) and the likeliest there (n, TOP)."""

    start: int
    logp: FloatArray
    top: IntArray

    def sum(self, start: int, stop: int) -> float:
        """Log probability of tokens [start, stop) given those before them."""
        return float(self.logp[start - self.start : stop - self.start].sum())


@dataclass(frozen=True, slots=True)
class Branch:
    """`tokens` after the first `at` tokens of a text."""

    at: int
    tokens: Sequence[int]


class Reader:
    """Reads texts through one session of a causal, shifted family; counts passes and rows.

    `tokens` are those whose rows it holds.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tokens: list[int] = []
        self.passes = self.rows = 0

    def fork(self, length: int) -> Reader:
        """A reader that holds the first `length` of these tokens already, and counts anew."""
        twin = Reader(self.session.fork())
        twin.tokens = self.tokens[:length]
        twin.session.truncate(len(twin.tokens))
        return twin

    def read(self, tokens: Sequence[int], start: int) -> Reading:
        """Score tokens[start:], start ≥ 1; the rows of all but the last token are then held."""
        base = min(shared(self.tokens, tokens), start - 1)
        self.session.truncate(base)
        if base < start - 1:
            extend(self.session, list(tokens[base : start - 1]))
            self._count(start - 1 - base)
        logp, top = [np.empty(0, np.float32)], [np.empty((0, TOP), np.int32)]
        for at in range(start - 1, len(tokens) - 1, CHUNK):
            chunk = np.array(tokens[at : min(at + CHUNK, len(tokens) - 1)], np.int32)
            own = np.arange(len(chunk), dtype=np.int32)
            logits = self.session.score(Pass(chunk, own + np.int32(at)), own)
            self.session.keep(len(chunk))
            self._count(len(chunk))
            logp.append(_logp(logits, np.array(tokens[at + 1 :][: len(chunk)])))
            top.append(_top(logits))
        self.tokens = list(tokens[:-1])
        return Reading(start, np.concatenate(logp), np.concatenate(top))

    def weigh(self, branches: Sequence[Branch]) -> list[float]:
        """Log probability of each branch after its first `at` ≥ 1 held tokens, all in one pass.

        Nothing that is held changes.
        """
        base = min(b.at for b in branches) - 1
        trunk = self.tokens[base : max(b.at for b in branches)]
        twin = self.session.fork()
        twin.truncate(base)
        rows, want, targets = _rows(base, trunk, branches)
        logits = twin.score(rows, want)
        self._count(len(rows.tokens))
        ends = np.cumsum([len(b.tokens) for b in branches])[:-1]
        return [float(part.sum()) for part in np.split(_logp(logits, targets), ends)]

    def _count(self, rows: int) -> None:
        self.passes += 1
        self.rows += rows


def _rows(
    base: int, trunk: Sequence[int], branches: Sequence[Branch]
) -> tuple[Pass, IntArray, IntArray]:
    """One pass over the trunk, which begins at `base`, and the branches; of each branch the
    rows that predict it, and its tokens. A branch sees the trunk before it and itself."""
    held = [list(b.tokens[:-1]) for b in branches]
    total = len(trunk) + sum(map(len, held))
    tokens = np.array([*trunk, *(t for part in held for t in part)], np.int32)
    positions = np.arange(base, base + total, dtype=np.int32)
    visible = np.tril(np.ones((total, total), np.bool_))
    want: list[int] = []
    begin = len(trunk)
    for branch, part in zip(branches, held, strict=True):
        rows = slice(begin, begin + len(part))
        positions[rows] = branch.at + np.arange(len(part))
        visible[rows, branch.at - base : begin] = False
        want += [branch.at - base - 1, *range(begin, begin + len(part))]
        begin += len(part)
    targets = [t for branch in branches for t in branch.tokens]
    return Pass(tokens, positions, visible), np.array(want, np.int32), np.array(targets, np.int32)


def _logp(logits: FloatArray, tokens: IntArray) -> FloatArray:
    """Log softmax (n,) of tokens[i] in row i."""
    top = logits.max(axis=-1)
    total = np.log(np.exp(logits - top[:, None]).sum(axis=-1))
    picked: FloatArray = logits[np.arange(len(logits)), tokens] - top - total
    return picked


def _top(logits: FloatArray) -> IntArray:
    """(n, TOP) likeliest tokens, the likeliest first."""
    some = np.argpartition(-logits, TOP, axis=-1)[:, :TOP]
    order = np.argsort(-np.take_along_axis(logits, some, -1), axis=-1, kind="stable")
    return np.take_along_axis(some, order, -1).astype(np.int32)
