"""Revise a text: the user changes a part, and only what no longer fits is written anew.

Every word has two log probabilities: in the text as it was, and as it is now. A word that
followed from what was edited has lost by it. There replacements are weighed, first of all what
the edit did, done again; else the likeliest words, and a hole denoised between given text. One is
taken if the edit speaks for it and not for the word; what comes after is then read again. All
else is given, and the text is put together from characters, so nothing else can change.

It knows no chat, files or terminals. The parts of a text are in `pieces`, the reading in `fit`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from mezzotint.backend import shared
from mezzotint.canvas import Canvas
from mezzotint.conversation import raw_ids
from mezzotint.errors import TooLarge, UsageError
from mezzotint.family import Regime
from mezzotint.fit import Branch, Reader
from mezzotint.generate import Model, Options, Run
from mezzotint.pieces import (
    Change,
    Piece,
    Span,
    again,
    is_word,
    lead,
    pieces,
    result,
    rules,
    words,
)
from mezzotint.text import Tokenizer

__all__ = ["Bounds", "Change", "Revision", "Span", "revise"]

Encode = Callable[[str], list[int]]
END_OF_TEXT = "<|endoftext|>"  # what SmolLM2 and Qwen have between texts
SHORT = 4  # words of an edit that are its own, and proposed nowhere else
SEEN = 32  # tokens after a hole that are shown to it, as in training
_CAUSAL = (Regime.CAUSAL, Regime.CAUSAL_WINDOW, Regime.CAUSAL_MASKS)


@dataclass(frozen=True, slots=True)
class Revision:
    """text: the new text. spans: all in which it differs from the old one, edits too, in order.

    tokens: of the new text. reused: of them, those whose keys and values were the old text's.
    passes, rows: computed for it.
    """

    text: str
    spans: tuple[Span, ...]
    tokens: int
    reused: int
    passes: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a word is doubted and replaced, and how far that goes; in nats, words and counts.

    fell: a word is doubted if its log probability fell by so much. expected: only a word whose
    log probability was as high before can have followed from the edit.
    gain, own: the edit must speak so much more for a replacement than for the word: for one that
    repeats the edit, and for one of the model's own.
    trust: a replacement that repeats the edit may be so much less likely than the word; the
    model's own must be likelier.
    reach, back: so many words before an edit are doubted too, and the gain they need.
    ahead: words that a replacement is weighed with. drafts: likeliest words weighed.
    weighed: words for which replacements are weighed, at most.
    """

    fell: float = 1.0
    expected: float = -3.0
    gain: float = 1.5
    own: float = 2.5
    trust: float = 6.0
    reach: int = 3
    back: float = 8.0
    ahead: int = 4
    drafts: int = 12
    weighed: int = 128


def revise(
    model: Model,
    text: str,
    edits: Sequence[Change],
    keep: Sequence[tuple[int, int]] = (),
    bounds: Bounds | None = None,
    between: Callable[[], None] = lambda: None,
) -> Revision:
    """The text with `edits` and what follows from them; words that touch `keep` stay.

    Positions are characters of `text`. between: called between passes; what it raises ends this.
    Raises UsageError for edits that are outside the text, overlap or touch what must stay, and
    for a family without causal rows; TooLarge beyond the context.
    """
    began = time.perf_counter()
    family = model.family
    if family.regime not in _CAUSAL or not family.shift:
        hint = "take a hybrid or an autoregressive model"
        raise UsageError(f"{family.name} has no causal rows to read a text by", hint)
    found = pieces(text, edits, keep)
    run = _Run(model, found, bounds or Bounds())
    run.follow(between)
    new, spans = result(found)
    return Revision(
        text=new,
        spans=spans,
        tokens=len(run.new.tokens) - len(run.start),
        reused=run.reused,
        passes=run.old.reader.passes + run.new.reader.passes + run.passes,
        rows=run.old.reader.rows + run.new.reader.rows + run.rows,
        seconds=time.perf_counter() - began,
    )


