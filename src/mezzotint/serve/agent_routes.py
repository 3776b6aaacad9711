"""POST /v1/agent: the agent acts on today's demo workspace, and asks before what cannot be undone.

What it tells holds no path of this machine.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, Field

from mezzotint.agent import stores
from mezzotint.agent.acts import Writes
from mezzotint.agent.workspace import Workspace
from mezzotint.errors import UsageError
from mezzotint.model import Model
from mezzotint.serve.agent_talk import Talk, Talks, today
from mezzotint.serve.agent_turn import Turn
from mezzotint.serve.agent_writer import RidingWriter, Tell
from mezzotint.serve.desk import Desk
from mezzotint.serve.problems import Problem
from mezzotint.serve.sse import event, streamed
from mezzotint.serve.wire import Strict


class Asked(Strict):
    """session: of a talk that goes on, as its first event told it."""

    request: Annotated[str, Field(min_length=1, max_length=2000)]
    session: str | None = None


class Reply(Strict):
    """id: of the `consent` event."""

    id: str
    allow: bool


class Nothing(Strict):
    pass


class TakenBack(BaseModel):
    """request: whose run it was, "" if there was nothing to undo. restored: what is no longer so.
    kept: what could not be taken back, and why."""

    request: str
    restored: list[str]
    kept: list[str]


def talks_of(desk: Desk) -> Talks:
    """Talks whose agent writes with the worker's model."""

    def writer(tell: Tell) -> Writes:
        model = desk.worker.model
        if not isinstance(model, Model):
            raise UsageError(f"{desk.settings.name} cannot act", "serve a model that calls tools")
        return RidingWriter(model, worker=desk.worker, tell=tell)

    return Talks(writer)


def router(talks: Talks) -> APIRouter:
    routes = APIRouter(tags=["Agent"])

    @routes.post("/v1/agent", response_class=Response)
    async def ask(body: Asked, request: Request) -> Response:
        """Do what is asked, and stream the agent's events.

        The first is `session`; then `canvas` while the model writes, and what happens: `chosen`,
        `planned`, `revised`, `asked`, `did`, `refused`, `said`. `consent` waits for a reply;
        `error` may come; `end` is the last.
        """
        if body.session is None:
            talk = await run_in_threadpool(talks.begin)
            talks.keep(talk)
        else:
            talk = talks.find(body.session)
        return await streamed(request, _events(talk, talk.ask(body.request)))

    @routes.post("/v1/agent/undo")
    async def undo(body: Nothing) -> TakenBack:
        """Take back the last run that changed something."""
        if talks.busy:
            raise Problem(409, "a request is being worked on", code="busy")
        place = await run_in_threadpool(today)
        undone = await run_in_threadpool(stores.undo, place)
        made = TakenBack(
            request=undone.request, restored=list(undone.restored), kept=list(undone.kept)
        )
        return TakenBack.model_validate_json(_without_paths(made.model_dump_json(), place))

    @routes.post("/v1/agent/{session}/consent")
    async def consent(session: str, body: Reply) -> Reply:
        """Allow or deny the call that waits."""
        turn = talks.find(session).turn
        if turn is None or not turn.reply(body.id, body.allow):
            raise Problem(404, "nothing waits for that consent", code="consent_not_found")
        return body

    return routes


async def _events(talk: Talk, turn: Turn) -> AsyncGenerator[str]:
    async with aclosing(turn.listen()) as events:
        yield event({"id": talk.id}, "session")
        async for kind, data in events:
            yield _without_paths(event(data, kind), talk.place)
        yield event({}, "end")


def _without_paths(text: str, place: Workspace) -> str:
    """JSON `text` in which the workspace's folder is only called so."""
    return text.replace(json.dumps(str(place.root), ensure_ascii=False)[1:-1], "workspace")
