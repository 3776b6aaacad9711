"""The one seam between decoding and arithmetic: a Session runs passes over a KV cache.

Backends: `native` (the C++ core), `reference` (plain torch), `toy` (no weights). A
backend sees tokens, positions and visibility; it never sees a policy or a family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import numpy as np

from mezzotint.canvas import BoolArray, FloatArray, IntArray

Visible = Literal["causal", "full"] | BoolArray


@dataclass(frozen=True, slots=True)
class Pass:
    """The rows of one forward pass.

    tokens, positions: (M,) token ids and RoPE positions.
    visible: which rows of the pass a row sees: "causal" (itself and earlier rows),
        "full", or (M, M) booleans with visible[i, j] = row i sees row j. A row always
        sees itself, and every cached row that is not hidden.
    hide: cached rows [start, stop) that no row sees (they are being recomputed).
    """

    tokens: IntArray
    positions: IntArray
    visible: Visible = "causal"
    hide: tuple[int, int] = (0, 0)


class Session(Protocol):
    """A model's KV cache for one sequence.

    Law (batch invariance): a row's logits depend on its token, its position and the
    rows it sees, in their order; not on M, on rows it does not see, or on whether
    those it sees are cached or in the same pass. In `native` this holds to the bit.
    """

    @property
    def length(self) -> int:
        """Cached rows T; the next kept row has position T."""
        ...

    @property
    def vocab(self) -> int: ...

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        """Raw logits (W, V) of the rows whose indices are in `want`. T is unchanged.

        Only wanted rows reach the vocabulary projection.
        """
        ...

    def keep(self, count: int) -> None:
        """Append the KV of the first `count` rows of the last pass to the cache.

        Their positions must be T, T+1, …; raises UsageError if there was no such pass.
        """
        ...

    def truncate(self, length: int) -> None:
        """Forget cached rows from `length` on."""
        ...

    def fork(self) -> Self:
        """A session with the same cached rows, shared and not copied."""
        ...


def shared(one: Sequence[int] | IntArray, other: Sequence[int] | IntArray) -> int:
    """How many first tokens are the same: rows that a cache of the one holds for the other."""
    size = min(len(one), len(other))
    differ = np.flatnonzero(np.asarray(one[:size]) != np.asarray(other[:size]))
    return int(differ[0]) if len(differ) else size


def extend(
    session: Session,
    tokens: Sequence[int] | IntArray,
    visible: Visible = "causal",
    chunk: int = 512,
) -> FloatArray | None:
    """Prefill: append `tokens` to the cache; logits (V,) of the last one (None if empty).

    "causal" runs in chunks, so that Ctrl-C and memory stay bounded; other visibilities
    run as one pass.
    """
    ids = np.asarray(tokens, np.int32)
    step = chunk if isinstance(visible, str) and visible == "causal" else max(len(ids), 1)
    logits = None
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        last = start + len(part) == len(ids)
        at = np.arange(session.length, session.length + len(part), dtype=np.int32)
        want = np.array([len(part) - 1] if last else [], np.int32)
        rows = session.score(Pass(part, at, visible), want)
        session.keep(len(part))
        logits = rows[0] if last else None
    return logits
