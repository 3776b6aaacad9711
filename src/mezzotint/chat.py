"""A chat template: messages in, prompt text out, with what users typed kept apart.

Templates are Jinja programs that come with checkpoints, so they run in a sandbox. What a
user typed must never become a control token: before rendering, every spelling of one in a
message is replaced by a stand-in character; whatever spellings the rendered text then
holds are the template's own. `Prompt.pieces` says which is which. It knows no token ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mezzotint.errors import ModelError, UsageError

# Stand-ins come from plane 15, which is private use; such characters in a message are
# themselves stood in for, so that every text comes back as it was.
_FIRST, _LAST = 0xF0000, 0xFFFFD

Message = Mapping[str, Any]


class ChatTemplate:
    """A compiled template. `variables` are bos_token, eos_token and the like.

    Raises ModelError for a template that does not compile.
    """

    def __init__(self, source: str, variables: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self.variables = dict(variables)
        try:
            self.template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise ModelError(f"the model's chat template does not compile: {error}") from None

    def pieces(
        self,
        messages: Sequence[Message],
        control: Collection[str],
        tools: Sequence[Mapping[str, Any]] | None = None,
        thinking: bool | None = None,
        answer: bool = True,
    ) -> list[tuple[str, bool]]:
        """The rendered prompt as (text, is a control token) pairs, in order.

        control: every spelling that is a control token where the template wrote it.
        answer: end with the opening of the assistant's turn.
        Raises UsageError with the template's own words if it refuses the messages.
        """
        shield = _Shield(control)
        known: dict[str, Any] = {**self.variables, "tools": shield.hide(tools)}
        if thinking is not None:
            known["enable_thinking"] = thinking
        try:
            text = self.template.render(
                messages=shield.hide(messages), add_generation_prompt=answer, **known
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise UsageError(f"the chat template refuses these messages: {error}") from None
        return shield.split(text)


class _Shield:
    """Stands in for control spellings in what users typed, and puts them back."""

    def __init__(self, control: Collection[str]) -> None:
        # Longest first, so that the leftmost-longest spelling is taken.
        self.control = sorted(control, key=len, reverse=True)
        spellings = [re.escape(token) for token in self.control]
        private = f"[{chr(_FIRST)}-{chr(_LAST)}]"
        self.typed = re.compile("|".join([*spellings, private]))
        self.written = re.compile(f"({'|'.join(spellings)})" if spellings else r"(?!)()")
        self.stand_ins: dict[str, str] = {}

    def hide(self, value: Any) -> Any:
        """`value` with every string in it shielded; containers keep their kind."""
        if isinstance(value, str):
            return self._ends(self.typed.sub(lambda match: self._stand_in(match[0]), value))
        if isinstance(value, Mapping):
            return {key: self.hide(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.hide(item) for item in value]
        return value

    def split(self, text: str) -> list[tuple[str, bool]]:
        back = {ord(stand_in): typed for typed, stand_in in self.stand_ins.items()}
        parts = self.written.split(text)
        pieces = [(part.translate(back), i % 2 == 1) for i, part in enumerate(parts)]
        return [piece for piece in pieces if piece[0]]

    def _stand_in(self, typed: str) -> str:
        free = _FIRST + len(self.stand_ins)
        if free > _LAST:
            raise UsageError("the messages hold too many distinct private-use characters")
        return self.stand_ins.setdefault(typed, chr(free))

    def _ends(self, text: str) -> str:
        """Also break a spelling that the template's text beside this string would complete."""
        longest = len(self.control[0]) if self.control else 0
        for size in range(1, min(longest, len(text) + 1)):
            if any(token.startswith(text[-size:]) for token in self.control):
                cut = len(text) - size
                text = text[:cut] + self._stand_in(text[cut]) + text[cut + 1 :]
            if any(token.endswith(text[:size]) for token in self.control):
                text = text[: size - 1] + self._stand_in(text[size - 1]) + text[size:]
        return text


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without HTML escapes, as `transformers` defines the filter for templates."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
