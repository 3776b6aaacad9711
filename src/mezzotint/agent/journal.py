"""The journal: every write of a tool goes through it, so that it can be taken back.

    .mezzotint/journal.jsonl    one line an entry, only ever appended to, flushed to disk
    .mezzotint/before/          what was replaced or deleted
    .mezzotint/lock             held while a call writes or an undo runs

A run is what one request did; it is made of calls; a call is done wholly or not at all. Each
change is announced in the journal before it is made, with what it replaces. So a process that
is killed leaves whole files, and a call whose end the journal does not hold: the next one to
take the lock takes that call back. What was done outside (a mail that was sent) is journalled
and cannot be undone.

Changes are reverted only where the state is still what the run left: what the user has changed
since is kept. This file knows bytes and places, not events or mails.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from filelock import FileLock, Timeout

from mezzotint.agent.entries import CLOSING, Entry, calls_of, done_of, past_of, state_of
from mezzotint.agent.entries import Done as Done
from mezzotint.agent.entries import Past as Past
from mezzotint.agent.workspace import INTERNAL, Workspace
from mezzotint.errors import MezzotintError, UsageError

_LOG = f"{INTERNAL}/journal.jsonl"
_PATIENCE = 10.0  # seconds to wait for another process's call


class Place(Protocol):
    """Where named bytes are kept: the workspace, or a server that holds a store."""

    def read(self, path: str) -> bytes | None: ...

    def put(self, path: str, data: bytes | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did. restored: sentences of the calls taken back. kept: what could not be
    taken back, and why. Both empty: there was nothing to undo."""

    request: str = ""
    restored: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Journal:
    """The journal of a workspace. places: servers whose items are journalled too, by name."""

    def __init__(self, workspace: Workspace, places: Mapping[str, Place] | None = None) -> None:
        self.workspace = workspace
        self.places = dict(places or {})
        self._threads = threading.RLock()

    def run(self, request: str = "", id: str = "") -> Run:
        """A new run, or one that goes on under its `id`. Nothing is written before its call."""
        if id:
            kept = sum(entry["run"] == id for entry in self._entries())
            return Run(self, id, request, _kept=kept)
        stamp = datetime.now(UTC)
        return Run(self, f"{stamp:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}", request)

    def recover(self) -> list[Done]:
        """Take back the call that a killed process left open; that call, or nothing.

        Every call and undo does this by itself. Raises UsageError as `locked` does.
        """
        with self.locked() as interrupted:
            return interrupted

    def undo(self) -> Undone:
        """Take back the last run that changed something and was not taken back yet."""
        with self.locked():
            entries = self._entries()
            runs = [call[0]["run"] for call in calls_of(entries) if state_of(call) == "done"]
            if not runs:
                return Undone()
            mine = calls_of([e for e in entries if e["run"] == runs[-1]])
            which = [number for number, call in enumerate(mine) if state_of(call) == "done"]
            self.append({"kind": "undo", "run": runs[-1], "calls": which})
            return self._take_back(runs[-1], which)

    def undo_calls(self, run: str, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Undone:
        """Take back some calls of a run, by tool and arguments, the last that were so."""
        with self.locked():
            mine = calls_of([e for e in self._entries() if e["run"] == run])
            which = []
            for tool, arguments in calls:
                same = [
                    number
                    for number, call in enumerate(mine)
                    if state_of(call) == "done"
                    and number not in which
                    and (call[0]["tool"], call[0]["arguments"]) == (tool, dict(arguments))
                ]
                which += same[-1:]
            if not which:
                return Undone()
            self.append({"kind": "undo", "run": run, "calls": which})
            return self._take_back(run, which)

    def past(self) -> list[Past]:
        """Every run that called a writing tool, the oldest first."""
        runs: dict[str, list[Entry]] = {}
        for entry in self._entries():
            runs.setdefault(entry["run"], []).append(entry)
        return [past_of(run, entries) for run, entries in runs.items()]

    @contextmanager
    def locked(self) -> Iterator[list[Done]]:
        """Hold the workspace against other processes and threads; yields what was open.

        Raises UsageError if another process writes for longer than ten seconds.
        """
        with self._threads:
            self.workspace.make_folder(f"{INTERNAL}/before")
            lock = FileLock(self.workspace.path(f"{INTERNAL}/lock"), timeout=_PATIENCE)
            try:
                lock.acquire()
            except Timeout:
                raise UsageError(
                    f"another process is writing in the workspace {self.workspace.root}",
                    "wait for it to end, or stop it",
                ) from None
            try:
                yield self._recover()
            finally:
                lock.release()

    def append(self, entry: Entry) -> None:
        """Add an entry to the log, durably. Under the lock only."""
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"
        log = self.workspace.path(_LOG)
        with open(log, "a+b") as out:
            if out.tell() and _last_byte(out) != b"\n":
                out.write(b"\n")  # the torn line of a killed process
            out.write(line.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())

    def place(self, name: str) -> Place:
        """The workspace for "", else a server. Raises UsageError for an unknown one."""
        if name and name not in self.places:
            raise UsageError(f"{name!r} is not connected now")
        return self.places[name] if name else self.workspace

    def _entries(self) -> list[Entry]:
        entries = []
        for line in (self.workspace.read(_LOG) or b"").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                continue  # torn: what it announced was not begun
        return entries

    def _recover(self) -> list[Done]:
        entries = self._entries()
        if not entries or entries[-1]["kind"] in CLOSING:
            return []
        last = entries[-1]
        if last["kind"] == "undo":
            self._take_back(last["run"], last.get("calls", ()))
            return []
        call = calls_of(entries)[-1]
        self.roll_back(call, "interrupted")
        return [done_of(call)]

    def roll_back(self, call: list[Entry], why: str) -> None:
        """Revert the changes of one call and close it."""
        kept = self._reverted(call)
        self.append({"kind": "rolled back", "run": call[0]["run"], "said": why, "kept": kept})

    def _take_back(self, run: str, which: Sequence[int]) -> Undone:
        """which: numbers of calls of the run."""
        restored: list[str] = []
        kept: list[str] = []
        calls = calls_of([e for e in self._entries() if e["run"] == run])
        for number in sorted(which, reverse=True):
            call = done_of(calls[number])
            problems = [*self._reverted(calls[number]), *call.outside]
            kept += problems
            restored += [] if problems else [call.said or call.tool]
        self.append({"kind": "undone", "run": run, "calls": list(which), "kept": kept})
        return Undone(calls[0][0]["request"], tuple(restored), tuple(kept))

    def _reverted(self, call: list[Entry]) -> list[str]:
        return [problem for entry in reversed(call) if (problem := self._revert(entry))]

    def _revert(self, entry: Entry) -> str:
        """Make one change unmade; doing it twice is as good as once. What kept it, or ""."""
        try:
            match entry["kind"]:
                case "write":
                    return self._unwrite(entry)
                case "move":
                    return self._unmove(entry["path"], entry["to"])
                case "folder":
                    self.workspace.remove_folder(entry["path"])
        except (MezzotintError, OSError) as e:
            return f"{entry['path']}: {e}"
        return ""

    def _unwrite(self, entry: Entry) -> str:
        place, path = self.place(entry["place"]), entry["path"]
        before = self.workspace.read(entry["before"]) if entry["before"] else None
        now = place.read(path)
        if now == before:
            return ""
        if entry["before"] and before is None:
            return f"{path}: what it was is lost"
        if _digest(now) != entry["after"]:
            return f"{path}: changed since"
        place.put(path, before)
        return ""

    def _unmove(self, source: str, target: str) -> str:
        there = self.workspace.status(target) is not None
        back = self.workspace.status(source) is not None
        if not there:
            return "" if back else f"{target}: gone since"
        if back:
            return f"{source}: made anew since"
        self.workspace.rename(target, source)
        return ""


@dataclass
class Run:
    """What one request does. Tools get it as `context.writing()` and write with it."""

    journal: Journal
    id: str
    request: str
    _call: list[Entry] = field(default_factory=list)
    _kept: int = 0

    @contextmanager
    def call(self, tool: str, arguments: Mapping[str, Any]) -> Iterator[Call]:
        """One call that writes. Calls of a run, and of other processes, wait for each other.

        What it changed is taken back if the body raises.
        """
        with self.journal.locked():
            self._call = []
            at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            entry = {"kind": "call", "tool": tool, "arguments": dict(arguments), "at": at}
            self._note(entry | {"request": self.request})
            call = Call()
            try:
                yield call
            except BaseException as e:
                self.journal.roll_back(self._call, str(e) or type(e).__name__)
                raise
            self._note({"kind": "done", "said": call.said})

    def write(self, path: str, data: bytes, place: str = "") -> None:
        """Create or replace an item. place: "" for the workspace, or a server's name."""
        self._write(path, data, place)

    def delete(self, path: str, place: str = "") -> None:
        """Delete an item; in the workspace a folder too. Raises UsageError if it is not there."""
        if place:
            self._write(path, None, place)
        else:
            self.move(path, self._keep())

    def move(self, source: str, target: str) -> None:
        """Move or rename a file or folder of the workspace.

        Raises UsageError if `source` is not there or `target` is.
        """
        space = self.journal.workspace
        if space.status(source) is None:
            raise UsageError(f"{source!r} is not there")
        if space.status(target) is not None:
            raise UsageError(f"{target!r} is there already")
        self.folder(target.rpartition("/")[0])
        self._note({"kind": "move", "path": source, "to": target})
        space.rename(source, target)

    def folder(self, path: str) -> None:
        """Make a folder and those above it, where missing."""
        names = path.split("/") if path else []
        for depth in range(1, len(names) + 1):
            above = "/".join(names[:depth])
            if self.journal.workspace.status(above) is None:
                self._note({"kind": "folder", "path": above})
                self.journal.workspace.make_folder(above)

    def outside(self, what: str) -> None:
        """Announce an act that cannot be undone, a sentence; do it after this returns."""
        self._note({"kind": "outside", "what": what})

    def _write(self, path: str, data: bytes | None, place: str) -> None:
        where = self.journal.place(place)
        old, before = where.read(path), ""
        if old is not None:
            before = self._keep()
            self.journal.workspace.put(before, old)
        if not place:
            self.folder(path.rpartition("/")[0])
        entry = {"kind": "write", "place": place, "path": path, "before": before}
        self._note(entry | {"after": _digest(data)})
        where.put(path, data)
        if place and (kept := _digest(where.read(path))) != _digest(data):
            self._note(entry | {"after": kept})  # a server keeps an item in its own words

    def _keep(self) -> str:
        self._kept += 1
        return f"{INTERNAL}/before/{self.id}-{self._kept}"

    def _note(self, entry: Entry) -> None:
        entry = entry | {"run": self.id}
        self.journal.append(entry)
        self._call.append(entry)


@dataclass
class Call:
    """A call that is being made. said: set it to what was done, in a sentence."""

    said: str = ""


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _last_byte(file: Any) -> bytes:
    file.seek(-1, os.SEEK_END)
    byte: bytes = file.read(1)
    return byte
