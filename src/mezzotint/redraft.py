"""Write a text again with the old one as its draft: what stays the same costs few passes.

The old text's tokens stand as drafts, which a causal pass verifies: it accepts as many as the
model would have written itself, then writes its own token. Where the new text meets the old one
again, the rest of the old one is drafted again. Tokens that must stay are accepted whatever the
model says, in their order, and the text cannot end before them.

`Redraft` is a policy and a constraint of the one loop; it knows tokens, not text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mezzotint.backend import shared
from mezzotint.canvas import DRAFT, BoolArray, Canvas, Edit, FloatArray, IntArray
from mezzotint.family import Family
from mezzotint.policy import Scores, Verify
from mezzotint.policy.scores import Drafts

FIRST, MOST = 8, 64  # drafts laid at once: doubled while all of them are right
REACH = 48  # old tokens passed over at most to meet the new text again
FIRM = 4  # tokens after which a place where the texts meet is taken for granted
SLACK = 16  # tokens that may be written between two that stay, beside as many as there were


@dataclass
class Redraft:
    """old (n,): the old text's tokens. kept (n,): those that must stay. start: the canvas
    position of the text. Greedy; one object for one run.

    origin: of every token written, the place in `old` that it repeats, or −1.
    """

    family: Family
    old: Sequence[int]
    kept: BoolArray
    start: int
    origin: list[int] = field(default_factory=list)
    patience: ClassVar[int] = 0
    drafts: ClassVar[Drafts] = "causal"
    _base: int = 0  # old tokens before it are done with
    _at: int | None = 0  # the old token that is drafted next, if any
    _agreed: int = FIRM  # tokens written since the texts met there
    _last: list[int] = field(default_factory=list)  # tokens written, the last of them
    _laid: tuple[int, int, int] = (0, 0, 0)  # canvas position, place in old, count
    _size: int = FIRST
    _apart: int = 0  # tokens written since the texts last agreed
    _free: tuple[int, int] = (0, 0)  # since the last token that stays: written, place in old

    def canvas(self, prompt: Sequence[int], mask_id: int) -> Canvas:
        """The first canvas: the prompt, the first drafts, and room for what can be written."""
        runs = int(np.diff(self.kept.astype(np.int8)).clip(0).sum()) + 2
        room = 2 * len(self.old) + (SLACK + self.family.block + 2) * runs
        return Canvas.of([list(prompt), room], mask_id).apply(self._lay(self.start))

    def __call__(self, scores: Scores) -> Edit:
        edit = Verify()(scores)
        after = scores.canvas.apply(edit)
        position, _, count = self._laid
        whole = after.settled > position + count
        self._size = min(2 * self._size, MOST) if whole and count else FIRST
        written = after.tokens[self.start + len(self.origin) : after.settled]
        for token in written.tolist():
            self._follow(token)
        nothing = self._at is None or self._at >= len(self.old)
        if nothing or np.isin(written, self.family.stop_ids).any():
            self._laid = (after.settled, 0, 0)
            return edit
        return edit + Edit.remask(after.drafts) + self._lay(after.settled, len(after))

    def narrow(self, canvas: Canvas, targets: IntArray, logits: FloatArray) -> FloatArray:
        """What stays is the only choice where it stands; the text ends after all of it."""
        family = self.family
        logits[:, [t for t in (family.delete_id, family.mask_id) if t is not None]] = -np.inf
        position, place, count = self._laid
        last = np.flatnonzero(self.kept)[-1:].max(initial=-1)
        for row, target in enumerate(targets.tolist()):
            laid = count > 0 and target <= position + count
            at = place + target - position if laid else self._base
            if at <= last:
                logits[row, list(family.stop_ids)] = -np.inf
            if laid and at <= last and self.kept[at]:
                only = max(float(logits[row, self.old[at]]), 0.0)
                logits[row] = -np.inf
                logits[row, self.old[at]] = only
        return logits

    def check(self, canvas: Canvas, edit: Edit) -> Edit:
        return edit

    def _lay(self, position: int, stop: int | None = None) -> Edit:
        """Drafts of the old text from `_at` on, at `position`."""
        at = self._at or 0
        tokens = self.old[at : at + self._size]
        tokens = tokens if stop is None else tokens[: max(stop - position, 0)]
        self._laid = (position, at, len(tokens))
        return Edit.write(position + np.arange(len(tokens)), tokens, 0.0, DRAFT)

    def _follow(self, token: int) -> None:
        """Move along the old text by one token of the new one."""
        written, since = self._free
        self._free = written + 1, since
        self._last = [*self._last[1 - FIRM :], token]
        if self._at is not None and self._at < len(self.old) and self.old[self._at] == token:
            self._agree(self._at)
            return
        self.origin.append(-1)
        self._apart += 1
        self._agreed = 0
        limit = self._limit()
        self._at = self._meet(token, limit)
        if limit < len(self.old) and self._free[0] > limit - since + SLACK:
            self._at = limit

    def _agree(self, place: int) -> None:
        self.origin.append(place)
        self._at = place + 1
        self._agreed += 1
        if self.kept[place]:
            self._free = 0, self._at
        if self.kept[place] or self._agreed >= FIRM:
            self._base, self._apart = self._at, 0

    def _limit(self) -> int:
        """The next old token that must stay."""
        kept = np.flatnonzero(self.kept[self._base :])
        return self._base + int(kept[0]) if len(kept) else len(self.old)

    def _meet(self, token: int, limit: int) -> int | None:
        """Where the old text may go on after `token`: after the same token, where most of what
        is before is the same too; else, the first time, after the one that this one stands for.
        None: nowhere."""
        near = range(self._base, min(self._base + REACH, limit))
        if same := [place for place in near if self.old[place] == token]:
            return max(same, key=lambda place: (self._alike(place), -place)) + 1
        if self._apart == 1 and self._base + 1 < limit:
            return self._base + 1
        return None

    def _alike(self, place: int) -> int:
        """How many of the last tokens written end at this place of the old text, too."""
        before = self.old[max(place - FIRM + 1, 0) : place + 1]
        return shared(self._last[::-1], before[::-1])
