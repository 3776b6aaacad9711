"""Answers over HTTP: at once or as server-sent events, and nobody works for a client that left."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse

from mezzotint.serve.problems import Problem, problem

log = logging.getLogger(__name__)
Made = TypeVar("Made")
DONE = "data: [DONE]\n\n"
_EVENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": _EVENT}}}
}
"""Tells OpenAPI that a route may answer with events."""


def event(data: dict[str, Any], name: str = "") -> str:
    """One event; its data is one line."""
    line = f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
    return f"event: {name}\n{line}" if name else line


async def unless_gone(request: Request, work: Coroutine[Any, Any, Made]) -> Made:
    """What `work` gives. When the client goes away it is cancelled, and Problem raised."""
    working = asyncio.create_task(work)
    watching = asyncio.create_task(_left(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Problem(499, "the client is gone")
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def streamed(request: Request, events: AsyncGenerator[str]) -> StreamingResponse:
    """The events as a response. What fails before the first one is raised, and has a status."""

    async def begin() -> str:
        return await anext(events)

    try:
        first = await unless_gone(request, begin())
    except BaseException:
        await events.aclose()
        raise
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_all(first, events), media_type="text/event-stream", headers=headers)


async def _all(first: str, events: AsyncGenerator[str]) -> AsyncIterator[str]:
    try:
        yield first
        async for one in events:
            yield one
    except Exception as error:
        told = problem(error)
        if told.status_code == 500:
            log.exception("a stream failed")
        yield event(told.body())
    finally:
        await events.aclose()
