"""The model as the agent uses it: messages in, calls or prose out, KV kept between turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mezzotint import toolcall
from mezzotint.agent.events import Timing
from mezzotint.agent.tool import Tool
from mezzotint.backend import shared
from mezzotint.constraint import lines as lines_of
from mezzotint.constraint import tools as grammar_of
from mezzotint.conversation import Conversation
from mezzotint.generate import Options, Run, Step
from mezzotint.model import Model
from mezzotint.toolcall import NOW, Call

Line = str | Sequence[Tool]
"""A line of a plan: one that stands as it is, or a call of some tool."""

LONGEST = 256  # tokens of an answer
MOST = 4  # calls of one


@dataclass
class Writer:
    """policy: how the model is decoded; None is its own choice. structure: calls are held to
    the tools' schemas, and what they leave open alone is written by the model. watch: told of
    each pass."""

    model: Model
    policy: str | None = None
    structure: bool = True
    watch: Callable[[Run, Step], None] | None = None
    _talk: Conversation = field(init=False)

    def __post_init__(self) -> None:
        options = Options(max_tokens=LONGEST, temperature=0.0, policy=self.policy)
        self._talk = Conversation(self.model, options, watch=self.watch)

    def write(
        self, messages: Sequence[dict[str, str]], tools: Sequence[Tool], lines: Sequence[Line] = ()
    ) -> tuple[str, Timing]:
        """The next turn: calls of `tools`, or prose; with `lines`, these, whatever `tools` are.

        Raises MezzotintError if nothing that fits can be written.
        """
        if lines:
            parts = [a if isinstance(a, str) else [schema(tool) for tool in a] for a in lines]
            grammar = lines_of(parts)
            if self.structure and not any(toolcall.dated(part) for part in parts):
                messages = [_untimed(messages[0]), *messages[1:]]
        else:
            grammar = grammar_of([schema(tool) for tool in tools], most=MOST)
        began = time.perf_counter()
        if not (self.structure and lines and all(map(_decided, lines))):
            self._talk.begin(self._lasting(messages[0]))  # else nothing will be read
        begun = time.perf_counter() - began
        result = self._talk.write(messages, grammar if self.structure else None)
        seconds = begun + result.prefill_seconds + result.decode_seconds
        return result.text, Timing(seconds, result.passes, result.written, result.forced)

    def _lasting(self, system: dict[str, str]) -> list[int]:
        """Tokens of the system message up to the time it tells: the same at the next request."""
        other = _untimed(system)
        other["content"] += f"\n{NOW} -"
        one, two = (self.model.tokenizer.chat([message]) for message in (system, other))
        return one[: shared(one, two)]


def _decided(line: Line) -> bool:
    """Whether a line can only be written in one way, so that it needs no pass."""
    if isinstance(line, str):
        return True
    properties = [tool.parameters["properties"].values() for tool in line]
    return len(line) == 1 and all(len(one.get("enum", ())) == 1 for one in properties[0])


def schema(tool: Tool) -> toolcall.Schema:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def system(tools: Sequence[Tool], now: datetime) -> dict[str, str]:
    """The system message that shows the tools."""
    content = toolcall.system([schema(tool) for tool in tools], now)
    return {"role": "system", "content": content}


def _untimed(system: dict[str, str]) -> dict[str, str]:
    """The system message without the time. It need not be read where no date is open: the words of
    the request have decided them all. With the week that follows it is 20 to 80 rows."""
    return {**system, "content": system["content"].partition(f"\n{NOW}")[0]}


def calls_in(text: str) -> list[Call]:
    """The calls of a turn, each once, outer spaces of their texts left out; none if it is prose
    or, unstructured, nothing readable."""
    try:
        found = toolcall.parse(text)
    except ValueError:
        return []
    distinct: list[Call] = []
    for call in found:
        arguments = {n: v.strip() if isinstance(v, str) else v for n, v in call.arguments.items()}
        if (call := Call(call.name, arguments)) not in distinct:
            distinct.append(call)
    return distinct
