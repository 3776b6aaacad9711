"""THE loop. Caching, policies, constraints and verification are its arguments.

Progress is its law: every pass leaves fewer open positions than ever before (or as few, with
fewer holes among them), or spends the policy's patience, or the loop raises NoProgress; so
it always ends.
It knows nothing of families, text, or where logits come from.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mezzotint.backend import Session
from mezzotint.canvas import GIVEN, MASKED, WRITTEN, Canvas, Edit, FloatArray, IntArray
from mezzotint.errors import NoProgress
from mezzotint.plan import Plan, shadowed
from mezzotint.policy.scores import Policy, Scores

_MOST_STEPS = 1 << 14  # no schedule is longer


@dataclass(frozen=True, slots=True)
class Step:
    """One pass: the edit it made, the canvas after it, its rows, and how long it took."""

    edit: Edit
    canvas: Canvas
    rows: int
    seconds: float


class Constraint(Protocol):
    """What may be written: seen by the policy as logits, enforced on its edit."""

    def narrow(self, canvas: Canvas, targets: IntArray, logits: FloatArray) -> FloatArray:
        """The logits (n, V) of targets (n,), −inf where a token is not allowed."""
        ...

    def check(self, canvas: Canvas, edit: Edit) -> Edit:
        """The edit, without what is not allowed and with what is forced."""
        ...


def decode(
    session: Session,
    canvas: Canvas,
    plan: Plan,
    policy: Policy,
    *,
    constraint: Constraint | None = None,
    stop_ids: Sequence[int] = (),
    rng: np.random.Generator | None = None,
) -> Iterator[Step]:
    """Fill the canvas, one Step a pass; ends early at a stop id with nothing open before it.

    What `session` has cached must be this canvas's first rows, and stays so at every step,
    even if the caller stops or is interrupted (not so for an approximate plan).
    """
    run = _Run(canvas, rng or np.random.default_rng(0))
    while canvas.open:
        began = time.perf_counter()
        span = plan.span(canvas, session.length, run.enter(plan, canvas))
        span = shadowed(span, canvas) if policy.drafts == "shadow" else span
        if span.base < session.length:
            session.truncate(span.base)
        logits = session.score(span.rows, span.want)
        edit = run.decide(canvas, span.targets, logits, policy, constraint)
        canvas = cut_at_stop(canvas.apply(edit), stop_ids)
        if count := span.kept(canvas):
            session.keep(count)
        run.progress(canvas, policy.patience)
        yield Step(edit, canvas, len(span.rows.tokens), time.perf_counter() - began)


def cut_at_stop(canvas: Canvas, stop_ids: Sequence[int]) -> Canvas:
    """The canvas up to its first written stop id, if no open or later given position bars it."""
    given = np.flatnonzero(canvas.state == GIVEN)
    first = int(given[-1]) + 1 if len(given) else 0
    tail = slice(first, max(first, canvas.settled))
    stops = np.isin(canvas.tokens[tail], stop_ids) & (canvas.state[tail] == WRITTEN)
    return canvas.cut(first + int(stops.argmax()) + 1) if stops.any() else canvas


@dataclass(slots=True)
class _Run:
    """The counters of one run: of the block (turn, step, total) and of progress (idle)."""

    canvas: Canvas
    rng: np.random.Generator
    block: tuple[int, int] = (-1, -1)
    turn: int = 0
    step: int = 0
    total: int = 0
    idle: int = 0
    least: tuple[int, int] = field(init=False)
    memory: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.least = _undecided(self.canvas)

    def enter(self, plan: Plan, canvas: Canvas) -> bool:
        """Count a pass of the current block; True if its cached rows are due for a refresh."""
        block = plan.block(canvas)
        if block != self.block:
            self.block, self.turn, self.step = block, 0, 0
            self.total = int((canvas.state[slice(*block)] == MASKED).sum())
        else:
            self.turn += 1
        return self.turn == 0 or (plan.every > 0 and self.turn % plan.every == 0)

    def decide(
        self,
        canvas: Canvas,
        targets: IntArray,
        logits: FloatArray,
        policy: Policy,
        constraint: Constraint | None,
    ) -> Edit:
        """The policy's edit; steps at which it makes none cost no pass."""
        if 0 <= canvas.mask_id < logits.shape[1]:
            logits[:, canvas.mask_id] = -np.inf  # a hole is not filled with a hole
        if constraint:
            logits = constraint.narrow(canvas, targets, logits)
        for _ in range(_MOST_STEPS):
            scores = Scores(canvas, targets, logits, self.step, self.total, self.idle,
                            self.rng, self.memory)  # fmt: skip
            edit = policy(scores)
            self.step += 1
            if len(edit):
                break
        return constraint.check(canvas, edit) if constraint else edit

    def progress(self, canvas: Canvas, patience: int) -> None:
        left = _undecided(canvas)
        self.idle = 0 if left < self.least else self.idle + 1
        self.least = min(left, self.least)
        if self.idle > patience:
            raise NoProgress(
                f"no position was settled in {self.idle} passes, and {left[0]} are open",
                "this is a fault of the policy or the constraint, not of the prompt",
            )


def _undecided(canvas: Canvas) -> tuple[int, int]:
    """Open positions, and holes among them."""
    holes = len(canvas.masked)
    return holes + len(canvas.drafts), holes
