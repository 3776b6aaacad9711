"""What a caller asks of the worker, and what it holds while that is done: steps, then a result.

A job bridges the thread that decodes and the event loop that listens. It knows neither how it
is decoded nor who asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from dataclasses import dataclass

from mezzotint.constraint import Grammar
from mezzotint.errors import Cancelled, Deadline, MezzotintError
from mezzotint.generate import Options, Result, Step
from mezzotint.serve.batching import Ride


@dataclass(frozen=True, slots=True)
class Task:
    """A text to write: after `prompt` (token ids), or in the holes between `parts`.

    parts: as `generate.infill` takes them; then there are no steps, only the result.
    deadline: seconds from when it is submitted. client: clients take turns.
    """

    prompt: tuple[int, ...]
    options: Options
    grammar: Grammar | None = None
    parts: tuple[tuple[int, ...] | int | None, ...] | None = None
    deadline: float | None = None
    client: str = ""


class Job:
    """A task that waits, runs, or is over. One caller listens: iterate, then ask for the result.

    cached: tokens of the prompt whose rows need not be computed; known once it runs.
    """

    def __init__(
        self, task: Task, begin: Callable[[Job], None], stopped: Callable[[], None]
    ) -> None:
        """begin: what runs it, once it has a slot. stopped: called when it was stopped."""
        self.task, self.cached = task, 0
        self.ride = Ride()
        self.until = None if task.deadline is None else time.monotonic() + task.deadline
        self._begin, self._stopped = begin, stopped
        self._future: Future[Result] = Future()
        self._future.set_running_or_notify_cancel()  # so that no listener can cancel it
        self._steps: deque[Step] = deque()
        self._listener: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._heard = True  # whether steps are kept for a listener
        self._lock = threading.Lock()

    async def __aiter__(self) -> AsyncIterator[Step]:
        """Its steps, from the first on, as they come; ends when the job does, however it does."""
        wake = asyncio.Event()
        self._listener = asyncio.get_running_loop(), wake
        while True:
            wake.clear()
            over = self.over
            while self._steps:
                yield self._steps.popleft()
            if over:
                return
            await wake.wait()

    async def result(self) -> Result:
        """Waits for the end. Raises what decoding raised; Deadline, Cancelled.

        Asked for before any step, it lets the steps go.
        """
        if self._listener is None:
            self._heard = False
            self._steps.clear()
        return await asyncio.wrap_future(self._future)

    def cancel(self) -> None:
        """Returns at once; the result is Cancelled, and the slot is free by the next pass."""
        self.stop(Cancelled("the request was cancelled"))

    @property
    def over(self) -> bool:
        return self._future.done()

    # ---- the worker's side (a `slots.Entry`) -------------------------------------------

    @property
    def client(self) -> str:
        return self.task.client

    def begin(self) -> None:
        self._begin(self)

    def stop(self, error: MezzotintError) -> None:
        """End it with `error`, from any thread, unless it is over."""
        self.end(error)
        self.ride.stop(error)
        self._stopped()

    def expire(self) -> None:
        self.stop(Deadline(f"not done in {self.task.deadline:g} s"))

    def push(self, step: Step) -> None:
        if self._heard and not self.over:
            self._steps.append(step)
            self._notify()

    def end(self, outcome: Result | Exception) -> None:
        """Its result or error; the first one counts."""
        with self._lock:
            if self.over:
                return
            if isinstance(outcome, Exception):
                self._future.set_exception(outcome)
            else:
                self._future.set_result(outcome)
        self._notify()

    def _notify(self) -> None:
        if self._listener:
            loop, wake = self._listener
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens
                loop.call_soon_threadsafe(wake.set)
