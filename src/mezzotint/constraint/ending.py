"""A short way to the end of a text from where it stands: the witness that it can be completed.

The grammar engine says what may come next, never how far the end is. So an ending is looked
for, token by token: what closes a value first, then anything the grammar allows. It need not
be the shortest. It knows the matcher's state and the bytes before it, no logits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mezzotint.constraint.vocabulary import Vocabulary

if TYPE_CHECKING:
    from llguidance import LLMatcher

_QUOTE, _BACKSLASH = b'"\\'
_OUTSIDE = b'}],:0123456789"[ntf{-.'  # what ends a value, then the shortest values
_INSIDE = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ -_.:/@+,;#'()[]{}<>\"\n\\"
)
_TRIES = 2000  # tokens tried at most to reach a quote or the end through the hints


class Search:
    """One search. quotes: the text is JSON, so what closes depends on being inside a string.

    hints: runs of literal bytes in the grammar's patterns: a pattern that may begin anywhere
        is not met by chance.
    """

    def __init__(
        self, words: Vocabulary, matcher: LLMatcher, text: bytes, quotes: bool,
        hints: tuple[bytes, ...],
    ) -> None:  # fmt: skip
        self._words, self._matcher, self._quotes = words, matcher, quotes
        self._hints = [run for run in map(self._spell, hints) if run]
        self._string = _String(text) if quotes else None
        self._found: list[int] = []
        self._last: dict[int, int] = {}  # byte → when it was last taken
        self._tries = _TRIES

    def run(self, most: int) -> tuple[int, ...] | None:
        """An ending of at most `most` tokens, or None if none was found. Leaves the matcher as it
        was."""
        try:
            while not self._matcher.is_accepting():
                if len(self._found) >= most or not self._advance(most - len(self._found)):
                    return None
            return tuple(self._found)
        finally:
            self._matcher.rollback(len(self._found))

    def _advance(self, room: int) -> bool:
        forced = self._matcher.compute_ff_tokens()[:room]
        if forced:
            return self._take(forced)
        inside = self._string is None or self._string.inside
        if self._quotes and inside and self._closes():
            return self._take([self._words.single[_QUOTE]])
        if inside:
            path = self._reach(1, room) or self._reach(2, room) or self._reach(3, room)
            if path:
                return self._take(path)
        return self._take_first(inside)

    def _take_first(self, inside: bool) -> bool:
        """Outside strings the first that is allowed; inside, what was taken longest ago."""
        single = self._words.single
        if not inside:
            spelt = [single[b] for b in _OUTSIDE if b in single]
            token = next((t for t in spelt if self._matcher.validate_tokens([t]) == 1), None)
            if token is not None:
                return self._take([token])
        allowed = bits(self._matcher)
        order = [b for b in _INSIDE if b in single and allowed[single[b]]] if inside else []
        if order:
            byte = min(order, key=lambda b: self._last.get(b, -1))
            self._last[byte] = len(self._found)
            return self._take([single[byte]])
        words = [(len(self._words.spelt[i]), int(i)) for i in np.flatnonzero(allowed)]
        word = min((pair for pair in words if pair[0]), default=None)
        return word is not None and self._take([word[1]])

    def _reach(self, depth: int, room: int) -> list[int]:
        """Tokens of up to `depth` hints after which the string, or the text, may end."""
        for run in self._hints if room > 0 else ():
            self._tries -= 1
            if self._tries < 0:
                return []
            taken = self._matcher.try_consume_tokens(run)
            whole, rest = taken == len(run), list[int]()
            done = whole and self._closes()
            if whole and not done and depth > 1:
                rest = self._reach(depth - 1, room - len(run))
            self._matcher.rollback(taken)
            if done or rest:
                return [*run, *rest]
        return []

    def _closes(self) -> bool:
        if not self._quotes:
            return self._matcher.is_accepting()
        quote = self._words.single.get(_QUOTE)
        return quote is not None and self._matcher.validate_tokens([quote]) == 1

    def _spell(self, run: bytes) -> list[int]:
        tokens = [self._words.single.get(byte) for byte in run]
        return [] if None in tokens else [token for token in tokens if token is not None]

    def _take(self, tokens: list[int]) -> bool:
        taken = self._matcher.try_consume_tokens(tokens)
        self._found += tokens[:taken]
        if self._string is not None:
            self._string.feed(b"".join(self._words.spelt[i] for i in tokens[:taken]))
        return taken == len(tokens)


class _String:
    """Whether JSON text stands inside a string."""

    def __init__(self, text: bytes) -> None:
        self.inside = self._escaped = False
        self.feed(text)

    def feed(self, text: bytes) -> None:
        for byte in text:
            if self._escaped:
                self._escaped = False
            elif byte == _QUOTE:
                self.inside = not self.inside
            else:
                self._escaped = self.inside and byte == _BACKSLASH


def bits(matcher: LLMatcher) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """1 for each token allowed next, else 0; padded to whole words."""
    return np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")
