"""Draft and verify: the text an AR model would write, several tokens a pass.

Drafts are scored by causal rows, so row i holds the AR distribution p of draft i given the
drafts before it. What is accepted is what AR decoding of the same weights gives: at
temperature 0 the same text, otherwise the same distribution (Leviathan et al., arXiv
2211.17192). Mask rows of the same pass write the next drafts. Asked to be lenient, it keeps drafts
that AR finds nearly as likely, and masks only those again that it doubts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mezzotint.canvas import DRAFT, MASKED, WRITTEN, Edit
from mezzotint.policy.scores import Drafts, Scores
from mezzotint.sampling import GREEDY, Filtered, Float64Array, draw, greedy


@dataclass(frozen=True, slots=True)
class Verify:
    """Accept the longest good prefix of the drafts and one token more; then draft again.

    theta: drafts go on while the product of the draft rows' top probabilities stays ≥ theta.
        The rows' tops and not the drawn tokens decide where they end, for a choice that
        looked at the draw would bend the distribution.
    keep: below 1, a draft also stays if its probability is more than so much of the likeliest
        token's (drawn: it stays 1 / keep times as often). The text is then no longer AR's.
    """

    theta: float = 0.4
    sampler: Filtered = GREEDY
    keep: float = 1.0
    patience: ClassVar[int] = 0
    drafts: ClassVar[Drafts] = "causal"

    def __call__(self, scores: Scores) -> Edit:
        drafts = scores.of(DRAFT)
        held = scores.canvas.tokens[drafts.targets]
        tokens, confidence = self._accept(drafts, held)
        n, right = len(tokens), int((tokens == held[: len(tokens)]).sum())
        done = Edit.write(drafts.targets[:n], tokens, confidence)
        if right < len(held):
            return done + Edit.remask(drafts.targets[n:])
        return done + self._free(scores.of(MASKED))

    def _accept(self, drafts: Scores, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and their confidences: the accepted drafts, then the correction if any."""
        if not self.sampler.temperature:
            drawn, rows = greedy(drafts.logits, drafts.rng), np.arange(len(held))
            share = np.exp(drafts.logits[rows, held] - drafts.logits[rows, drawn.tokens])
            stays = (held == drawn.tokens) | (share > self.keep)
            n = len(held) if stays.all() else int(stays.argmin()) + 1
            tokens = np.where(stays, held, drawn.tokens)
            return tokens[:n], (drawn.confidence * np.where(stays, share, 1.0))[:n]
        tokens, confidence = held.copy(), np.zeros(len(held))
        probs = self.sampler.probs(drafts.logits) if len(held) else np.empty((0, 1))
        for i, (p, position) in enumerate(zip(probs, drafts.targets, strict=True)):
            q = drafts.memory.get(int(position))
            tokens[i] = accept(p, q, int(held[i]), drafts.rng, self.keep)
            confidence[i] = p[tokens[i]]
            if tokens[i] != held[i]:
                return tokens[: i + 1], confidence[: i + 1]
        return tokens, confidence

    def _free(self, holes: Scores) -> Edit:
        """The token that the last causal row gives, and the drafts of the mask rows."""
        if not len(holes.targets):
            return Edit.write([], [], [])
        drawn = self.sampler(holes.logits, holes.rng)
        top = drawn.probs().max(axis=-1) if self.sampler.temperature else drawn.confidence
        count = 1 + int((np.cumprod(top[1:]) >= self.theta).sum())
        holes.memory.clear()
        if self.sampler.temperature:
            probs = drawn.probs()
            holes.memory.update((int(holes.targets[i]), probs[i]) for i in range(1, count))
        edit = Edit.write(holes.targets[:count], drawn.tokens[:count], drawn.confidence[:count])
        edit.states[1:] = DRAFT
        edit.states[0] = WRITTEN
        return edit


def accept(
    p: Float64Array, q: Float64Array | None, token: int, rng: np.random.Generator, keep: float = 1.0
) -> int:
    """The draft `token` with probability min(1, p / (keep · q)), else a draw from max(0, p − q).

    p, q: (V,) distributions of the verifier and of the draft; q None means that the draft
    was not drawn at random (all of q lies on the token).
    """
    if q is None:
        q = np.zeros_like(p)
        q[token] = 1.0
    if rng.random() * keep * q[token] < p[token]:
        return token
    return int(draw(np.maximum(p - q, 0.0)[None], rng)[0])
