"""A grammar's state along a sequence of tokens, with a way to the end always in hand.

Law: after every token a walk holds an ending that fits into the room left; a token after
which none is found is refused. The ending depends on the tokens before it alone, and not on
how they came: written one by one, forced, or verified as drafts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mezzotint import _core
from mezzotint.canvas import FloatArray
from mezzotint.constraint.ending import Search, bits
from mezzotint.constraint.vocabulary import Vocabulary, reason
from mezzotint.errors import MezzotintError, UsageError

if TYPE_CHECKING:
    from mezzotint.constraint.grammar import Grammar


class Walk:
    """Tokens so far, what may come next, and an ending.

    room: tokens that the whole text may have, a stop token not counted. Raises UsageError if
    no text of the grammar fits, as far as is known.
    """

    def __init__(self, words: Vocabulary, grammar: Grammar, room: int) -> None:
        self._words, self._grammar, self.room = words, grammar, room
        self._matcher = words.matcher(grammar.lark)
        self.tokens: list[int] = []
        self.stopped = False
        first = self._search(room)
        if first is None:
            why = f" ({reason(self._matcher)})" if self._matcher.is_error() else ""
            hint = "allow more tokens, or look for a part of it that has no end"
            raise UsageError(f"no answer was found that fits into {room} tokens{why}", hint)
        # By tokens so far, for what is drafted in one pass is verified in the next and then
        # written: endings looked for (None: not found), and what may come next.
        self._endings: dict[tuple[int, ...], tuple[int, ...] | None] = {(): first}
        self._allowed: dict[tuple[int, ...], bytes] = {}

    @property
    def ending(self) -> tuple[int, ...]:
        """Tokens that complete the text from here."""
        ending = self._endings[tuple(self.tokens)]
        assert ending is not None  # a token after which none is found is refused
        return ending

    @property
    def next(self) -> int:
        """The token that leads to the ending; a stop where the text is complete."""
        return self.ending[0] if self.ending else self._words.stop_ids[0]

    def push(self, token: int) -> bool:
        """Take the token, if the grammar allows it and the text can still end in its room."""
        if token in self._words.stop_ids:
            self.stopped = self.stopped or self._matcher.is_accepting()
            return self.stopped
        if self.stopped or self._matcher.try_consume_tokens([token]) != 1:
            self._check()
            return False
        old, text = self.ending, (*self.tokens, token)
        self.tokens.append(token)
        if text not in self._endings:
            self._endings[text] = self._ending(token, old)
        if self._endings[text] is None:
            self.tokens.pop()
            self._matcher.rollback(1)
            return False
        return True

    def back(self, length: int) -> None:
        """Return to the first `length` tokens."""
        count = len(self.tokens) - length
        if count:
            self._matcher.rollback(count)
            del self.tokens[length:]
        self.stopped = False

    def follow(self) -> list[int]:
        """Take every token that is forced here; a stop, where only that is left, is the last."""
        taken: list[int] = []
        while not self.stopped and (run := self._forced()):
            for token in run:
                if not self.push(token):
                    return taken
                taken.append(token)
        return taken

    def narrow(self, row: FloatArray) -> int:
        """Set the logits (V,) of tokens not allowed here to −inf; take the likeliest, return it."""
        text = tuple(self.tokens)
        if text not in self._allowed:
            self._allowed[text] = self._matcher.compute_bitmask()
            self._check()
        token = _core.narrow(row, np.frombuffer(self._allowed[text], np.uint8))
        if row[token] == -np.inf or not self.push(token):
            token = self.next
            row[:] = -np.inf
            row[token] = 0.0
            self.push(token)
        return token

    def _forced(self) -> list[int]:
        if self._matcher.is_stopped():
            self._check()
            return [self._words.stop_ids[0]]
        tokens = self._matcher.compute_ff_tokens()
        if tokens:
            return list(tokens)
        allowed = bits(self._matcher)
        self._check()
        alone = np.count_nonzero(allowed.view(np.bool_)) == 1
        return [int(allowed.argmax())] if alone else []

    def _ending(self, token: int, old: tuple[int, ...]) -> tuple[int, ...] | None:
        """The ending after `token`: the old one where it still holds, else a new one."""
        left = self.room - len(self.tokens)
        if old[:1] == (token,):
            return old[1:]
        if len(old) <= left and self._ends(old):
            return old
        return self._search(left)

    def _ends(self, tokens: tuple[int, ...]) -> bool:
        taken = self._matcher.try_consume_tokens(list(tokens))
        ends = taken == len(tokens) and self._matcher.is_accepting()
        self._matcher.rollback(taken)
        return ends

    def _search(self, most: int) -> tuple[int, ...] | None:
        grammar, words = self._grammar, self._words
        text = b"".join(words.spelt[i] for i in self.tokens)
        return Search(words, self._matcher, text, grammar.quotes, grammar.hints).run(most)

    def _check(self) -> None:
        if self._matcher.is_error():
            what = f"the grammar became too complex after {len(self.tokens)} tokens"
            raise MezzotintError(f"{what}: {reason(self._matcher)}", "simplify its patterns")
