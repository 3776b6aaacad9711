"""What is here and how it does: /v1/models, /health, /metrics."""

from __future__ import annotations

import time
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from mezzotint.serve.desk import Desk
from mezzotint.serve.problems import Problem


class Card(BaseModel):
    """context: tokens of prompt and answer together. diffusion: false for a model that can only
    write from left to right."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "mezzotint"
    context: int
    diffusion: bool


class Cards(BaseModel):
    object: Literal["list"] = "list"
    data: list[Card]


class Health(BaseModel):
    """running, waiting: requests."""

    status: Literal["ok"] = "ok"
    model: str
    running: int
    waiting: int


def router(desk: Desk) -> APIRouter:
    routes = APIRouter()
    began = int(time.time())
    model, name = desk.model, desk.settings.name
    card = Card(id=name, created=began, context=model.context, diffusion=model.family.diffusion)

    @routes.get("/v1/models", tags=["OpenAI"])
    async def models() -> Cards:
        """The model that is served."""
        return Cards(data=[card])

    @routes.get("/v1/models/{model}", tags=["OpenAI"])
    async def one(model: str) -> Card:
        """The model, if that is its id."""
        if model != name:
            raise Problem(404, f"no model {model!r:.80} here", code="model_not_found")
        return card

    @routes.get("/health", tags=["Operation"])
    async def health() -> Health:
        """That the server answers; needs no key."""
        stats = desk.worker.stats()
        return Health(model=name, running=stats.running, waiting=stats.waiting)

    @routes.get("/metrics", tags=["Operation"], response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """Counters and gauges in Prometheus' text form."""
        return PlainTextResponse(desk.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return routes
