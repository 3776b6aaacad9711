"""A real server in a process of its own, on a free loopback port, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SLOW = """
import time
from mezzotint.backend.toy import ToySession
score = ToySession.score
def slow(self, rows, want):
    time.sleep({})
    return score(self, rows, want)
ToySession.score = slow
from mezzotint.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> Json:
        return self.json["error"]


@dataclass(frozen=True, slots=True)
class Server:
    """url: with a slash at its end. log: the file that its stderr goes to."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        return self._send(urllib.request.Request(self.url + path, headers=dict(headers or {})))

    def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
        """body: bytes as they are, anything else as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self._send(urllib.request.Request(self.url + path, raw, sent))

    def events(self, path: str, body: Json) -> list[tuple[str, Any]]:
        """The server-sent events of a streamed answer: name or "", and data (parsed JSON)."""
        found = []
        for block in self.post(path, {**body, "stream": True}).text.split("\n\n")[:-1]:
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            data = lines["data"]
            found.append((lines.get("event", ""), data if data == "[DONE]" else json.loads(data)))
        return found

    def running(self) -> int:
        return int(self.get("health").json["running"])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(how)
        return self.process.wait(30)

    def _send(self, request: urllib.request.Request) -> Reply:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Reply(answer.status, answer.headers, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read().decode())


@contextmanager
def serving(
    model: str,
    folder: Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    pace: float = 0.0,
) -> Iterator[Server]:
    """`mezzotint serve MODEL`, ready; killed at the end. pace: seconds that a toy's pass takes."""
    log = folder / "stderr.txt"
    start = ["-c", SLOW.format(pace)] if pace else ["-m", "mezzotint.cli"]
    command = [sys.executable, *start, "serve", model, "--port", "0", *options]
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True,
            env={**os.environ, "NO_PROXY": "*", **(env or {})},
        )  # fmt: skip
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            assert url, log.read_text()
            yield Server(url, process, log)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]


def until(happens: Any, seconds: float = 20.0) -> None:
    """Waits until `happens()` is true; fails after so long."""
    last = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.02)
