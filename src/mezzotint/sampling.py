"""From logits to a token and the confidence in it, one row at a time.

Families differ in the order of their filters and in whether confidence is read before or
after them, and a threshold rule is sensitive to both; so each way is one small sampler.
It knows rows of logits and a seeded generator; not positions, canvases or policies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mezzotint import _core
from mezzotint.canvas import FloatArray, IntArray
from mezzotint.errors import UsageError

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Draw:
    """Tokens (n,) drawn and confidences (n,); `probs()` are the probabilities (n, V).

    Probabilities are computed only when asked for: at a vocabulary of 150,000 they cost
    as much as a forward pass of a small model.
    """

    tokens: IntArray
    confidence: Float64Array
    probs: Callable[[], Float64Array]


class Sampler(Protocol):
    """logits (n, V) float32, and the generator → a Draw of n tokens."""

    def __call__(self, logits: FloatArray, rng: np.random.Generator) -> Draw: ...


def softmax(logits: npt.ArrayLike) -> Float64Array:
    """Softmax over the last axis, in float64."""
    x = np.asarray(logits, np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]


def entropy(probs: Float64Array) -> Float64Array:
    """−Σ p·ln p of each row, in nats."""
    logs = np.log(probs, out=np.zeros_like(probs), where=probs > 0)
    return -(probs * logs).sum(axis=-1)  # type: ignore[no-any-return]


def top_p(logits: Float64Array, p: float) -> Float64Array:
    """Logits with −inf outside the smallest set of tokens whose probability exceeds p."""
    out = np.full_like(logits, -np.inf)
    for row, probs in enumerate(softmax(logits)):
        # tokens below this hold less than 1 − p together: they need not be sorted
        able = np.flatnonzero(probs >= (1.0 - p) / len(probs))
        order = able[np.argsort(-probs[able], kind="stable")]
        order = order[: int((np.cumsum(probs[order]) <= p).sum()) + 1]
        out[row, order] = logits[row, order]
    return out


def top_k(logits: Float64Array, k: int) -> Float64Array:
    """Logits with −inf below each row's k-th largest."""
    if k >= logits.shape[-1]:
        return logits
    floor = np.partition(logits, -k, axis=-1)[:, -k, None]
    return np.where(logits < floor, -np.inf, logits)


def greedy(logits: FloatArray, rng: np.random.Generator) -> Draw:
    """The argmax, and its softmax probability (float32 exponentials).

    In the core: at a vocabulary of 50,000, numpy's took a tenth of the time of an answer.
    """
    tokens, confidence = _core.top(np.ascontiguousarray(logits, np.float32))
    return Draw(tokens, confidence, partial(softmax, logits))


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(f"{name} is {value}; it lies in {low:g}…{high:g}")


@dataclass(frozen=True, slots=True)
class Filtered:
    """Filter, then draw from what is left; confidence is the filtered probability.

    order: "pk" is Dream's (temperature → top-p → top-k), "kp" Hugging Face's and SDAR's
    (temperature → top-k → top-p). Temperature 0 takes the argmax. `top_p` 1 and `top_k` 0
    filter nothing.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    order: str = "pk"

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0.0, float("inf"))
        _check("top_p", self.top_p, 0.0, 1.0)
        _check("top_k", self.top_k, 0, float("inf"))

    def __call__(self, logits: FloatArray, rng: np.random.Generator) -> Draw:
        if not self.temperature and self.top_p >= 1.0 and not self.top_k:
            return greedy(logits, rng)
        probs = self.probs(logits)
        tokens = draw(probs, rng) if self.temperature else logits.argmax(axis=-1).astype(np.int32)
        confidence = probs[np.arange(len(tokens)), tokens]
        return Draw(tokens, confidence, lambda: probs)

    def probs(self, logits: FloatArray) -> Float64Array:
        """The filtered probabilities (n, V)."""
        x = logits.astype(np.float64)
        if self.temperature:
            x = x / self.temperature
        for name in self.order:
            if name == "p" and self.top_p < 1.0:
                x = top_p(x, self.top_p)
            if name == "k" and self.top_k:
                x = top_k(x, self.top_k)
        return softmax(x)


GREEDY = Filtered()


@dataclass(frozen=True, slots=True)
class Gumbel:
    """LLaDA: argmax of exp(logits) / (−ln u)^T in float64; confidence of the un-noised softmax."""

    temperature: float = 0.0

    def __call__(self, logits: FloatArray, rng: np.random.Generator) -> Draw:
        if not self.temperature:
            return greedy(logits, rng)
        noise = -np.log(rng.random(logits.shape))
        # compared as logarithms, where exp(logits) cannot overflow
        tokens = (logits - self.temperature * np.log(noise)).argmax(axis=-1).astype(np.int32)
        probs = softmax(logits)
        return Draw(tokens, probs[np.arange(len(tokens)), tokens], lambda: probs)


def draw(probs: Float64Array, rng: np.random.Generator) -> IntArray:
    """One token a row from probabilities (n, V)."""
    edges = np.cumsum(probs, axis=-1)
    point = rng.random(len(probs)) * edges[:, -1] if len(probs) else np.empty(0)
    below = (edges <= point[:, None]).sum(axis=-1)
    return np.minimum(below, probs.shape[-1] - 1).astype(np.int32)  # type: ignore[no-any-return]
