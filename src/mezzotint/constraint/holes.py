"""The constraint of one run: each hole of the canvas keeps to its grammar.

A hole is written from left to right, as far as the policy is sure and the grammar agrees, and
at least one token a pass, so every settled text can be completed. What is forced is written
with no pass. A free text is one hole; where a skeleton is known, its fixed text is written
at once, all of its holes are filled in the same passes, and what a hole leaves over goes.

Rows are narrowed along the likeliest tokens: row i + 1 allows what may follow the likeliest
of row i (or the draft at i). So greedy drafts are legal, and greedy verification gives what
constrained AR decoding gives. Drawn drafts may be illegal; verification refuses them, for to
drop them sooner would bend the distribution. It knows canvases and logits, no policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mezzotint.canvas import DRAFT, WRITTEN, Canvas, Edit, FloatArray, IntArray
from mezzotint.constraint.grammar import Grammar
from mezzotint.constraint.vocabulary import Vocabulary
from mezzotint.constraint.walk import Walk
from mezzotint.errors import MezzotintError, UsageError

AHEAD = 32  # rows narrowed from a hole's front on; later ones wait


@dataclass(slots=True)
class _Hole:
    """Positions [start, stop), the first of them written with the walk's tokens.

    last: the text ends in this hole, by a stop token.
    """

    start: int
    stop: int
    walk: Walk
    last: bool = False

    @property
    def front(self) -> int:
        """The first position not written."""
        return self.start + len(self.walk.tokens)

    @property
    def open(self) -> bool:
        return self.front < self.stop and not self.walk.stopped


@dataclass(slots=True)
class _Changes:
    """An edit as it grows: position → token and confidence, and positions that go."""

    written: dict[int, tuple[int, float]] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)

    def edit(self) -> Edit:
        tokens, confidence = zip(*self.written.values(), strict=True) if self.written else ((), ())
        made = Edit.write(list(self.written), tokens, confidence)
        return replace(made, splice=tuple((position, 0) for position in self.gone))


class Holes:
    """A `decode.Constraint` for one run. `forced`: tokens written without a pass, so far."""

    def __init__(
        self, words: Vocabulary, grammar: Grammar, start: int, most: int, skeletons: bool = False
    ) -> None:
        """The text begins at position `start` and has at most `most` tokens.

        skeletons: lay one as soon as it is known (for a session that caches no row after an
        open position). Raises UsageError if no text of the grammar is known to fit.
        """
        self._words, self._grammar, self._skeletons = words, grammar, skeletons
        self._holes = [_Hole(start, start + most, Walk(words, grammar, most), True)]
        self._rows: dict[int, tuple[FloatArray, int]] = {}  # position → its row, its likeliest
        self.forced = 0

    def begin(self, canvas: Canvas) -> Canvas:
        """The canvas with what is forced before any pass."""
        changes = _Changes()
        self._advance(canvas, changes)
        return canvas.apply(changes.edit())

    def narrow(self, canvas: Canvas, targets: IntArray, logits: FloatArray) -> FloatArray:
        """See `decode.Constraint`. Rows out of reach become flat: no policy is sure of them."""
        index = {int(position): i for i, position in enumerate(targets)}
        self._rows = {}
        for hole in self._holes:
            self._narrow(hole, canvas, index, logits)
        logits[[i for position, i in index.items() if position not in self._rows]] = 0.0
        return logits

    def check(self, canvas: Canvas, edit: Edit) -> Edit:
        """See `decode.Constraint`."""
        entries = zip(edit.positions, edit.tokens, edit.confidence, edit.states, strict=True)
        wanted = {int(p): (int(t), float(c)) for p, t, c, state in entries if state == WRITTEN}
        changes = _Changes()
        for hole in self._holes:
            self._write(hole, len(canvas), wanted, changes)
        self._advance(canvas, changes)
        other = edit.states != WRITTEN  # drafts, and drafts masked again
        kept = (edit.positions[other], edit.tokens[other], edit.confidence[other])
        return Edit(*kept, edit.states[other]) + changes.edit()

    def finish(self, text: str) -> None:
        """Raises MezzotintError, with why, unless the text is whole and of the grammar."""
        if any(not hole.walk.stopped and hole.walk.ending for hole in self._holes):
            raise MezzotintError("the text ended before its grammar did")
        try:
            self._grammar.check(text)
        except ValueError as error:
            hint = "the constraint asks for what only shows when a text is whole; simplify it"
            raise MezzotintError(f"the text breaks its constraint: {error}", hint) from None

    def _narrow(
        self, hole: _Hole, canvas: Canvas, index: dict[int, int], logits: FloatArray
    ) -> None:
        """Narrow the hole's rows in order, as far as they were scored."""
        walk, length = hole.walk, len(hole.walk.tokens)
        if not hole.open:
            return
        for position in range(hole.front, min(hole.stop, hole.front + AHEAD)):
            if position not in index or walk.stopped:
                break
            row, before = logits[index[position]], len(walk.tokens)
            self._rows[position] = row, walk.narrow(row)
            if canvas.state[position] == DRAFT:
                walk.back(before)
                if not walk.push(int(canvas.tokens[position])):
                    break
        walk.back(length)

    def _write(
        self, hole: _Hole, length: int, wanted: dict[int, tuple[int, float]], changes: _Changes
    ) -> None:
        """What the policy wants from the front on; one token at least if its row was scored."""
        first = hole.front
        if not hole.open or first not in self._rows:
            return
        if first not in wanted:
            row, token = self._rows[first]
            wanted[first] = token, float(1.0 / np.exp(row - row[token]).sum())
        while hole.open and hole.front in wanted and hole.front in self._rows:
            position = hole.front
            token, confidence = wanted[position]
            if not hole.walk.push(token):
                if position > first:
                    return
                token, confidence = hole.walk.next, 1.0  # the room is used up: towards the end
                hole.walk.push(token)
            if hole.last or not hole.walk.stopped:
                changes.written[position] = token, confidence
            self._follow(hole, length, changes)

    def _advance(self, canvas: Canvas, changes: _Changes) -> None:
        """Write what is forced, and let go of what is left over."""
        for hole in self._holes:
            self._follow(hole, len(canvas), changes)
        moved = 0
        for hole in self._holes:
            end = hole.front if hole.walk.stopped and not hole.last else hole.stop
            changes.gone += range(end, hole.stop)
            hole.start, moved, hole.stop = hole.start - moved, moved + hole.stop - end, end - moved

    def _follow(self, hole: _Hole, length: int, changes: _Changes) -> None:
        """Write what is forced at the front: a skeleton, or the next tokens. Where the room ends
        before the canvas, a stop."""
        if self._skeletons and hole.last and hole.open and self._lay(hole, length, changes):
            return
        front, run = hole.front, hole.walk.follow() if hole.open else []
        if run and hole.walk.stopped and (not hole.last or front + len(run) > length):
            run.pop()
        self._force(front, run, changes)
        if hole.last and hole.front == hole.stop < length and not hole.walk.stopped:
            self._force(hole.stop, self._words.stop_ids[:1], changes)

    def _force(self, start: int, tokens: Sequence[int], changes: _Changes) -> int:
        """Write `tokens` with no pass; the position after them."""
        changes.written.update((start + i, (token, 1.0)) for i, token in enumerate(tokens))
        self.forced += len(tokens)
        return start + len(tokens)

    def _lay(self, rest: _Hole, length: int, changes: _Changes) -> bool:
        """Whether the rest became fixed text and holes, which needs them known and room."""
        text = self._words.text(rest.walk.tokens)
        parts = self._grammar.skeleton(text)
        if parts is None or sum(isinstance(part, Grammar) for part in parts) < 2:
            return False
        first, *others = parts
        parts = (str(first)[len(text) :], *others)
        fixed = [self._words.encode(part) if isinstance(part, str) else () for part in parts]
        free = rest.stop - rest.front - sum(map(len, fixed))
        try:
            walks = [Walk(self._words, p, free) for p in parts if isinstance(p, Grammar)]
        except UsageError:
            return False
        spare = free - sum(len(walk.ending) for walk in walks)
        if spare < 0:
            return False
        at, rest.stop, self._holes = rest.front, rest.front, []
        for part, tokens in zip(parts, fixed, strict=True):
            at = self._force(at, tokens, changes)
            if isinstance(part, Grammar):
                walk = walks[len(self._holes)]
                least = len(walk.ending)
                walk.room = max(least, min(least + spare // len(walks), part.longest))
                self._holes.append(_Hole(at, at + walk.room, walk))
                at += walk.room
        at = self._force(at, self._words.stop_ids[:1] if at < length else (), changes)
        changes.gone += range(at, length)
        for hole in self._holes:
            self._follow(hole, length, changes)
        return True
