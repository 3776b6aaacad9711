"""Rules that choose which holes to fill. A filled hole is never touched again.

Each rule is a function of the confidences, written as its paper writes it, and returns
indices into `scores.targets` (all of them holes). `Unmask` turns a rule into a policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mezzotint.canvas import MASKED, Edit, FloatArray, IntArray
from mezzotint.policy.scores import NOTHING, Drafts, Scores, best
from mezzotint.sampling import Draw, Float64Array, Sampler, entropy, softmax
from mezzotint.schedule import even, reveal


class Guess:
    """Tokens drawn for the holes, and how sure they are; drawn when first looked at."""

    def __init__(self, sampler: Sampler, logits: FloatArray, rng: np.random.Generator) -> None:
        self._inputs = sampler, logits, rng

    @cached_property
    def draw(self) -> Draw:
        sampler, logits, rng = self._inputs
        return sampler(logits, rng)

    @property
    def confidence(self) -> Float64Array:
        return self.draw.confidence

    @cached_property
    def probs(self) -> Float64Array:
        return self.draw.probs()


Rule = Callable[[Scores, Guess], IntArray]


@dataclass(frozen=True, slots=True)
class Unmask:
    """Draw a token for every hole, fill those the rule chooses."""

    sampler: Sampler
    rule: Rule
    patience: ClassVar[int] = 0
    drafts: ClassVar[Drafts] = "none"

    def __call__(self, scores: Scores) -> Edit:
        holes = scores.of(MASKED)
        if not len(holes.targets):
            return NOTHING
        guess = Guess(self.sampler, holes.logits, scores.rng)
        chosen = self.rule(holes, guess)
        if not len(chosen):
            return NOTHING
        tokens, confidence = guess.draw.tokens, guess.confidence
        return Edit.write(holes.targets[chosen], tokens[chosen], confidence[chosen])


@dataclass(frozen=True, slots=True)
class Threshold:
    """Every hole with confidence ≥ τ (> τ if strict), and always the best (Fast-dLLM)."""

    threshold: float = 0.9
    strict: bool = False

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        c = guess.confidence
        sure = c > self.threshold if self.strict else c >= self.threshold
        sure[c.argmax()] = True
        return np.flatnonzero(sure).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Factor:
    """Surest first, the n-th while c_n ≥ 1 − f / (n + 1), the first always (Fast-dLLM)."""

    factor: float = 1.0

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        order = best(guess.confidence, len(scores.targets))
        n = np.arange(1, len(order) + 1)
        return _leading(order, guess.confidence[order] >= 1 - self.factor / (n + 1))


@dataclass(frozen=True, slots=True)
class EntropyBound:
    """Lowest entropy H first, while ΣH − max H ≤ γ (EB-Sampler, arXiv 2505.24857)."""

    bound: float = 0.1

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        h = entropy(guess.probs)
        order = best(-h, len(h))
        return _leading(order, np.cumsum(h[order]) - h[order] <= self.bound)


@dataclass(frozen=True, slots=True)
class Even:
    """The surest holes, as many as an even schedule says (LLaDA; SDAR static, sequential).

    steps: denoising steps per block, 0 = one hole a step. rank: confidence, random,
    position, margin or entropy.
    """

    rank: str = "confidence"
    steps: int = 0

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        count = quota(scores, self.steps)
        return best(_rank(self.rank, scores, guess), count) if count else _none()


@dataclass(frozen=True, slots=True)
class Dynamic:
    """All with confidence > τ if they reach the even schedule's count, else that many
    of the surest (SDAR low_confidence_dynamic; LLaDA2.0)."""

    threshold: float = 0.9
    steps: int = 0

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        sure = np.flatnonzero(guess.confidence > self.threshold).astype(np.int32)
        count = quota(scores, self.steps)
        return sure if len(sure) >= count else best(guess.confidence, count)


@dataclass(frozen=True, slots=True)
class Timed:
    """Dream's maskgit_plus, topk_margin and entropy: int(holes · (1 − s/t)) of the surest.

    Times t fall linearly from 1 to eps in `steps` and the last step fills all; steps = 0
    fills one a step. alg_temp > 0 draws positions from softmax(score / alg_temp) instead.
    """

    rank: str = "confidence"
    steps: int = 0
    eps: float = 1e-3
    alg_temp: float = 0.0

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        share = reveal(scores.step, self.steps, self.eps) if self.steps else 0.0
        count = int(len(scores.targets) * share) if self.steps else 1
        if not count:
            return _none()
        score = _rank(self.rank, scores, guess)
        if self.alg_temp:  # Gumbel top-k draws without replacement from the softmax
            score = score / self.alg_temp + scores.rng.gumbel(size=score.shape)
        return best(score, count)


@dataclass(frozen=True, slots=True)
class Origin:
    """Dream's origin: each hole is filled with probability 1 − s/t, at the last step all."""

    steps: int = 0
    eps: float = 1e-3

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        share = reveal(scores.step, self.steps or scores.total, self.eps)
        return np.flatnonzero(scores.rng.random(len(scores.targets)) < share).astype(np.int32)


@dataclass(frozen=True, slots=True)
class LeftToRight:
    """The first hole (AR order)."""

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        return np.zeros(1, np.int32)


@dataclass(frozen=True, slots=True)
class Leading:
    """The first holes while the product of their confidences is ≥ θ, the first always.

    What `Verify` drafts, written unverified: no hole is passed over, so the window's first
    row is the causal one that AR decoding has.
    """

    theta: float = 0.9

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        order = np.arange(len(scores.targets), dtype=np.int32)
        return _leading(order, np.append(1.0, np.cumprod(guess.confidence[1:])) >= self.theta)


@dataclass(frozen=True, slots=True)
class WeDLM:
    """Holes with H + `distance` · (places after the first hole) < bound, else the least.

    H is the entropy of the raw logits, before temperature and filters (WeDLM).
    """

    bound: float = 0.4
    distance: float = 0.02

    def __call__(self, scores: Scores, guess: Guess) -> IntArray:
        away = scores.targets - scores.targets[0]
        cost = entropy(softmax(scores.logits)) + self.distance * away
        near = np.flatnonzero(cost < self.bound).astype(np.int32)
        return near if len(near) else best(-cost, 1)


def quota(scores: Scores, steps: int) -> int:
    """Holes the even schedule fills at this step (one, if a constraint outlasted it)."""
    counts = even(scores.total, steps)
    return counts[scores.step] if scores.step < len(counts) else 1


def _rank(name: str, scores: Scores, guess: Guess) -> Float64Array:
    """Higher is filled sooner."""
    if name == "random":
        return scores.rng.random(len(scores.targets))
    if name == "position":
        return -scores.targets.astype(np.float64)
    if name == "margin":
        top = np.partition(guess.probs, -2, axis=-1)
        return top[:, -1] - top[:, -2]
    if name == "entropy":
        return (guess.probs * np.log(guess.probs + 1e-10)).sum(axis=-1)  # type: ignore[no-any-return]
    return guess.confidence


def _leading(order: IntArray, holds: np.ndarray) -> IntArray:
    """Of `order`, the first and those after it up to where `holds` first fails."""
    broken = np.flatnonzero(~holds[1:])
    return order[: broken[0] + 1] if len(broken) else order


def _none() -> IntArray:
    return np.empty(0, np.int32)
