"""What an agent was asked and did, step by step, in a SQLite file of the workspace.

Every event is kept as it came, in order, so that a run can be read again. Written as it
happens: after a kill the file holds all that was told before. No passwords come here: a
workspace's settings name variables that hold them, and tools see no others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mezzotint.agent.events import Event
from mezzotint.agent.workspace import INTERNAL, Workspace

_REPLIES = 8  # of one request that are looked for
_TABLES = """
create table if not exists requests (id integer primary key, at text, text text);
create table if not exists events (request integer, number integer, kind text, content text,
                                   primary key (request, number));
"""


@dataclass(frozen=True, slots=True)
class Request:
    """id: its number in the file. at: ISO 8601. events: (kind, content) in order, as `told`
    gives them."""

    id: int
    at: str
    text: str
    events: tuple[tuple[str, dict[str, Any]], ...]


class Transcript:
    """The transcript of a workspace. Several processes may write at once."""

    def __init__(self, workspace: Workspace) -> None:
        workspace.make_folder(INTERNAL)
        self._file: Path = workspace.path(f"{INTERNAL}/transcript.db")

    def follow(
        self, text: str, at: datetime, events: Iterable[Event], onto: int = 0
    ) -> Iterator[Event]:
        """The events, each kept before it is passed on. onto: a request that they go on with."""
        with closing(self._open()) as base:
            request = onto or self._begun(base, text, at)
            first = len(self._events(base, request))
            lock = FileLock(self._lock(request))
            with lock:  # a process that is killed lets go of it
                for number, event in enumerate(events, first):
                    kind, content = told(event)
                    row = (request, number, kind, json.dumps(content, ensure_ascii=False))
                    base.execute("insert into events values (?, ?, ?, ?)", row)
                    base.commit()
                    yield event
            self._lock(request).unlink(missing_ok=True)

    def busy(self, request: int) -> bool:
        """Whether a process is at it now."""
        try:
            with FileLock(self._lock(request), timeout=0):
                return False
        except Timeout:
            return True

    def last(self, count: int) -> list[Request]:
        """The last requests, oldest first."""
        with closing(self._open()) as base:
            query = "select id, at, text from requests order by id desc limit ?"
            rows = base.execute(query, (count,)).fetchall()
            return [Request(i, at, text, self._events(base, i)) for i, at, text in reversed(rows)]

    def last_exchange(self) -> list[Request]:
        """The last request, with the replies to questions about it, oldest first."""
        rows = self.last(_REPLIES)
        first = next((i for i in range(len(rows) - 1, -1, -1) if _begins(rows[i])), 0)
        return rows[first:]

    def _begun(self, base: sqlite3.Connection, text: str, at: datetime) -> int:
        insert = "insert into requests (at, text) values (?, ?)"
        made = base.execute(insert, (at.isoformat(), text))
        base.commit()
        return int(made.lastrowid or 0)

    def _lock(self, request: int) -> Path:
        return self._file.with_name(f"request-{request}.lock")

    def _open(self) -> sqlite3.Connection:
        base = sqlite3.connect(self._file, timeout=10)
        base.execute("pragma journal_mode=wal")
        base.executescript(_TABLES)
        return base

    def _events(
        self, base: sqlite3.Connection, request: int
    ) -> tuple[tuple[str, dict[str, Any]], ...]:
        query = "select kind, content from events where request = ? order by number"
        return tuple((kind, json.loads(text)) for kind, text in base.execute(query, (request,)))


def _begins(request: Request) -> bool:
    """Whether it is a request of its own: a reply goes on with tools that were chosen before."""
    return not request.events or request.events[0][0] == "chosen"


def told(event: Event) -> tuple[str, dict[str, Any]]:
    """An event as its kind and plain JSON."""
    content = json.loads(json.dumps(asdict(event), default=str))
    return type(event).__name__.lower(), content
