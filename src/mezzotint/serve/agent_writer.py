"""The agent's writer as a server runs it: in a slot of the worker, its canvas told as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mezzotint.agent.events import Timing
from mezzotint.agent.tool import Tool
from mezzotint.agent.writer import Line, Writer
from mezzotint.constraint import Grammar
from mezzotint.conversation import Conversation
from mezzotint.generate import Result
from mezzotint.serve.canvas_events import cells, state
from mezzotint.serve.job import Task
from mezzotint.serve.worker import Worker

Tell = Callable[[str, dict[str, Any]], None]


@dataclass(kw_only=True)
class RidingWriter(Writer):
    """tell: called after each pass with "canvas" and its state; what it raises ends the writing."""

    worker: Worker
    tell: Tell
    _slot: str = field(default="agent", repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._talk = _Told(self.model, self._talk.options, tell=self.tell)

    def write(
        self, messages: Sequence[dict[str, str]], tools: Sequence[Tool], lines: Sequence[Line] = ()
    ) -> tuple[str, Timing]:
        with self.worker.slot(self._slot):
            return super().write(messages, tools, lines)


@dataclass(slots=True, kw_only=True)
class _Told(Conversation):
    tell: Tell

    def write(self, messages: Sequence[dict[str, str]], grammar: Grammar | None = None) -> Result:
        run = self._run(list(messages), grammar)
        start = int(run.canvas.masked[0])
        task = Task(tuple(run.canvas.tokens[:start].tolist()), run.options)
        for number, step in enumerate(run, 1):
            shown = cells(self.model, task, step.canvas)
            settled = next((i for i, c in enumerate(shown) if c["state"] != "written"), len(shown))
            self.tell("canvas", state(number, step, settled, shown))
        result = run.result()
        self._cached = result.canvas.tokens.tolist()
        return result
