"""The agent's writer as a server runs it: in a slot of the worker, its canvas told as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mezzotint.agent.events import Timing
from mezzotint.agent.tool import Tool
from mezzotint.agent.writer import Line, Writer
from mezzotint.conversation import Conversation
from mezzotint.generate import Run, Step
from mezzotint.serve.canvas_events import cells, state
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
        options = self._talk.options
        self._talk = _Riding(self.model, options, watch=self._tell, worker=self.worker)

    def write(
        self, messages: Sequence[dict[str, str]], tools: Sequence[Tool], lines: Sequence[Line] = ()
    ) -> tuple[str, Timing]:
        with self.worker.slot(self._slot):
            return super().write(messages, tools, lines)

    def _tell(self, run: Run, step: Step) -> None:
        shown = cells(self.model, step.canvas, run.start or 0, run.options)
        settled = next((i for i, c in enumerate(shown) if c["state"] != "written"), len(shown))
        self.tell("canvas", state(run.passes, step, settled, shown))


@dataclass(slots=True, kw_only=True)
class _Riding(Conversation):
    """A conversation whose beginning the worker holds for all that begin alike."""

    worker: Worker

    def begin(self, tokens: list[int]) -> None:
        if self._reusable([*tokens, -1]) < len(tokens):
            self._session, self._cached = self.worker.begun(tokens), list(tokens)
