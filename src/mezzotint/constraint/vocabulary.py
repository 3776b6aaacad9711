"""A model's tokens as the grammar engine (llguidance) needs them, and grammars compiled for them.

Control tokens, the mask among them, are no text: no grammar ever allows one. It knows bytes
and ids, not what a grammar means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mezzotint.errors import UsageError
from mezzotint.family import Family
from mezzotint.text import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

_LIMITS = {"initial_lexer_fuel": 1_000_000, "max_grammar_size": 200_000, "max_lexer_states": 50_000}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Tokens and stop ids. spelt: the bytes of each token, none for a control token.

    single: byte → the token that spells it alone, where there is one.
    """

    spelt: tuple[bytes, ...]
    stop_ids: tuple[int, ...]
    encode: Callable[[str], list[int]] = field(repr=False)
    engine: LLTokenizer = field(repr=False)
    single: dict[int, int] = field(repr=False)

    def text(self, tokens: Iterable[int]) -> str:
        """What the tokens spell; a character that lacks bytes becomes U+FFFD."""
        return b"".join(self.spelt[token] for token in tokens).decode(errors="replace")

    def matcher(self, grammar: str) -> LLMatcher:
        """A matcher at the grammar's start. Raises UsageError, with why, for one it cannot hold."""
        return _compiled(self, grammar).deep_copy()


def vocabulary(tokenizer: Any, family: Family) -> Vocabulary:
    """The vocabulary of a model; built once for each tokenizer (half a second).

    Raises UsageError for a model without a stop token.
    """
    if not family.stop_ids:
        hint = "take a model whose checkpoint names its end token"
        raise UsageError(f"{family.name} has no stop token, so no grammar can end its text", hint)
    marks = (family.mask_id, family.expand_id, family.delete_id)
    return _built(_Same(tokenizer), family.stop_ids, tuple(m for m in marks if m is not None))


@dataclass(frozen=True, eq=False)
class _Same:
    """A tokenizer as a key: equal only to itself."""

    tokenizer: Any

    def __hash__(self) -> int:
        return id(self.tokenizer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.tokenizer is self.tokenizer


@lru_cache(maxsize=4)
def _built(key: _Same, stop_ids: tuple[int, ...], marks: tuple[int, ...]) -> Vocabulary:
    llguidance = engine()
    control = {*stop_ids, *marks}
    spelt = _spelt(key.tokenizer, control)
    wrapped = llguidance.TokenizerWrapper(_Tokens(spelt, sorted(control), key.tokenizer.encode))
    made = llguidance.LLTokenizer(wrapped, eos_token=list(stop_ids))
    single = {word[0]: i for i, word in enumerate(spelt) if len(word) == 1 and i not in control}
    plain = tuple(b"" if i in control else word for i, word in enumerate(spelt))
    return Vocabulary(plain, stop_ids, key.tokenizer.encode, made, single)


def _spelt(tokenizer: Any, control: set[int]) -> list[bytes]:
    """The bytes of every token; `control` gains those of the tokenizer."""
    if not isinstance(tokenizer, Tokenizer):  # the toy's: bytes, then a few control tokens
        return [bytes([i]) if i < 256 else b"<%d>" % i for i in range(max(256, *control) + 1)]
    control |= tokenizer.control
    last = max([*tokenizer.core.get_vocab().values(), *tokenizer.added.values(), *control])
    return [tokenizer.to_bytes([i], control=True) for i in range(last + 1)]


class _Tokens:
    """What the engine asks of a tokenizer."""

    bos_token_id = None

    def __init__(
        self, tokens: Sequence[bytes], special: list[int], encode: Callable[[str], list[int]]
    ) -> None:
        self.tokens, self.special_token_ids, self._encode = tokens, special, encode
        self.eos_token_id = special[0]

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text.decode() if isinstance(text, bytes) else text)


@lru_cache(maxsize=32)
def _compiled(words: Vocabulary, grammar: str) -> LLMatcher:
    llguidance = engine()
    limits = llguidance.LLParserLimits(**_LIMITS, verbose_errors=False)
    matcher = llguidance.LLMatcher(words.engine, grammar, log_level=0, limits=limits)
    if matcher.is_error():
        raise UsageError(f"this constraint cannot be held: {reason(matcher)}")
    return matcher  # type: ignore[no-any-return]


def reason(matcher: LLMatcher) -> str:
    """What went wrong, in one line, without where in our own grammar text."""
    lines = matcher.get_error().strip().splitlines() or ["no reason given"]
    return lines[0].rpartition("compile JSON schema: ")[2]


def engine() -> Any:
    """The llguidance module, imported when a first constraint needs it."""
    import llguidance

    return llguidance
