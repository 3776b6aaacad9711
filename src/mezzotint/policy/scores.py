"""What a policy is given, and what it must be: Scores in, Edit out.

The law every policy obeys: it only fills, drafts or re-masks positions that are not given,
and a written token is masked before it is rewritten. It sees logits and the canvas; not the
session, the family or the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np

from mezzotint.canvas import Canvas, Edit, FloatArray, IntArray
from mezzotint.sampling import Float64Array

# How the drafts that a policy writes are scored in later passes: it writes none; by rows that
# see them like written text; by rows that see only what is before them, as an AR model would;
# or by mask rows that do not see them (WINO).
Drafts = Literal["none", "shown", "causal", "shadow"]


@dataclass(frozen=True, slots=True)
class Scores:
    """One pass as a policy sees it.

    targets (n,): the open positions scored, ascending; logits (n, V): row i predicts
        targets[i].
    step: schedule steps already spent on this block; total: holes it had at its first.
    idle: passes since the last one that made progress.
    memory: a policy's notes for the run, by position (the distributions of its drafts).
    """

    canvas: Canvas
    targets: IntArray
    logits: FloatArray
    step: int = 0
    total: int = 0
    idle: int = 0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    memory: dict[int, Float64Array] = field(default_factory=dict)

    def of(self, state: int) -> Scores:
        """The scores of the targets in that state (MASKED or DRAFT)."""
        rows = self.canvas.state[self.targets] == state
        if rows.all():
            return self
        return replace(self, targets=self.targets[rows], logits=self.logits[rows])


class Policy(Protocol):
    """Scores → the edit to make.

    An empty edit means "not at this step": the canvas is unchanged, so the loop asks again
    with the next step and the same scores. `patience` is how many passes in a row may make
    no progress before that is a bug; revising policies spend it.
    """

    @property
    def patience(self) -> int: ...

    @property
    def drafts(self) -> Drafts: ...

    def __call__(self, scores: Scores) -> Edit: ...


NOTHING = Edit.write([], [], [])


def best(values: Float64Array, count: int) -> IntArray:
    """Indices of the `count` largest values; of equal ones the earlier first."""
    return np.argsort(-values, kind="stable")[:count].astype(np.int32)


def chance(logits: FloatArray, tokens: IntArray) -> Float64Array:
    """Softmax probability (n,) of tokens[i] in row i."""
    x = logits.astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    picked = np.exp(x[np.arange(len(x)), tokens])
    return picked / np.exp(x).sum(axis=-1)  # type: ignore[no-any-return]
