"""Which rows the next pass computes, for each attention regime; a plan, not storage.

A plan is exact when every row sees what it would see were nothing cached: then the cache
changes the time and never the text. One pass holds the settled tokens not yet cached (kept
afterwards) and the masks that see them, so a finished block costs no pass of its own. The
`full` regime caches nothing exactly; its prefix and dual caches are approximate (arXiv
2505.22618). A plan sees the canvas and how much is cached; never logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from mezzotint.backend import Pass, Session, Visible, extend
from mezzotint.canvas import DRAFT, GIVEN, MASKED, BoolArray, Canvas, IntArray
from mezzotint.errors import UsageError

CHUNK = 512  # rows of one prefill pass, and so many at most ride in the first pass that decides


@dataclass(frozen=True, slots=True)
class Span:
    """One pass: its rows, and what they are for.

    want (n,): the rows whose logits are needed; targets (n,): the canvas positions they
        predict, those of masks ascending.
    base: cached rows the pass builds on; the session is cut to it first.
    keep: leading rows worth keeping, as far as the canvas settles on the tokens they hold;
        or unconditionally if `stale` (an approximate cache).
    """

    rows: Pass
    want: IntArray
    targets: IntArray
    base: int = 0
    keep: int = 0
    stale: bool = False

    def kept(self, after: Canvas) -> int:
        """How many leading rows to keep, given the canvas after the edit."""
        if self.stale:
            return self.keep
        at = self.rows.positions[: self.keep]
        at = at[at < after.settled]
        wrong = np.flatnonzero(after.tokens[at] != self.rows.tokens[: len(at)])
        return int(wrong[0]) if len(wrong) else len(at)


class Plan(Protocol):
    def block(self, canvas: Canvas) -> tuple[int, int]:
        """The positions [start, stop) being decoded now; schedules count within it."""
        ...

    def span(self, canvas: Canvas, cached: int, fresh: bool) -> Span:
        """The next pass. fresh: this is the first pass of a block, or a refresh is due."""
        ...

    def prefill(self, session: Session, canvas: Canvas, whole: bool = False) -> int:
        """Cache what is settled and needs no logits, in chunks; how many rows of it are left.

        Those ride in the first pass, which saves one. whole: none are left.
        """
        ...

    @property
    def every(self) -> int:
        """Passes between refreshes of an approximate cache, 0 = only at a block's start."""
        ...


@dataclass(frozen=True, slots=True)
class Frontier:
    """Settled text is causal, then comes a window of `masks` positions (0: plain AR).

    two_way: the window sees all of itself and the given text after it; else it is causal
    too (I-DLM). verifies: drafts stand before the window as causal rows, and every row's
    prediction is wanted, the last mask's too.
    """

    shift: bool
    masks: int
    two_way: bool = False
    verifies: bool = False
    every: ClassVar[int] = 0

    def block(self, canvas: Canvas) -> tuple[int, int]:
        return 0, len(canvas)

    def span(self, canvas: Canvas, cached: int, fresh: bool) -> Span:
        settled = canvas.settled
        if self.shift and not settled:
            hint = "put a token before it, such as the beginning-of-text token"
            raise UsageError("the first position is a hole, and nothing predicts it", hint)
        base = min(cached, settled - self.shift)
        causal = settled + (_run(canvas, settled, DRAFT) if self.verifies else 0)
        end = causal + _until_given(canvas, causal)
        stop = min(causal + self.masks, end)
        reach = min(stop + 1, end) if self.verifies or not self.masks else stop
        suffix = np.flatnonzero(canvas.state[end:] == GIVEN) + end
        if not self.two_way or stop == causal:
            suffix = suffix[:0]
        positions = np.concatenate((np.arange(base, stop), suffix)).astype(np.int32)
        visible: Visible = "causal"
        if self.two_way:
            visible = _window(causal - base, stop - base, len(positions))
        rows = Pass(canvas.tokens[positions], positions, visible)
        targets = _open(canvas, settled, reach)
        return Span(rows, targets - self.shift - base, targets, base, causal - base)

    def prefill(self, session: Session, canvas: Canvas, whole: bool = False) -> int:
        return _prefill_causal(session, canvas, canvas.settled - self.shift, whole)