@dataclass(frozen=True, slots=True)
class _Option:
    """`text` in place of the next `count` pieces. repeats: as the edit did elsewhere."""

    count: int
    text: str
    repeats: bool = False


class _Side:
    """One of the two texts: its tokens, where each piece begins in them, and what was read."""

    def __init__(self, reader: Reader, name: Literal["old", "new"], encode: Encode) -> None:
        self.reader, self.name, self.encode = reader, name, encode
        self.tokens: list[int] = []
        self.at: list[int] = []

    def lay(self, start: Sequence[int], found: Sequence[Piece]) -> None:
        parts = [self.ids(piece) for piece in found]
        self.at = list(accumulate(map(len, parts), initial=len(start)))
        self.tokens = [*start, *(t for part in parts for t in part)]

    def ids(self, piece: Piece) -> list[int]:
        return self.encode(getattr(piece, self.name))

    def read(self, first: int) -> None:
        """Score the pieces from `first` on."""
        self.reading = self.reader.read(self.tokens, self.at[first])

    def logp(self, i: int) -> float:
        return self.reading.sum(self.at[i], self.at[i + 1])

    def weigh(self, i: int, options: Sequence[_Option], far: int) -> list[float]:
        """Log probability of each option and the pieces after it up to `far`."""
        ends = [self.tokens[self.at[i + o.count] : self.at[far]] for o in options]
        texts = [self.encode(o.text) + end for o, end in zip(options, ends, strict=True)]
        return self.reader.weigh([Branch(self.at[i], text) for text in texts])


