"""The entries of a journal, and what they tell of the calls of the past.

An entry is a line of the journal; a call is the entries from its announcement to its end, and
the one that took it back. This file reads entries; writing and reverting is the journal's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Entry = dict[str, Any]
CLOSING = ("done", "rolled back", "undone")


@dataclass(frozen=True, slots=True)
class Done:
    """One call of the past. state: done, rolled back, undone, or open (of a killed process).
    outside: what it did outside the workspace, if anything."""

    tool: str
    arguments: Mapping[str, Any]
    said: str
    state: str
    outside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """A run as the journal tells it. at: ISO 8601, UTC."""

    run: str
    at: str
    request: str
    calls: tuple[Done, ...]


def calls_of(entries: list[Entry]) -> list[list[Entry]]:
    """Entries by call, each beginning with its announcement; taken back, it ends with that."""
    calls: list[list[Entry]] = []
    numbers: dict[str, list[int]] = {}
    for entry in entries:
        mine = numbers.setdefault(entry["run"], [])
        match entry["kind"]:
            case "call":
                mine.append(len(calls))
                calls.append([entry])
            case "undone":
                for number in entry.get("calls", range(len(mine))):
                    calls[mine[number]].append(entry)
            case "undo":
                pass
            case _:
                calls[mine[-1]].append(entry)
    return calls


def state_of(call: list[Entry]) -> str:
    end = call[-1]["kind"]
    return end if end in CLOSING else "open"


def done_of(call: list[Entry]) -> Done:
    first = call[0]
    end = next((e for e in call if e["kind"] in ("done", "rolled back")), None)
    return Done(
        tool=first["tool"],
        arguments=first["arguments"],
        said=end["said"] if end else "",
        state=state_of(call),
        outside=tuple(e["what"] for e in call if e["kind"] == "outside"),
    )


def past_of(run: str, entries: list[Entry]) -> Past:
    first = entries[0]
    return Past(run, first["at"], first["request"], tuple(map(done_of, calls_of(entries))))