@dataclass(frozen=True, slots=True)
class Reordered:
    """Decided tokens first and masks after, at their true positions, causal in that order."""

    masks: int
    every: ClassVar[int] = 0

    def block(self, canvas: Canvas) -> tuple[int, int]:
        return 0, len(canvas)

    def span(self, canvas: Canvas, cached: int, fresh: bool) -> Span:
        settled = canvas.settled
        base = min(cached, settled)
        later = np.arange(settled, len(canvas))
        decided = later[(canvas.state[later] != MASKED) & (canvas.state[later] != DRAFT)]
        window = _open(canvas, settled, min(settled + self.masks, len(canvas)))
        parts = (np.arange(base, settled), decided, window)
        positions = np.concatenate(parts).astype(np.int32)
        want = np.arange(len(positions) - len(window), len(positions), dtype=np.int32)
        rows = Pass(canvas.tokens[positions], positions)
        return Span(rows, want, window, base, settled - base)

    def prefill(self, session: Session, canvas: Canvas, whole: bool = False) -> int:
        return _prefill_causal(session, canvas, canvas.settled, whole)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of `size` aligned to position 0; a row sees its block and those before it.

    With shift, a block's first token comes from the last row of the finished block before
    it, in the pass that stores that block (Fast-dLLM v2). `sub` > 0 decodes a block's
    smaller blocks in order.
    """

    size: int
    shift: bool = False
    sub: int = 0
    every: ClassVar[int] = 0

    def block(self, canvas: Canvas) -> tuple[int, int]:
        first = canvas.settled
        start = self._start(first)
        if self._opens(first):
            return first, first + 1
        begin = start + (first - start) // self.sub * self.sub if self.sub else start
        return begin, min(begin + (self.sub or self.size), start + self.size, len(canvas))

    def span(self, canvas: Canvas, cached: int, fresh: bool) -> Span:
        first, start = canvas.settled, self._start(canvas.settled)
        if self._opens(first):
            base = min(self._start(cached), start - 1)
            rows = self._rows(canvas, base, start)
            last, target = np.array([start - 1 - base]), np.array([start])
            return Span(rows, last.astype(np.int32), target.astype(np.int32), base, start - base)
        base = min(self._start(cached), start)
        stop = min(start + self.size, len(canvas))
        targets = _open(canvas, *self.block(canvas))
        want = np.maximum(targets - self.shift, 0) - base
        clean = stop if not (canvas.state[start:stop] == MASKED).any() else start
        return Span(self._rows(canvas, base, stop), want, targets, base, clean - base)

    def prefill(self, session: Session, canvas: Canvas, whole: bool = False) -> int:
        until = self._start(canvas.settled)
        session.truncate(self._start(min(session.length, until)))
        step = max(CHUNK // self.size, 1) * self.size
        for at in range(session.length, until, step):
            rows = self._rows(canvas, at, min(at + step, until))
            extend(session, rows.tokens, rows.visible)
        return 0

    def _start(self, position: int) -> int:
        return position // self.size * self.size

    def _opens(self, first: int) -> bool:
        """True if the first open position is to be read from the block before it."""
        return self.shift and first > 0 and first % self.size == 0

    def _rows(self, canvas: Canvas, start: int, stop: int) -> Pass:
        positions = np.arange(start, stop, dtype=np.int32)
        number = positions // self.size
        one = len(positions) == 0 or number[0] == number[-1]
        visible: Visible = "full" if one else number[:, None] >= number[None, :]
        return Pass(canvas.tokens[start:stop], positions, visible)


@dataclass(frozen=True, slots=True)
class Full:
    """Every position sees every other; with `size`, blocks of it are decoded in order.

    cache: "none" computes the whole canvas each pass, and is exact. "prefix" computes the
    whole at a block's start, then the block and all after it over the cached prefix; "dual"
    then only the block, over the cached rest. `every` > 0 refreshes after so many passes.
    """

    shift: bool
    size: int = 0
    cache: str = "none"
    every: int = 0

    def block(self, canvas: Canvas) -> tuple[int, int]:
        first = int((canvas.state != GIVEN).argmax())
        size = self.size or len(canvas)
        start = first + (canvas.settled - first) // size * size
        return start, min(start + size, len(canvas))

    def span(self, canvas: Canvas, cached: int, fresh: bool) -> Span:
        start, stop = self.block(canvas)
        low, length = max(start - self.shift, 0), len(canvas)
        targets = _open(canvas, start, stop)
        rows = np.maximum(targets - self.shift, 0)  # aligned[0] = raw[0] (Dream)
        whole = fresh or cached != {"prefix": low, "dual": length}.get(self.cache)
        if whole:
            keep = {"none": 0, "prefix": low, "dual": length}[self.cache]
            return Span(_full(canvas, 0, length), rows, targets, 0, keep, self.cache == "dual")
        if self.cache == "prefix":
            return Span(_full(canvas, low, length), rows - low, targets, low)
        return Span(_full(canvas, low, stop, (low, stop)), rows - low, targets, length)

    def prefill(self, session: Session, canvas: Canvas, whole: bool = False) -> int:
        return 0  # a prompt row depends on the whole canvas


def shadowed(span: Span, canvas: Canvas) -> Span:
    """The span with each draft scored by a mask row at its place that does not see it (WINO).

    Other rows do not see these shadows, and they not each other. For unshifted models.
    """
    drafts = canvas.state[span.targets] == DRAFT
    own, at = span.want[drafts], span.targets[drafts]
    m, d = len(span.rows.tokens), len(own)
    visible = np.eye(m + d, dtype=np.bool_)
    visible[:m, :m] = _matrix(span.rows.visible, m)
    visible[m:, :m] = visible[own, :m]
    visible[np.arange(m, m + d), own] = False
    tokens = np.concatenate((span.rows.tokens, np.full(d, canvas.mask_id, np.int32)))
    rows = Pass(tokens, np.concatenate((span.rows.positions, at)), visible, span.rows.hide)
    want = np.concatenate((span.want[~drafts], np.arange(m, m + d, dtype=np.int32)))
    targets = np.concatenate((span.targets[~drafts], at))
    return Span(rows, want, targets, span.base, span.keep, span.stale)


def _matrix(visible: Visible, m: int) -> BoolArray:
    if not isinstance(visible, str):
        return visible
    ones = np.ones((m, m), np.bool_)
    return np.tril(ones) if visible == "causal" else ones


def _window(causal: int, stop: int, m: int) -> BoolArray:
    """(m, m): rows [causal, stop) see all; the others are causal and do not see them."""
    visible = np.tril(np.ones((m, m), np.bool_))
    visible[stop:, causal:stop] = False
    visible[causal:stop] = True
    return visible


def _full(canvas: Canvas, start: int, stop: int, hide: tuple[int, int] = (0, 0)) -> Pass:
    return Pass(canvas.tokens[start:stop], np.arange(start, stop, dtype=np.int32), "full", hide)


def _open(canvas: Canvas, start: int, stop: int) -> IntArray:
    """Masked and draft positions in [start, stop), ascending."""
    state = canvas.state[start:stop]
    return (np.flatnonzero((state == MASKED) | (state == DRAFT)) + start).astype(np.int32)


def _run(canvas: Canvas, start: int, state: int) -> int:
    """How many positions from `start` on are in that state."""
    other = canvas.state[start:] != state
    return int(other.argmax()) if other.any() else len(other)


def _until_given(canvas: Canvas, start: int) -> int:
    given = canvas.state[start:] == GIVEN
    return int(given.argmax()) if given.any() else len(given)


def _prefill_causal(session: Session, canvas: Canvas, until: int, whole: bool) -> int:
    stop = until if whole else until - CHUNK
    if session.length < stop:
        extend(session, canvas.tokens[session.length : stop], chunk=CHUNK)
    return max(until - session.length, 0)
