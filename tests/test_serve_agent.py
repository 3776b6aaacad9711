"""The agent over HTTP, on a real server: who listens, who may act, and what is never told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from page_server import served

Told = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with served(home) as (address, _):
        yield address


def post(url: str, path: str, body: Any) -> tuple[HTTPConnection, HTTPResponse]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    return connection, connection.getresponse()


def answered(url: str, path: str, body: Any) -> tuple[int, Any]:
    connection, response = post(url, path, body)
    with closing(connection):
        return response.status, json.load(response)


def told(response: HTTPResponse) -> Iterator[Told]:
    """Events as they come."""
    kind = ""
    for line in response:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def run(url: str, request: str, session: str | None = None) -> list[Told]:
    body = {"request": request} | ({"session": session} if session else {})
    connection, response = post(url, "/v1/agent", body)
    with closing(connection):
        assert response.status == 200
        return list(told(response))


def kinds(events: list[Told]) -> list[str]:
    return [kind for kind, _ in events if kind != "canvas"]


def mails(home: Path) -> set[str]:
    return {file.name for file in (home / "demo/mail").rglob("*") if file.is_file()}


def until(done: Any) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def free(url: str, session: str) -> bool:
    """Whether the session takes a request."""
    connection, response = post(url, "/v1/agent", {"request": "Find David", "session": session})
    with closing(connection):
        return response.status == 200 and bool(list(told(response)))


def test_a_turn_is_told_from_its_session_to_its_end_and_taken_back(url: str, home: Path) -> None:
    events = run(url, "Add a note: bring the card")
    assert kinds(events) == ["session", "chosen", "planned", "did", "said", "end"]
    assert [data["pass"] for kind, data in events if kind == "canvas"][:3] == [1, 2, 3]
    note = next((home / "demo/notes").glob("*bring*"))
    status, undone = answered(url, "/v1/agent/undo", {})
    assert (status, undone["request"]) == (200, "Add a note: bring the card")
    assert undone["restored"]
    assert not note.exists()


@pytest.mark.parametrize("allow", [True, False])
def test_what_cannot_be_undone_waits_for_consent(url: str, home: Path, allow: bool) -> None:
    before = mails(home)
    connection, response = post(url, "/v1/agent", {"request": "Send Anna a mail: I am late"})
    with closing(connection):
        events = told(response)
        session = next(events)[1]["id"]
        asked = next(data for kind, data in events if kind == "consent")
        assert asked["call"]["arguments"]["to"] == "Anna"
        assert asked["shown"].startswith('{"send_email":')
        assert mails(home) == before
        path = f"/v1/agent/{session}/consent"
        assert answered(url, path, {"id": "x", "allow": True})[0] == 404
        assert answered(url, "/v1/agent/undo", {})[0] == 409
        assert answered(url, path, {"id": asked["id"], "allow": allow})[0] == 200
        assert answered(url, path, {"id": asked["id"], "allow": True})[0] == 404
        rest = list(events)
    assert kinds(rest) == ["did" if allow else "refused", "said", "end"]
    assert (mails(home) > before) == allow


def test_a_client_that_leaves_denies(url: str, home: Path) -> None:
    before = mails(home)
    connection, response = post(url, "/v1/agent", {"request": "Send Anna a mail: I am late"})
    events = told(response)
    session = next(events)[1]["id"]
    asked = next(data for kind, data in events if kind == "consent")
    response.close()
    connection.close()
    until(lambda: free(url, session))
    late = {"id": asked["id"], "allow": True}
    assert answered(url, f"/v1/agent/{session}/consent", late)[0] == 404
    assert mails(home) == before


def test_one_turn_at_a_time_and_a_left_one_ends_soon(url: str) -> None:
    connection, response = post(url, "/v1/agent", {"request": "Write a note slowly"})
    session = next(told(response))[1]["id"]
    status, body = answered(url, "/v1/agent", {"request": "Find David", "session": session})
    assert (status, body["error"]["code"]) == (409, "busy")
    response.close()
    connection.close()
    until(lambda: free(url, session))


def test_a_question_is_answered_in_the_same_session(url: str) -> None:
    events = run(url, "What is the phone number of David?")
    (said,) = [data for kind, data in events if kind == "said"]
    assert said["question"]
    events = run(url, "Novak", events[0][1]["id"])
    assert "555 0123" in next(data for kind, data in events if kind == "said")["text"]


def test_no_path_is_told(url: str, home: Path) -> None:
    events = run(url, "A note about the crash")
    assert kinds(events) == ["session", "chosen", "error", "end"]
    assert str(home) not in json.dumps(events)
    assert "secret" not in json.dumps(events)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/agent", {"request": ""}, 400),
        ("/v1/agent", {"request": "x" * 2001}, 400),
        ("/v1/agent", {"request": "x", "model": "y"}, 400),
        ("/v1/agent", {"request": "x", "session": "gone"}, 404),
        ("/v1/agent/gone/consent", {"id": "x", "allow": True}, 404),
        ("/v1/agent/undo", {"force": True}, 400),
    ],
)
def test_a_wrong_request_is_refused(url: str, path: str, body: Any, status: int) -> None:
    given, told_ = answered(url, path, body)
    assert given == status
    assert told_["error"]["message"]
