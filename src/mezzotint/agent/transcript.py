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

from mezzotint.agent.events import Event
from mezzotint.agent.workspace import INTERNAL, Workspace

_TABLES = """
create table if not exists requests (id integer primary key, at text, text text);
create table if not exists events (request integer, number integer, kind text, content text,
                                   primary key (request, number));
"""


@dataclass(frozen=True, slots=True)
class Request:
    """at: ISO 8601. events: (kind, content) in order, as `told` gives them."""

    at: str
    text: str
    events: tuple[tuple[str, dict[str, Any]], ...]


class Transcript:
    """The transcript of a workspace. Several processes may write at once."""

    def __init__(self, workspace: Workspace) -> None:
        workspace.make_folder(INTERNAL)
        self._file: Path = workspace.path(f"{INTERNAL}/transcript.db")

    def follow(self, text: str, at: datetime, events: Iterable[Event]) -> Iterator[Event]:
        """The events, each kept before it is passed on."""
        with closing(self._open()) as base:
            made = base.execute(
                "insert into requests (at, text) values (?, ?)", (at.isoformat(), text)
            )
            base.commit()
            for number, event in enumerate(events):
                kind, content = told(event)
                row = (made.lastrowid, number, kind, json.dumps(content, ensure_ascii=False))
                base.execute("insert into events values (?, ?, ?, ?)", row)
                base.commit()
                yield event

    def last(self, count: int) -> list[Request]:
        """The last requests, oldest first."""
        with closing(self._open()) as base:
            query = "select id, at, text from requests order by id desc limit ?"
            rows = base.execute(query, (count,)).fetchall()
            return [Request(at, text, self._events(base, i)) for i, at, text in reversed(rows)]

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


def told(event: Event) -> tuple[str, dict[str, Any]]:
    """An event as its kind and plain JSON."""
    content = json.loads(json.dumps(asdict(event), default=str))
    return type(event).__name__.lower(), content
