"""The real server on a toy that takes its time, with an agent that writes what requests name.

python tests/page_server.py PORT      (0: a free one; the address is printed once it listens)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import environ
from pathlib import Path
from subprocess import PIPE, Popen

from mezzotint import toolcall
from mezzotint.agent.events import Timing
from mezzotint.agent.tool import Tool
from mezzotint.agent.writer import Line
from mezzotint.backend import Pass
from mezzotint.backend.toy import FAMILIES, ToyModel, ToySession
from mezzotint.canvas import FloatArray, IntArray
from mezzotint.serve import agent_routes, server
from mezzotint.serve.agent_writer import Tell
from mezzotint.serve.app import create_app
from mezzotint.serve.settings import Settings
from mezzotint.toolcall import Call

PASS = 0.01  # seconds that a pass takes

NOTE = Call("create_note", {"text": "bring the card"})
MAIL = Call("send_email", {"to": "Anna", "subject": "Late", "body": "I am late"})
FIND = Call("find_contact", {"name": "David"})


class Slow(ToySession):
    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        time.sleep(PASS)
        return super().score(rows, want)


@dataclass(frozen=True, slots=True)
class SlowToy(ToyModel):
    def session(self) -> ToySession:
        made = ToyModel.session(self)
        return Slow(made._vocab, made._seed, made._bias)


@dataclass
class Scripted:
    """Writes the calls whose words are in the request, and shows its canvas as it does."""

    tell: Tell

    def write(
        self, messages: Sequence[dict[str, str]], tools: Sequence[Tool], lines: Sequence[Line] = ()
    ) -> tuple[str, Timing]:
        asked = messages[1]["content"]
        words = {"note": NOTE, "mail": MAIL, "David": FIND}
        text = toolcall.write([call for word, call in words.items() if word in asked])
        if "crash" in asked:
            raise FileNotFoundError(f"{environ['MEZZOTINT_HOME']}/secret")
        for number in range(1, 40 if "slowly" in asked else 4):
            time.sleep(PASS * 5)
            cells = [
                {"text": text[:8], "state": "written", "confidence": 0.9},
                {"text": "", "state": "masked", "confidence": 0.0},
            ]
            self.tell("canvas", {"pass": number, "ms": 5, "rows": 4, "settled": 1, "cells": cells})
        return text or "Done.", Timing(0.02, 3, 12, 4)


def main(port: int) -> None:
    agent_routes.talks_of = lambda desk: agent_routes.Talks(Scripted)  # type: ignore[assignment,arg-type]
    settings = Settings("toy", port=port, api_key=environ.get("MEZZOTINT_API_KEY"))
    bound = server.listen(settings)
    app = create_app(SlowToy(FAMILIES["toy-window"]), settings)
    server.run(app, bound, settings, lambda: print(server.url(bound), flush=True))


@contextmanager
def served(home: Path, port: int = 0, **env: str) -> Iterator[tuple[str, Popen[str]]]:
    """The address of such a server in a process of its own, and the process."""
    with running([sys.executable, __file__, str(port)], home, **env) as both:
        yield both


@contextmanager
def running(command: Sequence[str], home: Path, **env: str) -> Iterator[tuple[str, Popen[str]]]:
    """A process that prints its address once it serves; killed at the end."""
    env = {**environ, "MEZZOTINT_HOME": str(home), **env}
    process = Popen(command, stdout=PIPE, text=True, env=env)
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert url, "the server did not start"
        yield url, process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
