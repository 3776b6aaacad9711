"""Many clients at one server: what they ask, how they misbehave, and what it costs them.

Clients are threads over plain HTTP, so that any OpenAI server can be asked. It knows URLs, not
how a server is started.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any
from urllib.parse import urlsplit

PATH = "/v1/chat/completions"
WAIT = 600.0  # seconds on a silent connection
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """seconds: to the last byte. tokens: the server's count, where it tells one."""

    status: int
    text: str
    seconds: float
    tokens: int = 0
    retry_after: float = 0.0


def ask(url: str, body: Body, timeout: float = WAIT) -> Answer:
    """Ask for a chat completion; a stream is put together."""
    began = time.perf_counter()
    connection = _connect(url, timeout)
    try:
        _send(connection, json.dumps(body).encode())
        reply = connection.getresponse()
        streams = "event-stream" in (reply.getheader("Content-Type") or "")
        if reply.status == 200 and streams:
            return _streamed(reply, began)
        made = json.loads(reply.read())
        seconds = time.perf_counter() - began
        if reply.status != 200:
            wait = float(reply.getheader("Retry-After") or 0)
            return Answer(reply.status, "", seconds, retry_after=wait)
        text = made["choices"][0]["message"]["content"] or ""
        return Answer(200, text, seconds, made["usage"]["completion_tokens"])
    finally:
        connection.close()


def _streamed(reply: http.client.HTTPResponse, began: float) -> Answer:
    text, status = "", 200
    for line in reply:
        if line.startswith(b"data: {"):
            chunk = json.loads(line[6:])
            status = 500 if "error" in chunk else status
            text += "".join(c["delta"].get("content") or "" for c in chunk.get("choices", ()))
    return Answer(status, text, time.perf_counter() - began)


def leave(url: str, body: Body, after: float) -> None:
    """Ask, and go away after so many seconds without reading the answer."""
    connection = _connect(url, WAIT)
    _send(connection, json.dumps(body).encode())
    time.sleep(after)
    connection.close()


def malformed(url: str, body: Body, kind: int) -> int:
    """Ask what is wrong in one of four ways; the status."""
    raw = json.dumps(body).encode()
    wrong = (
        raw[:-5],
        json.dumps({**body, "nonsense": 1}).encode(),
        json.dumps({**body, "temperature": "hot"}).encode(),
        json.dumps({**body, "messages": []}).encode(),
    )[kind % 4]
    connection = _connect(url, WAIT)
    try:
        _send(connection, wrong)
        return connection.getresponse().status
    finally:
        connection.close()


def _connect(url: str, timeout: float) -> http.client.HTTPConnection:
    place = urlsplit(url)
    return http.client.HTTPConnection(place.hostname or "", place.port, timeout=timeout)


def _send(connection: http.client.HTTPConnection, raw: bytes) -> None:
    connection.request("POST", PATH, raw, {"Content-Type": "application/json"})


@dataclass
class Tally:
    """What a crowd saw. answers: of good requests. wrong: what should not be, in words."""

    answers: list[Answer] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: int = 0
    left: int = 0
    malformed: int = 0


def crowd(
    url: str, bodies: Sequence[Body], alone: Sequence[str], clients: int, requests: int, seed: int
) -> Tally:
    """`clients` threads share `requests`: of ten, seven good (some streamed), one malformed, two
    given up. alone: the texts that good ones must have. A refusal for want of room is tried again.
    """
    tally, lock = Tally(), threading.Lock()

    def work(number: int) -> None:
        try:
            _one(url, number, bodies, alone, Random(f"{seed}/{number}"), tally, lock)
        except (OSError, http.client.HTTPException, ValueError) as error:
            with lock:
                tally.wrong.append(f"request {number}: {type(error).__name__}: {error}")

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(requests)))
    return tally


def _one(
    url: str,
    number: int,
    bodies: Sequence[Body],
    alone: Sequence[str],
    rng: Random,
    tally: Tally,
    lock: threading.Lock,
) -> None:
    which, kind = rng.randrange(len(bodies)), rng.randrange(10)
    body = {**bodies[which], "stream": rng.random() < 0.5}
    if kind == 7:
        status = malformed(url, body, number)
        with lock:
            tally.malformed += 1
            if status != 400:
                tally.wrong.append(f"request {number}: malformed, and answered with {status}")
        return
    if kind > 7:
        leave(url, body, rng.uniform(0.0, 0.2))
        with lock:
            tally.left += 1
        return
    for answer in _until_taken(url, body):
        with lock:
            tally.refused += answer.status == 429
    with lock:
        tally.answers.append(answer)
        if answer.status != 200:
            tally.wrong.append(f"request {number}: status {answer.status}")
        elif answer.text != alone[which]:
            tally.wrong.append(f"request {number}: another text than alone")


def _until_taken(url: str, body: Body) -> Iterator[Answer]:
    """Every answer, the last of them not a refusal for want of room."""
    while True:
        answer = ask(url, body)
        yield answer
        if answer.status != 429:
            return
        time.sleep(answer.retry_after)


def throughput(url: str, bodies: Sequence[Body], clients: int) -> tuple[float, float]:
    """Tokens a second, and the median seconds of an answer, of `clients` who ask all of `bodies`
    between them. Tokens are the server's own count."""
    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(partial(ask, url), bodies))
    seconds = time.perf_counter() - began
    each = sorted(answer.seconds for answer in answers)
    return sum(a.tokens for a in answers) / seconds, each[len(each) // 2]
