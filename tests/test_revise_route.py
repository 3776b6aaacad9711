"""POST /v1/revise on a real server of a model without weights."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from mezzotint.backend.toy import load

pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")

from fastapi import FastAPI  # noqa: E402

from mezzotint.serve import problems, revise_routes  # noqa: E402
from mezzotint.serve.desk import Desk  # noqa: E402
from mezzotint.serve.metrics import Metrics  # noqa: E402
from mezzotint.serve.settings import Settings  # noqa: E402
from mezzotint.serve.worker import Worker  # noqa: E402

TEXT = "Come on Monday. On Monday we sing."
MONDAY = {"start": 8, "end": 14, "text": "Friday"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    model = load("toy-ar")
    worker = Worker(model)
    app = FastAPI()
    app.include_router(
        revise_routes.router(Desk(model, worker, Settings("toy-ar"), Metrics(worker.stats)))
    )
    problems.install(app)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1/revise"
    server.should_exit = True
    thread.join()
    worker.close()


def post(url: str, body: dict[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_edits_and_what_stays(url: str) -> None:
    body = {"text": TEXT, "edits": [MONDAY], "keep": [{"start": 16, "end": len(TEXT)}]}
    status, made = post(url, body)
    assert status == 200
    assert made["text"] == "Come on Friday. On Monday we sing."
    edit = {"start": 8, "end": 14, "before": "Monday", "after": "Friday", "why": "edit"}
    assert made["spans"] == [edit]
    assert 8 <= made["reused_tokens"] < made["tokens"] == len(made["text"])
    assert made["mezzotint"]["passes"] > 0


def test_an_instruction_leaves_what_must_stay(url: str) -> None:
    status, made = post(
        url, {"text": TEXT, "instruction": "Sing.", "keep": [{"start": 0, "end": 15}]}
    )
    assert status == 200
    assert made["text"].startswith("Come on Monday.")
    assert {span["why"] for span in made["spans"]} <= {"instruction"}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"edits": [MONDAY], "instruction": "x"}, 400, "not both"),
        ({}, 400, "either edits or instruction"),
        ({"edits": [{"start": 0, "end": 999, "text": "x"}]}, 400, "0–999"),
        ({"edits": [MONDAY], "keep": [{"start": 9, "end": 10}]}, 400, "must stay"),
        ({"edits": [MONDAY], "model": "other"}, 404, "other"),
        ({"edits": [MONDAY], "temprature": 1}, 400, "temprature"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    url: str, body: dict[str, Any], status: int, said: str
) -> None:
    got, reply = post(url, {"text": TEXT, **body})
    assert got == status
    assert said in json.dumps(reply["error"], ensure_ascii=False)
