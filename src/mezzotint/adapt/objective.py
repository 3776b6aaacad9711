"""The objective: how one sample becomes rows, and which token each row must predict.

One stream for each sample: its clean rows, which are causal and learn the next token, then
window rows at the clean tokens' positions, which learn what was masked. Logits are shifted
as in the base model: the row at position p predicts position p + 1. What a row sees is what
`mezzotint.plan.Frontier` shows it when the hybrid decodes; a test holds the two together.
Samples that begin alike can share those first rows, which changes no loss. It knows token
ids, not text, models or batches.

Sources: clean stream beside noisy blocks, BD3LM (arXiv 2503.09573); next-token plus masked
loss with a causal past, Set Block Decoding (arXiv 2509.04185) and TiDAR (arXiv 2511.08923);
complementary masks, Fast-dLLM v2 (arXiv 2509.26328); a filler that closes a hole, DreamOn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mezzotint.adapt.samples import Sample
from mezzotint.canvas import BoolArray, FloatArray, IntArray

CLEAN, WINDOW, SUFFIX, PAD = 0, 1, 2, 3
NONE = -1  # no target
GOLDEN = 0.6180339887  # steps of it spread points over (0, 1) evenly


@dataclass(frozen=True, slots=True)
class Objective:
    """What is masked, and how often.

    window_rows: rows for windows beside each sample. shortest, longest: of a window.
    full: share of windows wholly masked; the others have a mask rate from U(least, 1) and
        come with their complement. trailing: fillers learnt after the end of a text; more
        would be learnt before the end itself, and be written in its place.
    infill: share of windows that are holes with text after them: up to `suffix` tokens of
        it, and up to 2 · `trailing` fillers when the hole is longer than what it hides.
    """

    mask_id: int
    filler_id: int
    window_rows: int = 40
    shortest: int = 8
    longest: int = 32
    full: float = 0.6
    least: float = 0.15
    trailing: int = 2
    infill: float = 0.1
    suffix: int = 32


@dataclass(frozen=True, slots=True)
class Layout:
    """The rows of one sample, clean ones first. All arrays are (S,).

    targets: the token a row must predict, or NONE. role: CLEAN, WINDOW, SUFFIX or PAD.
    before: clean rows before this position are seen. branch: of which sample, counted from
    1; rows of branch 0 are those of all. group: rows of one window and its suffix. rate: the
    mask rate of a row's window (0 for a clean row).
    """

    tokens: IntArray
    positions: IntArray
    targets: IntArray
    role: IntArray
    before: IntArray
    branch: IntArray
    group: IntArray
    rate: FloatArray

    def __len__(self) -> int:
        return len(self.tokens)

    def visible(self) -> BoolArray:
        """(S, S): row i sees row j.

        Clean rows are causal; a window sees the clean past, all of itself and its suffix;
        a suffix sees the clean past and itself causally, never the window; all see themselves.
        No branch sees another.
        """
        at = np.arange(len(self))
        role, group = self.role[None, :], self.group
        mine = (self.branch[None, :] == 0) | (self.branch[:, None] == self.branch[None, :])
        past = mine & (role == CLEAN) & (self.positions[None, :] < self.before[:, None])
        own = (group[:, None] == group[None, :]) & (self.role != CLEAN)[:, None]
        window = (self.role == WINDOW)[:, None] & ((role == WINDOW) | (role == SUFFIX))
        suffix = (self.role == SUFFIX)[:, None] & (role == SUFFIX) & (at[None, :] <= at[:, None])
        seen: BoolArray = past | (own & (window | suffix)) | np.eye(len(self), dtype=np.bool_)
        return seen

    def padded(self, clean: int, windows: int) -> Layout:
        """Padded to `clean` clean rows and `windows` others."""
        have = int((self.role == CLEAN).sum())
        split = (self._slice(0, have), self._slice(have, len(self)))
        parts = (split[0], _pad(clean - have), split[1], _pad(windows - len(self) + have))
        return _join(parts)

    def of_branch(self, number: int, shared: int, groups: int) -> Layout:
        """Without its first `shared` rows, as branch `number`, its groups counted from `groups`."""
        rest = self._slice(shared, len(self))
        group = np.where(rest.group > 0, rest.group + groups, 0)
        return replace(rest, branch=np.full(len(rest), number, np.int32), group=group)

    def _slice(self, start: int, stop: int) -> Layout:
        return self._take(np.arange(start, stop, dtype=np.int32))

    def _take(self, rows: IntArray) -> Layout:
        return Layout(*(getattr(self, name)[rows] for name in Layout.__slots__))


@dataclass(slots=True)
class _Rows:
    """Window rows as they are drawn."""

    objective: Objective
    rng: np.random.Generator
    room: int
    parts: list[Layout] = field(default_factory=list)

    def add(self, shown: IntArray, start: int, targets: IntArray, role: int, rate: float) -> None:
        n = len(shown)
        self.room -= n
        at = np.arange(start, start + n, dtype=np.int32)
        self.parts.append(_rows(shown, at, targets, role, start, len(self.parts) + 1, rate))


def lay_out(sample: Sample, objective: Objective, rng: np.random.Generator) -> Layout:
    """The rows of `sample`, with at most `objective.window_rows` after its clean rows."""
    # 1. The clean stream: row i predicts token i + 1 where that is wanted.
    clean = _clean(sample)
    # 2. Windows begin at wanted positions, spread evenly from a random first one.
    starts, offset = np.flatnonzero(sample.wanted), rng.random()
    rows = _Rows(objective, rng, objective.window_rows)
    for k in range(objective.window_rows):
        if rows.room < objective.shortest:
            break
        start = int(starts[int((offset + k * GOLDEN) % 1.0 * len(starts))])
        stop = start + _run(sample.wanted[start:])
        # 3. Some are holes with text after them; the others run to the end of the text or past it.
        hole = stop - start > 1 and rng.random() < objective.infill
        (_hole if hole else _window)(rows, sample.tokens[start:stop], start)
    return _join((clean, *rows.parts))


def together(layouts: Sequence[Layout], shared: int) -> Layout:
    """The rows of samples whose first `shared` tokens, none of them learnt, are the same."""
    parts, groups = [layouts[0]._slice(0, shared)], 0
    for number, layout in enumerate(layouts, 1):
        parts.append(layout.of_branch(number, shared, groups))
        groups += int(layout.group.max())
    whole = _join(tuple(parts))
    clean = whole.role == CLEAN
    return whole._take(np.argsort(~clean, kind="stable").astype(np.int32))


def _window(rows: _Rows, text: IntArray, start: int) -> None:
    """A window at `start`, where `text` is what is to come there; perhaps its complement too."""
    o, rng = rows.objective, rows.rng
    length = int(rng.integers(o.shortest, o.longest + 1))
    length = min(length, rows.room, len(text) + o.shortest)  # rows far past the end teach nothing
    # 4. The row at p predicts p + 1, so a window of n rows has n + 1 tokens to do with. After
    #    the text come fillers, of which few are learnt: the rest are rows and no targets.
    tokens = np.full(length + 1, o.filler_id, np.int32)
    tokens[: len(text)] = text[: length + 1]
    learnt = np.arange(length + 1) < len(text) + o.trailing
    # 5. Most are wholly masked. Else a rate is drawn and each position masked by it, save the
    #    first (it would be settled), and the end of the text and what follows it, which no
    #    policy may decide before what precedes it.
    rate = 1.0 if rng.random() < o.full else float(rng.uniform(o.least, 1.0))
    masked = rng.random(length) < rate
    always = (np.arange(length) == 0) | (np.arange(length) >= len(text) - 1)
    # 6. The complement masks what the first showed, so every position is learnt once.
    masks = [masked | always, ~masked | always]
    pair = rate < 1.0 and 2 * length <= rows.room
    for mask, share in zip(masks[: 1 + pair], (rate, 1.0 - rate), strict=False):
        rows.add(_shown(tokens[:-1], mask, o), start, _targets(tokens, mask, learnt), WINDOW, share)


def _hole(rows: _Rows, text: IntArray, start: int) -> None:
    """A hole at `start` that hides the first of `text`, and some of what follows, given."""
    o, rng = rows.objective, rows.rng
    length = min(int(rng.integers(o.shortest, o.longest + 1)), rows.room - 1)
    hidden = int(rng.integers(1, min(length, len(text) - 1) + 1))
    fillers = int(rng.integers(0, min(length - hidden, 2 * o.trailing) + 1))
    tokens = np.concatenate((text[:hidden], np.full(fillers, o.filler_id, np.int32)))
    after = text[hidden:][: min(o.suffix, rows.room - len(tokens))]
    after = after[: int(rng.integers(1, len(after) + 1))]
    rate = 1.0 if rng.random() < o.full else float(rng.uniform(o.least, 1.0))
    mask = (rng.random(len(tokens)) < rate) | (np.arange(len(tokens)) == 0)
    targets = _targets(np.append(tokens, NONE), mask, np.append(np.ones(len(tokens), bool), False))
    group = len(rows.parts) + 1
    rows.add(_shown(tokens, mask, o), start, targets, WINDOW, rate)
    at = np.arange(len(after), dtype=np.int32) + start + len(tokens)
    nothing = np.full(len(after), NONE, np.int32)
    rows.parts.append(_rows(after, at, nothing, SUFFIX, start, group, rate))
    rows.room -= len(after)


def _shown(tokens: IntArray, mask: BoolArray, objective: Objective) -> IntArray:
    return np.where(mask, objective.mask_id, tokens).astype(np.int32)


def _targets(tokens: IntArray, mask: BoolArray, learnt: BoolArray) -> IntArray:
    """Row i learns token i + 1 where that is masked, or lies past the window."""
    open_ = np.append(mask[1:], True) & learnt[1:]
    return np.where(open_, tokens[1:], NONE).astype(np.int32)


def _clean(sample: Sample) -> Layout:
    n = len(sample)
    at = np.arange(n, dtype=np.int32)
    targets = np.append(np.where(sample.wanted, sample.tokens, NONE)[1:], NONE)
    rows = _rows(sample.tokens, at, targets, CLEAN, 0, 0, 0.0)
    rows.before[:] = at + 1
    return rows


def _rows(
    tokens: IntArray,
    at: IntArray,
    targets: IntArray,
    role: int,
    before: int,
    group: int,
    rate: float,
) -> Layout:
    def same(value: int) -> IntArray:
        return np.full(len(tokens), value, np.int32)

    rates = np.full(len(tokens), rate, np.float32)
    columns = (same(role), same(before), same(0), same(group), rates)
    return Layout(tokens.astype(np.int32), at, targets.astype(np.int32), *columns)


def _pad(count: int) -> Layout:
    zeros = np.zeros(count, np.int32)
    return _rows(zeros, zeros, zeros + NONE, PAD, 0, 0, 0.0)


def _join(parts: tuple[Layout, ...]) -> Layout:
    columns = ([getattr(part, name) for part in parts] for name in Layout.__slots__)
    return Layout(*map(np.concatenate, columns))


def _run(wanted: BoolArray) -> int:
    return len(wanted) if wanted.all() else int((~wanted).argmax())
