"""`mezzotint bench serve`: a crowd at our server, and our server beside llama.cpp's.

The crowd: 64 clients and 2,000 requests, some malformed, some given up. Every good one must be
answered as it is alone, and memory must stay where it was. The race: 1, 4 and 16 clients with the
same prompts and greedy decoding, both servers on every core, llama.cpp's (the one of its Python
package, which answers one request at a time) on a GGUF of the same weights.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from mezzotint.bench import crowd
from mezzotint.errors import BackendError

CLIENTS = (1, 4, 16)
_THINGS = ("rivers", "lamps", "clocks", "trains", "maps", "seeds", "bridges", "letters")
_ASKED = (
    "Say what {} are for.",
    "Name three kinds of {}.",
    "Who made the first {}?",
    "Write a line about {}.",
)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Seconds are of good requests. memory: bytes resident, after a tenth and at the end."""

    clients: int
    requests: int
    good: int
    malformed: int
    left: int
    refused: int
    wrong: list[str]
    p50: float
    p95: float
    memory: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Speed:
    """seconds: median of an answer."""

    server: str
    clients: int
    tokens_per_second: float
    seconds: float


def bodies(model: str, tokens: int) -> list[dict[str, Any]]:
    """Greedy requests that differ."""
    texts = [form.format(thing) for thing in _THINGS for form in _ASKED]
    return [
        {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": tokens,
            "temperature": 0,
        }
        for text in texts
    ]


@contextmanager
def started(command: Sequence[str], url: str, seconds: float = 600.0) -> Iterator[int]:
    """A server's process id, once it lists its models; it is ended afterwards.

    Raises BackendError if it does not come up.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        last = time.monotonic() + seconds
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > last:
                raise BackendError(f"it did not start: {' '.join(command[:4])} …")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def ours(model: str, port: int, slots: int, threads: int) -> list[str]:
    command = [sys.executable, "-m", "mezzotint.cli", "serve", model, "--port", str(port)]
    return [*command, "--slots", str(slots), "--threads", str(threads), "--quiet"]


def theirs(gguf: Path, port: int, threads: int) -> list[str]:
    """llama.cpp's server, as its package starts it."""
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(gguf)]
    count = str(threads or psutil.cpu_count(logical=False) or 1)
    alone = ["--interrupt_requests", "false"]  # a new request does not end a running one
    return [*command, *alone, "--port", str(port), "--n_threads", count, "--n_ctx", "4096"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stand(
    model: str, clients: int = 64, requests: int = 2000, tokens: int = 24, threads: int = 0
) -> Crowd:
    """A crowd at a server of `model`."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    asked = bodies(model, tokens)
    with started(ours(model, port, 8, threads), url) as pid:
        alone = [crowd.ask(url, body).text for body in asked]
        first = crowd.crowd(url, asked, alone, clients, requests // 10, 0)
        before = psutil.Process(pid).memory_info().rss
        rest = crowd.crowd(url, asked, alone, clients, requests - requests // 10, 1)
        after = psutil.Process(pid).memory_info().rss
    answers = sorted(a.seconds for a in (*first.answers, *rest.answers))
    return Crowd(
        clients,
        requests,
        len(answers),
        first.malformed + rest.malformed,
        first.left + rest.left,
        first.refused + rest.refused,
        first.wrong + rest.wrong,
        _quantile(answers, 0.5),
        _quantile(answers, 0.95),
        (before, after),
    )


def race(model: str, gguf: Path, tokens: int = 48, threads: int = 0) -> list[Speed]:
    """Both servers with 1, 4 and 16 clients, in turns and twice; a server's better run counts."""
    found: dict[tuple[str, int], Speed] = {}
    for server in ("mezzotint", "llama.cpp") * 2:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        asked = bodies(model, tokens)
        command = ours(model, port, max(CLIENTS), threads)
        if server == "llama.cpp":
            asked = [{**body, "repeat_penalty": 1.0} for body in asked]  # it has 1.1
            command = theirs(gguf, port, threads)
        with started(command, url):
            for clients in CLIENTS:
                rate, seconds = crowd.throughput(url, asked, clients)
                made = Speed(server, clients, round(rate, 2), round(seconds, 4))
                best = found.setdefault((server, clients), made)
                if made.tokens_per_second > best.tokens_per_second:
                    found[server, clients] = made
    return list(found.values())


def _quantile(ordered: Sequence[float], part: float) -> float:
    return round(ordered[min(int(part * len(ordered)), len(ordered) - 1)], 4) if ordered else 0.0


def report(stood: Crowd, raced: Sequence[Speed]) -> dict[str, Any]:
    return {"crowd": asdict(stood), "race": [asdict(one) for one in raced]}


def table(stood: Crowd, raced: Sequence[Speed]) -> str:
    """A few lines for a person."""
    before, after = (size / 2**20 for size in stood.memory)
    lines = [
        f"{stood.clients} clients, {stood.requests} requests: {stood.good} good,"
        f" {stood.malformed} malformed, {stood.left} given up, {stood.refused} asked to wait",
        f"good ones: median {stood.p50:.2f} s, p95 {stood.p95:.2f} s",
        f"memory {before:.0f} MiB after a tenth, {after:.0f} MiB at the end",
        f"{len(stood.wrong)} wrong" + "".join(f"\n  {what}" for what in stood.wrong[:10]),
    ]
    for one in raced:
        lines.append(
            f"{one.server:10} {one.clients:3} clients {one.tokens_per_second:8.1f} tokens/s,"
            f" an answer {one.seconds:.2f} s"
        )
    return "\n".join(lines)
