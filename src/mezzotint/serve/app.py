"""The application: one worker, the routes over it, and who may use them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from mezzotint.generate import Model
from mezzotint.serve import (
    agent_routes,
    chat,
    completions,
    page,
    problems,
    responses,
    revise_routes,
    status,
)
from mezzotint.serve.desk import Desk
from mezzotint.serve.guard import Guard
from mezzotint.serve.metrics import Metrics
from mezzotint.serve.problems import ErrorBody
from mezzotint.serve.settings import Settings
from mezzotint.serve.worker import Worker


def create_app(model: Model, settings: Settings) -> FastAPI:
    """An ASGI application that serves `model`; its worker is closed when it shuts down."""
    worker = Worker(model, settings.slots, settings.queue, settings.prefix_bytes)
    metrics = Metrics(worker.stats)
    desk = Desk(model, worker, settings, metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(worker.close)

    app = FastAPI(
        title="Mezzotint",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
    )
    for part in (chat, completions, responses, revise_routes, status):
        app.include_router(part.router(desk))
    app.include_router(agent_routes.router(agent_routes.talks_of(desk)))
    app.include_router(page.router())
    problems.install(app)
    app.add_middleware(Guard, settings=settings, answered=metrics.answered)
    return app
