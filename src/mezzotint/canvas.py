"""The canvas: one sequence of token ids that knows what each position is.

A position is *given* (never changes), *masked* (a hole), a *draft* (a token proposed
but not yet verified) or *written* (decided, with its confidence). What a position is
lives in `state`, never in the token id, so a literal mask token in a prompt is given
text and not a hole. A canvas is immutable: `apply` returns a new one, which makes
history, branching and undo free. It knows nothing of models, policies or text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from mezzotint.errors import UsageError

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
StateArray = npt.NDArray[np.uint8]

GIVEN, MASKED, DRAFT, WRITTEN = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Edit:
    """What one pass changes: at `positions[i]`, put `tokens[i]` in `states[i]`.

    All arrays are (n,). A state of MASKED re-masks (its token is ignored). `splice`
    lists (position, count): that masked position becomes `count` masked positions
    (0 removes it, 2 splits it); it is carried out after the writes, and positions in
    it are counted before any splice (DreamOn's delete and expand).
    """

    positions: IntArray
    tokens: IntArray
    confidence: FloatArray
    states: StateArray
    splice: tuple[tuple[int, int], ...] = ()

    @classmethod
    def write(
        cls,
        positions: npt.ArrayLike,
        tokens: npt.ArrayLike,
        confidence: npt.ArrayLike,
        state: int = WRITTEN,
    ) -> Self:
        at = np.asarray(positions, np.int32)
        return cls(
            at,
            np.asarray(tokens, np.int32),
            np.broadcast_to(np.asarray(confidence, np.float32), at.shape).copy(),
            np.full(at.shape, state, np.uint8),
        )

    @classmethod
    def remask(cls, positions: npt.ArrayLike) -> Self:
        at = np.asarray(positions, np.int32)
        return cls.write(at, np.zeros_like(at), 0.0, MASKED)

    def __add__(self, other: Edit) -> Edit:
        """Both edits as one; where they name the same position, `other` wins."""
        pairs = ((self.positions, other.positions), (self.tokens, other.tokens))
        positions, tokens = (np.concatenate(p) for p in pairs)
        return Edit(
            positions,
            tokens,
            np.concatenate((self.confidence, other.confidence)),
            np.concatenate((self.states, other.states)),
            self.splice + other.splice,
        )

    def __len__(self) -> int:
        return len(self.positions) + len(self.splice)


@dataclass(frozen=True, slots=True)
class Canvas:
    """Token ids (L,), states (L,) and confidences (L,) of one sequence.

    `mask_id` is the token the model is shown at masked positions.
    """

    tokens: IntArray
    state: StateArray
    confidence: FloatArray = field(repr=False)
    mask_id: int

    def __post_init__(self) -> None:
        if not (self.tokens.shape == self.state.shape == self.confidence.shape):
            shapes = (self.tokens.shape, self.state.shape, self.confidence.shape)
            raise UsageError(f"canvas arrays must have one shape (L,), got {shapes}")
        for array in (self.tokens, self.state, self.confidence):
            array.setflags(write=False)

    @classmethod
    def of(cls, parts: Sequence[Sequence[int] | int], mask_id: int) -> Self:
        """A canvas from parts: a list of token ids is given text, an int n is n holes.

        >>> Canvas.of([[7, 8], 3, [9]], mask_id=0).masked.tolist()
        [2, 3, 4]
        """
        tokens: list[int] = []
        state: list[int] = []
        for part in parts:
            if isinstance(part, int):
                if part < 0:
                    raise UsageError(f"a hole has 0 or more positions, got {part}")
                tokens += [mask_id] * part
                state += [MASKED] * part
            else:
                tokens += part
                state += [GIVEN] * len(part)
        confidence = np.array([s == GIVEN for s in state], np.float32)
        return cls(np.array(tokens, np.int32), np.array(state, np.uint8), confidence, mask_id)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def masked(self) -> IntArray:
        """Positions of the holes, ascending."""
        return np.flatnonzero(self.state == MASKED).astype(np.int32)

    @property
    def drafts(self) -> IntArray:
        """Positions of drafts, ascending."""
        return np.flatnonzero(self.state == DRAFT).astype(np.int32)

    @property
    def open(self) -> bool:
        """True while a position is masked or only a draft."""
        return bool(((self.state == MASKED) | (self.state == DRAFT)).any())

    @property
    def settled(self) -> int:
        """Length of the longest prefix in which every position is given or written."""
        undecided = (self.state == MASKED) | (self.state == DRAFT)
        return int(undecided.argmax()) if undecided.any() else len(self)

    def apply(self, edit: Edit) -> Canvas:
        """The canvas after `edit`. Raises UsageError if it touches a given position."""
        at = edit.positions
        if len(at) and (at.min() < 0 or at.max() >= len(self)):
            raise UsageError(f"edit at {at.tolist()} outside the canvas of {len(self)}")
        if (self.state[at] == GIVEN).any():
            given = at[self.state[at] == GIVEN].tolist()
            raise UsageError(f"positions {given} are given and never change")
        tokens, state, confidence = self.tokens.copy(), self.state.copy(), self.confidence.copy()
        masks = edit.states == MASKED
        tokens[at] = np.where(masks, self.mask_id, edit.tokens)
        state[at] = edit.states
        confidence[at] = np.where(masks, 0.0, edit.confidence)
        canvas = Canvas(tokens, state, confidence, self.mask_id)
        return canvas._spliced(edit.splice) if edit.splice else canvas

    def _spliced(self, splice: tuple[tuple[int, int], ...]) -> Canvas:
        counts = np.ones(len(self), np.int64)
        for position, count in splice:
            if self.state[position] != MASKED:
                raise UsageError(f"only a masked position can be spliced, not {position}")
            counts[position] = count
        columns = (np.repeat(self.tokens, counts), np.repeat(self.state, counts))
        return Canvas(*columns, np.repeat(self.confidence, counts), self.mask_id)

    def cut(self, length: int) -> Canvas:
        """The first `length` positions (all, if it has fewer)."""
        parts = (self.tokens[:length], self.state[:length], self.confidence[:length])
        return Canvas(*parts, mask_id=self.mask_id)
