"""POST /v1/revise: a text, what the user changed or wants changed, and what must stay.

It turns JSON into one call of the library, in a slot of the worker, and back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from mezzotint.errors import Cancelled, Deadline
from mezzotint.revise import Change, Revision, revise
from mezzotint.rewrite import rewrite
from mezzotint.serve.desk import Desk
from mezzotint.serve.problems import Problem, bad
from mezzotint.serve.sse import unless_gone
from mezzotint.serve.wire import Strict

LONGEST = 100_000  # characters of a text
MOST = 1_000  # edits, or spans to keep

Place = Annotated[int, Field(ge=0, le=LONGEST)]


class Range(Strict):
    """Characters (code points) [start, end) of the text."""

    start: Place
    end: Place


class Edited(Range):
    """They become `text`."""

    text: Annotated[str, Field(max_length=LONGEST)]


class ReviseRequest(Strict):
    """Either `edits` or `instruction`. keep: what must stay; whole words do. model: by default
    the one that is served."""

    text: Annotated[str, Field(max_length=LONGEST)]
    edits: Annotated[list[Edited], Field(max_length=MOST)] | None = None
    instruction: Annotated[str, Field(max_length=4_000)] | None = None
    keep: Annotated[tuple[Range, ...], Field(max_length=MOST)] = ()
    model: str | None = None


class RevisedSpan(BaseModel):
    """Characters [start, end) of the new text are `after`, where the old one said `before`.
    why: "edit" for the user's own."""

    start: int
    end: int
    before: str
    after: str
    why: str


class RevisionCost(BaseModel):
    passes: int
    rows: int
    decode_ms: float


class ReviseResponse(BaseModel):
    """spans: all in which the texts differ, the edits too, in order. reused_tokens: of the new
    text's `tokens`, those whose keys and values were the old text's."""

    text: str
    spans: list[RevisedSpan]
    reused_tokens: int
    tokens: int
    mezzotint: RevisionCost


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(tags=["Mezzotint"])

    @routes.post("/v1/revise")
    async def post(body: ReviseRequest, request: Request) -> ReviseResponse:
        """Change a text: what no longer fits is rewritten, all else stays as it is."""
        if (body.edits is None) == (body.instruction is None):
            raise bad("give either edits or instruction, and not both", "edits")
        if body.model not in (None, desk.settings.name):
            what = f"no model {body.model!r:.80} here; there is {desk.settings.name!r}"
            raise Problem(404, what, param="model", code="model_not_found")
        client = f"{request.client.host}:{request.client.port}" if request.client else ""
        gone = threading.Event()
        try:
            work = run_in_threadpool(_revised, desk, client, body, _Patience(desk, gone))
            return _answer(await unless_gone(request, work))
        finally:
            gone.set()  # the thread, if it still works, ends before its next pass

    return routes


class _Patience:
    """Called between passes: raises when the client is gone or its time is over."""

    def __init__(self, desk: Desk, gone: threading.Event) -> None:
        self.seconds, self.gone = desk.settings.deadline, gone
        self.until = time.monotonic() + self.seconds

    def __call__(self) -> None:
        if self.gone.is_set():
            raise Cancelled("the client is gone")
        if time.monotonic() > self.until:
            raise Deadline(f"not done in {self.seconds:g} s")


def _revised(desk: Desk, client: str, body: ReviseRequest, between: Callable[[], None]) -> Revision:
    keep = [(one.start, one.end) for one in body.keep]
    with desk.worker.slot(client) as model:
        between()
        if body.instruction is not None:
            return rewrite(model, body.text, body.instruction, keep, between)
        edits = [Change(one.start, one.end, one.text) for one in body.edits or ()]
        return revise(model, body.text, edits, keep, between=between)


def _answer(revision: Revision) -> ReviseResponse:
    return ReviseResponse(
        text=revision.text,
        spans=[RevisedSpan(**asdict(span)) for span in revision.spans],
        reused_tokens=revision.reused,
        tokens=revision.tokens,
        mezzotint=RevisionCost(
            passes=revision.passes,
            rows=revision.rows,
            decode_ms=round(1e3 * revision.seconds, 3),
        ),
    )
