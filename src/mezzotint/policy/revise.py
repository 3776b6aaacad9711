"""Policies that take back what they wrote, within a budget so that the loop always ends.

What may still change is a draft on the canvas, so a block is not settled, and none of it
cached, until its policy settles it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mezzotint.canvas import DRAFT, GIVEN, MASKED, WRITTEN, Edit
from mezzotint.policy.scores import Drafts, Policy, Scores, best, chance
from mezzotint.policy.unmask import Dynamic, Guess, Rule, Threshold
from mezzotint.sampling import GREEDY, Float64Array, Sampler


@dataclass(frozen=True, slots=True)
class TokenEdit:
    """LLaDA2.1: fill holes by `Dynamic`, and overwrite drafts (token-to-token editing).

    A draft whose argmax differs with probability > edit becomes that token. The block
    settles when it has neither hole nor edit, or after `post` passes without holes.
    """

    threshold: float = 0.95
    edit: float = 0.9
    steps: int = 0
    post: int = 16
    sampler: Sampler = GREEDY
    drafts: ClassVar[Drafts] = "shown"

    @property
    def patience(self) -> int:
        return self.post

    def __call__(self, scores: Scores) -> Edit:
        holes, drafts = scores.of(MASKED), scores.of(DRAFT)
        held = scores.canvas.tokens[drafts.targets]
        argmax = drafts.logits.argmax(axis=-1).astype(np.int32)
        changes = (argmax != held) & (chance(drafts.logits, argmax) > self.edit)
        tokens = np.where(changes, argmax, held)
        if not len(holes.targets) and (not changes.any() or scores.idle >= self.post):
            return Edit.write(drafts.targets, held, chance(drafts.logits, held))
        at, new = drafts.targets[changes], tokens[changes]
        edits = Edit.write(at, new, chance(drafts.logits[changes], new), DRAFT)
        return fill(holes, self.sampler, Dynamic(self.threshold, self.steps), DRAFT) + edits


@dataclass(frozen=True, slots=True)
class Wino:
    """WINO: accept widely (confidence ≥ accept), re-mask drafts that a second look doubts.

    The second look is a shadow mask row at each draft's position, which sees all but that
    draft; a draft with probability < keep there is masked again, the worst first. Fewer are
    re-masked than the same pass accepts (the paper: than the last pass accepted), which
    makes every pass a gain. (Feng-Hong/WINO-DLLM.)
    """

    accept: float = 0.6
    keep: float = 0.9
    sampler: Sampler = GREEDY
    patience: ClassVar[int] = 0
    drafts: ClassVar[Drafts] = "shadow"

    def __call__(self, scores: Scores) -> Edit:
        holes, drafts = scores.of(MASKED), scores.of(DRAFT)
        filled = fill(holes, self.sampler, Threshold(self.accept), DRAFT)
        sure = chance(drafts.logits, scores.canvas.tokens[drafts.targets])
        doubts = int((sure < self.keep).sum())
        doubted = best(-sure, min(doubts, max(len(filled) - 1, 0)))
        if len(filled) < len(holes.targets) or len(doubted):
            return filled + Edit.remask(drafts.targets[doubted])
        return settle(scores, filled)


@dataclass(frozen=True, slots=True)
class P2:
    """Path planning (arXiv 2502.03540, self-planning): at each step the lowest-scored are masks.

    A hole's score is ln of its guess's probability; a draft's is eta · ln of its token's. After
    step k of K, total · (1 − k/K) positions are masks. `alg_temp` adds Gumbel noise to the
    scores. From the paper; no published implementation was compared.
    """

    steps: int = 0
    eta: float = 1.0
    alg_temp: float = 0.0
    sampler: Sampler = GREEDY
    drafts: ClassVar[Drafts] = "shown"

    @property
    def patience(self) -> int:
        return self.steps

    def __call__(self, scores: Scores) -> Edit:
        holes, drafts = scores.of(MASKED), scores.of(DRAFT)
        drawn = self.sampler(holes.logits, scores.rng)
        held = scores.canvas.tokens[drafts.targets]
        sure = chance(drafts.logits, held)
        at = np.concatenate((holes.targets, drafts.targets))
        tokens = np.concatenate((drawn.tokens, held))
        score = np.concatenate((_log(drawn.confidence), self.eta * _log(sure)))
        score += self.alg_temp * scores.rng.gumbel(size=score.shape) if self.alg_temp else 0.0
        steps = self.steps or scores.total
        masks = scores.total * max(steps - scores.step - 1, 0) // steps
        low = best(-score, masks)
        state = DRAFT if masks else WRITTEN
        filled = Edit.write(at, tokens, np.concatenate((drawn.confidence, sure)), state)
        return filled + Edit.remask(at[low])


@dataclass(frozen=True, slots=True)
class Resize:
    """DreamOn: a hole filled with `expand` becomes two holes, one with `delete` disappears.

    Expansion is forbidden while the canvas has `limit` positions that are not given, and
    after `budget` passes without progress.
    """

    inner: Policy
    expand: int
    delete: int | None
    limit: int
    budget: int = 64

    @property
    def drafts(self) -> Drafts:
        return self.inner.drafts

    @property
    def patience(self) -> int:
        return self.inner.patience + 2 * self.budget + 2  # to expand, and to fill what that made

    def __call__(self, scores: Scores) -> Edit:
        room = self.limit - int((scores.canvas.state != GIVEN).sum())
        if room <= 0 or scores.idle >= self.budget:
            logits = scores.logits.copy()
            logits[:, self.expand] = -np.inf
            scores = replace(scores, logits=logits)
        edit = self.inner(scores)
        grows = np.flatnonzero(edit.tokens == self.expand)
        grown = np.isin(np.arange(len(edit.tokens)), grows[: max(room, 0)])
        gone = edit.tokens == (-1 if self.delete is None else self.delete)
        stays = ~gone & (edit.tokens != self.expand)
        splice = [(int(p), 2) for p in edit.positions[grown]]
        splice += [(int(p), 0) for p in edit.positions[gone]]
        kept = (edit.positions[stays], edit.tokens[stays], edit.confidence[stays])
        return Edit(*kept, edit.states[stays], tuple(splice))


def fill(holes: Scores, sampler: Sampler, rule: Rule, state: int) -> Edit:
    """The holes that the rule chooses, written in `state`."""
    if not len(holes.targets):
        return Edit.write([], [], [])
    guess = Guess(sampler, holes.logits, holes.rng)
    chosen = rule(holes, guess)
    tokens, confidence = guess.draw.tokens[chosen], guess.confidence[chosen]
    return Edit.write(holes.targets[chosen], tokens, confidence, state)


def settle(scores: Scores, last: Edit) -> Edit:
    """Every draft among the targets, and `last`, as written."""
    at = scores.of(DRAFT).targets
    canvas = scores.canvas
    drafts = Edit.write(at, canvas.tokens[at], canvas.confidence[at])
    return drafts + replace(last, states=np.full_like(last.states, WRITTEN))


def _log(p: Float64Array) -> Float64Array:
    return np.log(np.maximum(p, 1e-300))
