"""What an arm is: something that answers a prompt, and says what that cost.

Every arm is asked in the same manner. `ready`, which no clock sees, lets the cache hold
exactly the first `held` tokens of the prompt (none when cold; the tools, when warm), writes
down the grammar, and wakes the threads; `run` then answers, to the end of the turn. What the
bench itself does, such as looking whether the text is a valid action yet, stops the clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mezzotint.bench.tasks import Message, Task

WAKE = 32  # tokens read before each turn, at the least


@dataclass(frozen=True, slots=True)
class Asked:
    """ids: the prompt. held: how many of its tokens the cache holds beforehand."""

    task: Task
    ids: tuple[int, ...]
    held: int = 0

    @property
    def waking(self) -> tuple[int, ...]:
        return self.ids[: max(self.held, min(WAKE, len(self.ids) - 1))]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an arm wrote. Times in seconds, from the request on.

    first: when a whole valid action stood there; None if none ever did. end: of the turn.
    prefill: until the prompt was read, with what the same pass decides. model: in the passes after
    it. cpu: of all threads; None where the work is another process's. passes: those that decide,
    the prefill's last among them if it does. tokens: decided, the end of the turn too.
    forced: of them, written without a choice. stop: "stop" or "length".
    """

    text: str
    first: float | None
    end: float
    prefill: float
    model: float
    cpu: float | None
    passes: int
    tokens: int
    forced: int
    stop: str


class Arm(Protocol):
    """One way to answer, opened. Not safe for use by several threads."""

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...] | None:
        """The prompt by the arm's own vocabulary; None where that is not to be seen."""
        ...

    def ready(self, asked: Asked) -> None: ...
    def run(self, asked: Asked) -> Answer: ...
    def close(self) -> None: ...


class Clock:
    """Wall and CPU seconds of what runs inside `with clock:`, summed."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> Clock:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._wall
        self.cpu += time.process_time() - self._cpu
