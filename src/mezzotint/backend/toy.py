"""A deterministic session without weights, for tests, documentation and a first try.

It obeys the Session law as a two-layer attention model would: the value cached for a row
is a hash of the row and of all that it saw, and its logits hash the values of the rows it
sees, in order. So a row kept after a wrong pass changes the text, and "cached equals
uncached" is a real test. It knows nothing of language: its text is nonsense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from mezzotint.backend import Pass
from mezzotint.canvas import BoolArray, FloatArray, IntArray
from mezzotint.errors import UsageError
from mezzotint.family import Family, Regime

Hash = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: Hash) -> Hash:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class ToySession:
    """A Session over `vocab` tokens whose logits are hashes.

    bias (V,) is added to every row's logits. `logits`, if given, replaces the hash: a row
    at position p has logits(p), shape (V,), whatever it sees.
    """

    def __init__(
        self,
        vocab: int,
        seed: int = 0,
        bias: FloatArray | None = None,
        logits: Callable[[int], npt.ArrayLike] | None = None,
    ) -> None:
        self._vocab, self._seed, self._bias, self._fixed = vocab, seed, bias, logits
        self._inner = np.empty((2, 0), np.uint64)  # per cached row: its own hash, what it saw
        self._last: tuple[IntArray, Hash] | None = None

    @property
    def length(self) -> int:
        return self._inner.shape[1]

    @property
    def vocab(self) -> int:
        return self._vocab

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        sees = self._sees(rows)
        own = self._inner.shape[1] + np.arange(len(rows.tokens))
        word = rows.tokens.astype(np.uint64) << np.uint64(32)
        first = _mix((word | rows.positions.astype(np.uint64)) * _ODD + np.uint64(self._seed))
        second = _gather(np.concatenate((self._inner[0], first)), sees, own)
        final = _gather(np.concatenate((self._inner[1], second)), sees, own)
        self._last = rows.positions, np.stack((first, second))
        return self._logits(rows.positions[want], final[want])

    def _sees(self, rows: Pass) -> BoolArray:
        """(M, T + M): which cached and passing rows each row sees."""
        m = len(rows.tokens)
        cached = np.ones((m, self.length), np.bool_)
        cached[:, slice(*rows.hide)] = False
        if isinstance(rows.visible, str):
            within = np.ones((m, m), np.bool_)
            within = np.tril(within) if rows.visible == "causal" else within
        else:
            within = rows.visible | np.eye(m, dtype=np.bool_)
        return np.concatenate((cached, within), axis=1)

    def _logits(self, positions: IntArray, final: Hash) -> FloatArray:
        if self._fixed is not None:
            rows = [np.asarray(self._fixed(int(p)), np.float32) for p in positions]
            return np.array(rows, np.float32).reshape(len(rows), self._vocab)
        columns = np.arange(1, self._vocab + 1, dtype=np.uint64) * _ODD
        bits = _mix(final[:, None] + columns) >> np.uint64(11)
        uniform = (bits.astype(np.float64) + 0.5) / 2.0**53
        gumbel = -3.0 * np.log(-np.log(uniform))  # peaked enough for varied confidences
        return (gumbel if self._bias is None else gumbel + self._bias).astype(np.float32)

    def keep(self, count: int) -> None:
        positions, inner = self._last or (np.empty(0, np.int32), np.empty((2, 0), np.uint64))
        expected = np.arange(self.length, self.length + count)
        if not np.array_equal(positions[:count], expected):
            raise UsageError(f"cannot keep {count} rows at {positions[:count].tolist()}")
        self._inner = np.concatenate((self._inner, inner[:, :count]), axis=1)
        self._last = None

    def truncate(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise UsageError(f"length {length} outside 0…{self.length}")
        self._inner, self._last = self._inner[:, :length], None

    def fork(self) -> Self:
        twin = type(self)(self._vocab, self._seed, self._bias, self._fixed)
        twin._inner = self._inner
        return twin


def _gather(values: Hash, sees: BoolArray, own: npt.NDArray[np.int64]) -> Hash:
    """Per row, an order-sensitive hash of the `values` (T + M,) it sees and of its own."""
    rank = np.cumsum(sees, axis=1)
    power = np.cumprod(np.full(len(values) + 1, _ODD))
    seen = np.where(sees, _mix(values)[None, :] * power[rank], np.uint64(0))
    return _mix(seen.sum(axis=1, dtype=np.uint64) + values[own])


class ToyTokenizer:
    """Bytes of UTF-8 as token ids 0…255; ids from 256 on are special and print nothing."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(t for t in tokens if t < 256).decode(errors="replace")


MASK, STOP = 256, 257
FAMILIES = {
    family.name: family
    for family in (
        Family("toy", Regime.FULL, False, MASK, (STOP,), "threshold:0.9", block=32),
        Family("toy-ar", Regime.CAUSAL, True, None, (STOP,), "left_to_right"),
        Family("toy-dream", Regime.FULL, True, MASK, (STOP,), "entropy"),
        Family("toy-block", Regime.BLOCK_CAUSAL, False, MASK, (STOP,), "dynamic:0.9", block=4),
        Family("toy-shifted-block", Regime.BLOCK_CAUSAL, True, MASK, (STOP,), "threshold:0.9",
               block=8, sub_block=4),
        Family("toy-window", Regime.CAUSAL_WINDOW, True, MASK, (STOP,), "verify", block=8),
        Family("toy-masks", Regime.CAUSAL_MASKS, True, MASK, (STOP,), "verify", block=4),
        Family("toy-reordered", Regime.REORDERED, False, MASK, (STOP,), "wedlm", block=8),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToyModel:
    """A model for `generate` with no weights: bytes in, printable nonsense out."""

    family: Family = FAMILIES["toy"]
    seed: int = 0
    context: int = 4096
    tokenizer: ToyTokenizer = field(default_factory=ToyTokenizer)

    def session(self) -> ToySession:
        bias = np.full(STOP + 1, -100.0, np.float32)
        bias[32:127] = 0.0
        bias[STOP] = 0.0
        return ToySession(len(bias), self.seed, bias)


def load(name: str = "toy") -> ToyModel:
    """The toy model of that name. Raises UsageError if FAMILIES has none."""
    if name not in FAMILIES:
        raise UsageError(f"no toy model {name!r}", f"choose one of {', '.join(FAMILIES)}")
    return replace(ToyModel(), family=FAMILIES[name])
