"""Text to token ids and back, for byte-level BPE vocabularies.

Control tokens are ids, never spellings: `encode` turns any text, `<|im_end|>` included,
into ordinary tokens, and only a chat template can write control tokens. It knows nothing
of models or canvases.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tokenizers

from mezzotint.chat import ChatTemplate, Message
from mezzotint.errors import ModelError, UsageError


@dataclass(frozen=True)
class Tokenizer:
    """A vocabulary, its control tokens and its chat template.

    core: the BPE alone, without added tokens. added: every token outside the BPE, by
    text. control: those of `added` that are not shown to a reader. prefix: ids put
    before raw text (BOS, where the model wants it).
    """

    core: tokenizers.Tokenizer
    added: Mapping[str, int]
    control: frozenset[int]
    prefix: tuple[int, ...] = ()
    template: ChatTemplate | None = field(default=None, repr=False)

    @cached_property
    def _added_bytes(self) -> dict[int, bytes]:
        return {i: text.encode() for text, i in self.added.items()}

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, in which nothing is a control token. No prefix is added.

        Raises UsageError for text that is not valid Unicode.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the text is not valid Unicode at character {error.start}",
                "It was probably not UTF-8 where it came from.",
            ) from None
        return list(self.core.encode(text, add_special_tokens=False).ids)

    def prompt(self, text: str) -> list[int]:
        """Ids of raw text to be continued: the prefix, then `encode(text)`."""
        return [*self.prefix, *self.encode(text)]

    def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        thinking: bool | None = None,
        answer: bool = True,
    ) -> list[int]:
        """Ids of a conversation, ready for the assistant's turn (see ChatTemplate.pieces).

        Raises ModelError if the model has no chat template.
        """
        if self.template is None:
            raise ModelError(
                "this model has no chat template", "Use `mezzotint generate` with plain text."
            )
        ids: list[int] = []
        for text, control in self.template.pieces(messages, self.added, tools, thinking, answer):
            ids += [self.added[text]] if control else self.encode(text)
        return ids

    def to_bytes(self, ids: Iterable[int], control: bool = False) -> bytes:
        """The bytes that `ids` spell; control tokens too if `control`. Unused ids spell none."""
        return b"".join(self._spell(int(i), control) for i in ids)

    def decode(self, ids: Iterable[int], control: bool = False) -> str:
        """The text of `ids`; bytes that are not UTF-8 become U+FFFD."""
        return self.to_bytes(ids, control).decode(errors="replace")

    def stream(self) -> Stream:
        return Stream(self)

    def _spell(self, token: int, control: bool) -> bytes:
        if token in self._added_bytes:
            return b"" if token in self.control and not control else self._added_bytes[token]
        spelt = self.core.id_to_token(token) or ""
        try:
            return bytes(_BYTE[c] for c in spelt)
        except KeyError:  # a token outside the byte-level alphabet
            return spelt.encode()


class Stream:
    """Decodes ids as they come; an incomplete character waits for its last byte."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, ids: Iterable[int]) -> str:
        """The text that `ids` complete."""
        return self._decoder.decode(self._tokenizer.to_bytes(ids))

    def end(self) -> str:
        """What is left: U+FFFD for a character that never came whole, or nothing."""
        return self._decoder.decode(b"", final=True)


def text_from(raw: bytes, source: str = "the input") -> str:
    """`raw` as text. Raises UsageError, with the place, if it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{source} is not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}",
            "Convert it first, for example with `iconv -t UTF-8`.",
        ) from None


def byte_alphabet() -> dict[str, int]:
    """GPT-2's character for each byte, inverted: printable Latin-1 stands for itself, the
    other 68 bytes, in order, for U+0100 and up.
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(b): b for b in shown} | {chr(256 + n): b for n, b in enumerate(hidden)}


_BYTE = byte_alphabet()
