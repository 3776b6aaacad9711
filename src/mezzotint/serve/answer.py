"""One candidate's answer as it comes: pieces that are never taken back, then how it ended.

A whole answer is the sum of its pieces, so what a client streams and what it gets at once are
the same. It knows jobs and text, not the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from mezzotint.generate import Model, Result, Step
from mezzotint.serve.asked import Asked
from mezzotint.serve.canvas_events import cells, state
from mezzotint.serve.deltas import Arguments, Calls, Letters, Name, Stops
from mezzotint.serve.job import Job, Task

Reason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Text:
    """More prose."""

    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """The canvas after a pass, as `canvas_events` tells it."""

    state: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The last piece. written: positions decided. What only a whole run tells is None where a
    stop string ended it: the forced ones, and the prefill."""

    reason: Reason
    tokens: int
    written: int
    passes: int
    seconds: float
    prefill: float | None
    forced: int | None
    cached: int


Piece = Text | Name | Arguments | Shown | Ended


class Answer:
    """The pieces of the answer that `job` writes."""

    def __init__(self, model: Model, asked: Asked, task: Task, job: Job) -> None:
        self._model, self._asked, self._task, self.job = model, asked, task, job
        self._letters, self._stops = Letters(model.tokenizer.decode), Stops(asked.stops)
        self._calls: Calls | None = None
        self._began = False
        self._count = self._passes = 0
        self._seconds = 0.0

    async def pieces(self) -> AsyncGenerator[Piece]:
        """Raises what the job raises. The job is over when this is."""
        try:
            if self._task.parts is None:
                async for step in self.job:
                    for piece in self._after(step):
                        yield piece
                    if self._stops.found:
                        yield self._cut()
                        return
            result = await self.job.result()
            for piece in self._last(result):
                yield piece
        finally:
            self.job.cancel()

    def _after(self, step: Step) -> Iterator[Piece]:
        self._passes += 1
        self._seconds += step.seconds
        start = len(self._task.prompt)
        settled = self._text(step.canvas.tokens[start : step.canvas.settled].tolist())
        fresh, self._count = settled[self._count :], len(settled)
        yield from self._read(self._letters.push(fresh))
        if self._asked.canvas:
            shown = cells(self._model, step.canvas, len(self._task.prompt), self._task.options)
            yield Shown(state(self._passes, step, len(settled), shown))

    def _text(self, tokens: list[int]) -> list[int]:
        """Without a stop token and what follows it, or what a last block has too much."""
        stop_ids = self._model.family.stop_ids
        tokens = tokens[: self._task.options.max_tokens]
        return tokens[: next((i for i, t in enumerate(tokens) if t in stop_ids), len(tokens))]

    def _read(self, text: str) -> Iterator[Piece]:
        if text and not self._began:
            self._began = True
            self._calls = Calls() if self._asked.calls and text.startswith("{") else None
        if self._calls:
            yield from self._calls.push(text)
        elif prose := self._stops.push(text):
            yield Text(prose)

    def _last(self, result: Result) -> Iterator[Piece]:
        """What the steps did not show, and the end."""
        parts, tokens = self._task.parts, list(result.tokens)
        if parts is not None:
            tokens = _between(parts, tokens)
        yield from self._read(self._letters.push(tokens[self._count :]) + self._letters.end())
        if self._calls:
            yield from self._calls.end()
        elif not self._stops.found and (prose := self._stops.end()):
            yield Text(prose)
        yield Ended(
            self._reason(result),
            len(tokens),
            result.written,
            result.passes,
            result.decode_seconds,
            result.prefill_seconds,
            result.forced,
            self.job.cached,
        )

    def _reason(self, result: Result) -> Reason:
        if self._calls:
            return "tool_calls"
        whole = self._stops.found or self._asked.formatted
        return "length" if result.stop == "length" and not whole else "stop"

    def _cut(self) -> Ended:
        """The end at a stop string."""
        counts = (self._count, self._count, self._passes, self._seconds)
        return Ended("stop", *counts, None, None, self.job.cached)


def _between(parts: Sequence[Sequence[int] | int | None], tokens: list[int]) -> list[int]:
    """What was filled in between the first and the last given part."""
    before, after = parts[0], parts[-1]
    assert isinstance(before, Sequence)
    assert isinstance(after, Sequence)
    return tokens[len(before) : len(tokens) - len(after)]


async def together(answers: Sequence[Answer]) -> AsyncGenerator[tuple[int, Piece]]:
    """The pieces of all answers as they come, each with its answer's number.

    Raises the first error of any. However it ends, no job goes on.
    """
    queue: asyncio.Queue[tuple[int, Piece] | BaseException] = asyncio.Queue()

    async def follow(i: int, answer: Answer) -> None:
        try:
            async with aclosing(answer.pieces()) as pieces:
                async for piece in pieces:
                    queue.put_nowait((i, piece))
        except Exception as error:
            queue.put_nowait(error)

    tasks = [asyncio.create_task(follow(i, answer)) for i, answer in enumerate(answers)]
    try:
        left = len(answers)
        while left:
            item = await queue.get()
            if isinstance(item, BaseException):
                raise item
            yield item
            left -= isinstance(item[1], Ended)
    finally:
        for task in tasks:
            task.cancel()
        for answer in answers:
            answer.job.cancel()