class _Run:
    """One revision: `pieces` become new while it is followed."""

    def __init__(self, model: Model, found: list[Piece], bounds: Bounds) -> None:
        self.model, self.pieces, self.bounds = model, found, bounds
        self.start = _opening(model)
        encode = model.tokenizer.encode
        self.old = _Side(Reader(model.session()), "old", encode)
        self.new = _Side(self.old.reader, "new", encode)
        self.edits = [i for i, piece in enumerate(found) if piece.why]
        self.rules = [rule for i in self.edits for rule in rules(found[i])]
        short = [new for i in self.edits if len(new := words(found[i].new)) <= SHORT]
        self.said = {word.strip() for new in short for word in new}
        self.weighed = self.passes = self.rows = 0  # the last two: of denoised holes

    def follow(self, between: Callable[[], None]) -> None:
        """Read both texts, then go through the pieces once, from left to right."""
        for side in (self.old, self.new):
            side.lay(self.start, self.pieces)
            size, most = len(side.tokens), self.model.context
            if size > most:
                raise TooLarge(f"the text has {size} tokens, the context is {most}", "revise less")
        same = shared(self.old.tokens, self.new.tokens)
        self.reused = same - len(self.start)
        if not self.edits:
            return
        i = max(self.edits[0] - self.bounds.reach, 0)
        self.old.read(i)
        self.new.reader = self.old.reader.fork(same)
        self.new.read(i)
        while i < len(self.pieces) and self.weighed < self.bounds.weighed:
            between()
            piece = self.pieces[i]
            if not piece.fixed and is_word(piece.new):
                self.consider(i)
            i += 1

    def consider(self, i: int) -> None:
        """Replace the word if something fits better: what the edit did, or the model's own."""
        found = [again(rule, self.pieces[i:]) for rule in self.rules]
        repeats = [_Option(*one, repeats=True) for one in found if one]
        was = self.old.logp(i)
        if self.replace(i, repeats, self.bounds.gain) or was < self.bounds.expected:
            return
        if was - self.new.logp(i) > self.bounds.fell:
            self.replace(i, self.own(i), self.bounds.own)
        elif any(i < e <= i + self.bounds.reach for e in self.edits):
            self.replace(i, self.own(i), self.bounds.back)

    def own(self, i: int) -> list[_Option]:
        """The likeliest words there, of the same kind, and a hole denoised in its place. What
        a short edit says is left out: it belongs where the edit is done again."""
        old = self.pieces[i].new
        place = self.new.at[i] - self.new.reading.start
        tokens = self.new.reading.top[place, : self.bounds.drafts].tolist()
        texts = [self.model.tokenizer.decode([t]) for t in tokens]
        texts += [self.denoised(i)] if self.new.at[i + 1] - self.new.at[i] > 1 else []
        texts = [text for text in texts if text.strip() not in self.said and _alike(text, old)]
        return [_Option(1, text) for text in dict.fromkeys(texts) if text != old]

    def denoised(self, i: int) -> str:
        """What the model puts between what stands before and after, in as many tokens."""
        family, (start, stop) = self.model.family, self.new.at[i : i + 2]
        if family.mask_id is None or family.regime is not Regime.CAUSAL_WINDOW:
            return ""
        tokens = self.new.tokens
        parts: list[list[int] | int] = [tokens[:start], stop - start, tokens[stop : stop + SEEN]]
        session = self.new.reader.fork(start - 1).session
        hole = Run(self.model, Canvas.of(parts, family.mask_id), Options(), session, None).result()
        self.passes += hole.passes
        self.rows += hole.rows
        filled = [t for t in hole.canvas.tokens[start:stop].tolist() if t != family.delete_id]
        return self.model.tokenizer.decode(filled)

    def replace(self, i: int, options: Sequence[_Option], gain: float) -> bool:
        """Put the best of the options there, if one is good enough."""
        room = self.model.context - len(self.new.tokens)
        options = [o for o in options if len(self.model.tokenizer.encode(o.text)) <= room]
        if not options:
            return False
        self.weighed += 1
        far = i + max(o.count for o in options) + self.bounds.ahead
        far = max([far, *(e + 3 for e in self.edits if i < e <= i + self.bounds.reach)])
        far = min(far, len(self.pieces))
        is_, was = _Option(1, self.pieces[i].new), _Option(1, self.pieces[i].old)
        now = self.new.weigh(i, [is_, *options], far)
        before = self.old.weigh(i, [was, *options], far)
        best, most = None, 0.0
        for option, n, b in zip(options, now[1:], before[1:], strict=True):
            likelier, gained = n - now[0], n - now[0] - (b - before[0])
            enough = likelier > (-self.bounds.trust if option.repeats else 0.0)
            if gained >= gain and enough and (best is None or likelier + gained > most):
                best, most, why = option, likelier + gained, _why(option, gained)
        if best is not None:
            self.put(i, best, why)
        return best is not None

    def put(self, i: int, option: _Option, why: str) -> None:
        gone = self.pieces[i : i + option.count]
        self.pieces[i : i + option.count] = [
            Piece("".join(p.old for p in gone), option.text, True, why)
        ]
        self.edits = [e if e < i else e - option.count + 1 for e in self.edits]
        del self.old.at[i + 1 : i + option.count]
        self.new.lay(self.start, self.pieces)
        self.new.read(i)


def _opening(model: Model) -> list[int]:
    """What stands before a text: what the model wants there, or the end of another text."""
    tokenizer = model.tokenizer
    if isinstance(tokenizer, Tokenizer) and END_OF_TEXT in tokenizer.added:
        return [tokenizer.added[END_OF_TEXT]]
    return raw_ids(tokenizer, "") or tokenizer.encode("\n")


def _alike(text: str, old: str) -> bool:
    """Whether it could stand in the word's place: one word of its kind, with its space."""
    kinds = (text.strip().isalpha() == old.strip().isalpha(), lead(text) == lead(old))
    return all(kinds) and words(text) == [text] and is_word(text)


def _why(option: _Option, gained: float) -> str:
    said = "repeats the edit" if option.repeats else "followed from what was edited"
    return f"{said}: fits better by {gained:.1f} nats"
