"""A server's life on real sockets: who gets in, who waits, who leaves, and how it ends."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from serving import Json, Reply, Server, serving, until

MODEL = "toy-window"
CHAT = "v1/chat/completions"
KEY = "0123456789abcdef"
SHORT: Json = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
LONG: Json = {**SHORT, "max_tokens": 3900}  # the toy ends it after some 80 passes
PACE = 0.1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ("--slots", "2", "--queue", "1")
    with serving(MODEL, tmp_path_factory.mktemp("server"), *options, pace=PACE) as running:
        yield running


@contextmanager
def asking(server: Server, body: Json, path: str = CHAT) -> Iterator[socket.socket]:
    """A connection on which the request was sent; closed at the end."""
    raw = json.dumps(body).encode()
    head = (
        f"POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(raw)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(head.encode() + raw)
        yield client


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_slot(server: Server, stream: bool) -> None:
    with asking(server, {**LONG, "stream": stream}) as client:
        until(lambda: server.running() == 1)
        if stream:
            assert client.recv(1)
    until(lambda: server.running() == 0, 5)


def test_a_client_that_leaves_a_response_frees_its_slot(server: Server) -> None:
    body = {"model": MODEL, "input": "hi", "max_output_tokens": 3900, "stream": True}
    with asking(server, body, "v1/responses") as client:
        until(lambda: server.running() == 1)
        assert client.recv(1)
    until(lambda: server.running() == 0, 5)


def test_candidates_of_a_client_that_leaves_all_end(server: Server) -> None:
    with asking(server, {**LONG, "n": 2, "stream": True}) as client:
        until(lambda: server.running() == 2)
        assert client.recv(1)
    until(lambda: server.running() == 0, 5)


def test_a_full_queue_says_when_to_try_again(server: Server) -> None:
    with asking(server, LONG), asking(server, LONG), asking(server, LONG):
        until(lambda: server.get("health").json["waiting"] == 1)
        for body in (SHORT, {**SHORT, "stream": True}):
            reply = server.post(CHAT, body)
            assert (reply.status, reply.error["code"]) == (429, "queue_full")
            assert int(reply.headers["Retry-After"]) >= 1
    until(lambda: server.running() == 0, 5)
    assert server.post(CHAT, SHORT).status == 200


def test_a_deadline_ends_what_takes_too_long(tmp_path: Path) -> None:
    with serving(MODEL, tmp_path, "--deadline", "2", pace=PACE) as server:
        reply = server.post(CHAT, LONG)
        assert (reply.status, reply.error["code"]) == (504, "deadline")
        assert reply.headers["x-should-retry"] == "false"
        events = server.events(CHAT, LONG)
        assert events[0][1]["object"] == "chat.completion.chunk"
        assert events[-1][1]["error"]["code"] == "deadline"
        until(lambda: server.running() == 0)


HOSTS = {"evil.example": 403, "127.0.0.1.evil.example": 403, "": 403, "localhost": 200,
         "127.0.0.1:80": 200, "[::1]:5": 200, "[::1": 403}  # fmt: skip


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_a_name_that_was_rebound_is_refused(server: Server, host: str, status: int) -> None:
    assert server.get("health", {"Host": host}).status == status


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_pages_of_other_sites_are_refused(server: Server, origin: str) -> None:
    reply = server.post(CHAT, SHORT, {"Origin": origin})
    assert (reply.status, reply.error["code"]) == (403, "cross_origin")
    assert not any(name.lower().startswith("access-control") for name in reply.headers)


def test_the_own_page_may_ask(server: Server) -> None:
    assert server.post(CHAT, SHORT, {"Origin": server.url.rstrip("/")}).status == 200


def test_a_key_is_asked_for_and_never_told(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    with serving(MODEL, tmp_path, "--api-key-file", str(file), "--host", "0.0.0.0") as server:
        for wrong in ({}, {"Authorization": f"Bearer {KEY}x"}, {"Authorization": KEY}):
            reply = server.post(CHAT, SHORT, wrong)
            assert (reply.status, reply.error["code"]) == (401, "invalid_api_key")
            assert KEY not in reply.text
        assert server.get("metrics").status == 401
        assert server.get("health").status == 200
        assert server.post(CHAT, SHORT, {"Authorization": f"Bearer {KEY}"}).status == 200


def test_the_text_of_requests_is_logged_only_if_asked(tmp_path: Path) -> None:
    secret = {**SHORT, "messages": [{"role": "user", "content": "a-secret-word"}]}
    for options, logged in (((), False), (("--log-requests",), True)):
        with serving(MODEL, tmp_path, *options) as server:
            assert server.post(CHAT, secret).status == 200
            assert server.post(CHAT, {**secret, "x": 1}).status == 400
            server.stop()
            assert ("a-secret-word" in server.log.read_text()) is logged


def test_errors_hold_no_path(server: Server) -> None:
    replies: list[Reply] = [
        server.post(CHAT, {**SHORT, "mezzotint": {"policy": "nonsense"}}),
        server.post(CHAT, {**SHORT, "model": "../../etc/passwd"}),
        server.get("v1/../../etc/passwd"),
    ]
    for reply in replies:
        assert reply.status in (400, 404)
        assert "/work" not in reply.text
        assert "site-packages" not in reply.text
        assert "Traceback" not in reply.text


@pytest.mark.parametrize("stream", [False, True])
def test_sigterm_lets_running_requests_finish(tmp_path: Path, stream: bool) -> None:
    with serving(MODEL, tmp_path, pace=PACE) as server, ThreadPoolExecutor(1) as pool:
        body = {**SHORT, "max_tokens": 60, "stream": stream}
        answer = pool.submit(server.post, CHAT, body)
        until(lambda: server.running() == 1)
        assert server.stop() == 0
        reply = answer.result()
        assert reply.status == 200
        assert reply.text.endswith("[DONE]\n\n") if stream else reply.json["choices"]
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", server.port))
        assert server.log.read_text() == ""


def test_a_drain_that_takes_too_long_is_cut(tmp_path: Path) -> None:
    with (
        serving(MODEL, tmp_path, "--drain", "1", pace=PACE) as server,
        asking(server, LONG) as client,
    ):
        until(lambda: server.running() == 1)
        assert server.stop() == 0
        assert b"200 OK" not in client.recv(4096)


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    with serving(MODEL, tmp_path) as server:
        assert server.post(CHAT, SHORT).status == 200
        assert server.stop(signal.SIGINT) == 130
        assert server.log.read_text() == ""


def test_a_killed_server_starts_again_on_its_port(tmp_path: Path) -> None:
    with serving(MODEL, tmp_path, pace=PACE) as server:
        before = server.post(CHAT, SHORT).json["choices"]
        with asking(server, LONG):
            until(lambda: server.running() == 1)
            server.stop(signal.SIGKILL)
    with serving(MODEL, tmp_path, "--port", str(server.port)) as again:
        assert again.port == server.port
        assert again.post(CHAT, SHORT).json["choices"] == before


def run(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    start = ["-c", code] if code else ["-m", "mezzotint.cli"]
    command = [sys.executable, *start, "serve", MODEL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_port_in_use_is_said(server: Server) -> None:
    tried = run("--port", str(server.port))
    assert tried.returncode == 2
    assert "Address already in use" in tried.stderr
    assert "--port" in tried.stderr
    assert "Traceback" not in tried.stderr


def test_an_open_address_without_a_key_is_refused() -> None:
    tried = run("--host", "0.0.0.0", "--port", "0")
    assert tried.returncode == 2
    assert "without an API key, 0.0.0.0 would let everyone in" in tried.stderr


def test_the_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from mezzotint.cli import main; main()"
    tried = run("--port", "0", code=code)
    assert tried.returncode == 5
    assert "pip install 'mezzotint[serve]'" in tried.stderr


def test_many_clients_get_what_they_would_alone(server: Server) -> None:
    """Good requests among malformed ones and ones that are given up."""
    bodies: list[Json] = [
        {**SHORT, "messages": [{"role": "user", "content": f"number {i}"}]} for i in range(6)
    ]
    alone = [server.post(CHAT, body).json["choices"] for body in bodies]
    wrong: list[Any] = []

    def good(i: int) -> None:
        while True:
            reply = server.post(CHAT, bodies[i % 6])
            if reply.status != 429:
                break
        if reply.status != 200 or reply.json["choices"] != alone[i % 6]:
            wrong.append(reply)

    def bad(i: int) -> None:
        if server.post(CHAT, {**SHORT, "nonsense": i}).status != 400:
            wrong.append(i)

    def gone(i: int) -> None:
        with asking(server, {**LONG, "stream": bool(i % 2)}):
            pass

    threads = [
        threading.Thread(target=(good, good, bad, gone)[i % 4], args=(i,)) for i in range(32)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    until(lambda: server.running() == 0)


@pytest.mark.slow
def test_two_servers_share_a_folder_and_a_kill_harms_nothing(
    tmp_path: Path, smollm2_path: Path
) -> None:
    """Packed weights are written by both at once; what is stored outlives one that is killed."""
    file = Path(shutil.copy(smollm2_path, tmp_path / "small.gguf"))
    env = {"MEZZOTINT_HOME": str(tmp_path / "home")}
    options = ("--name", "small")
    body = {**SHORT, "model": "small", "max_tokens": 12}
    folders = [tmp_path / name for name in "abcd"]
    for folder in folders:
        folder.mkdir()

    def texts(folder: Path) -> list[str]:
        with serving(str(file), folder, *options, env=env) as server:
            return [str(server.post(CHAT, body).json["choices"]) for _ in range(2)]

    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(texts, folders[:2]))
    with (
        serving(str(file), folders[2], *options, env=env) as server,
        asking(server, {**body, "max_tokens": 400}),
    ):
        until(lambda: server.running() == 1)
        server.stop(signal.SIGKILL)
    after = texts(folders[3])
    assert len({*both[0], *both[1], *after}) == 1
    assert not list(tmp_path.rglob("*.partial*"))
