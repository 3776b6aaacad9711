"""What reading calls found, as far as later calls may use it: numbers, names, days, and words.

A later order that says "it" means one of these. They are values and nothing else: no text in
them is read for orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from mezzotint.agent.tool import Outcome

# Arguments that name a thing, each with the keys under which what was read has its name.
_NAMED: Mapping[str, tuple[str, ...]] = {
    "title": ("title",),
    "file": ("path",),
    "path": ("path",),
    "old": ("path",),
    "name": ("name",),
    "task": ("task",),
    "device": ("name", "device"),
}
_NUMBERS = ("id", "message")


@dataclass(frozen=True)
class Found:
    """The outcomes of the reading calls that an order depends on. asked: the words of the order
    that they were for."""

    outcomes: tuple[Outcome, ...] = ()
    asked: str = ""

    def __bool__(self) -> bool:
        return bool(self.outcomes)

    def values(self, argument: str) -> list[Any]:
        """What an argument may be that speaks of what was found, each once, in order."""
        keys = ("id",) if argument in _NUMBERS else _NAMED.get(argument, ())
        found = [item[key] for item in self._items() for key in keys if key in item]
        return list(dict.fromkeys(value for value in found if isinstance(value, str | int)))

    def days(self) -> list[date]:
        """Days that what was found happens on."""
        found = [day for item in self._items() for v in item.values() if (day := _day(v))]
        return list(dict.fromkeys(found))

    def start(self) -> datetime | None:
        """When the one thing that was found begins."""
        starts = [item["start"] for item in self._items() if isinstance(item.get("start"), str)]
        timed = starts[0] if len(starts) == 1 and "T" in starts[0] else ""
        return datetime.fromisoformat(timed) if timed else None

    def words(self) -> str:
        """What was found, in words: of one thing the details that were asked for, else all; ""
        if it is several things."""
        items = list(self._items())
        if len(items) > 1:
            return ""
        if items:
            said = self.asked.casefold()
            named = [str(v) for k, v in items[0].items() if k.casefold() in said and k != "name"]
            if named:
                return ": ".join([*([str(items[0]["name"])] if "name" in items[0] else []), *named])
            for key in ("text", "line"):
                if items[0].get(key):
                    return str(items[0][key]).strip()
        if any(isinstance(v, list) for o in self.outcomes for v in _values(o)):
            return ""  # a bare list
        return " ".join(outcome.said for outcome in self.outcomes if outcome.said)

    def labels(self) -> dict[int, str]:
        """Numbered things, as a user tells them apart."""
        return {
            item["id"]: _label(item) for item in self._items() if isinstance(item.get("id"), int)
        }

    def _items(self) -> Iterator[Mapping[str, Any]]:
        for outcome in self.outcomes:
            if isinstance(outcome.data, Mapping):
                lists = [v for v in outcome.data.values() if isinstance(v, list)]
                things: Sequence[Any] = lists[0] if lists else [outcome.data]
                yield from (thing for thing in things if isinstance(thing, Mapping))


def _values(outcome: Outcome) -> list[Any]:
    return [*outcome.data.values()] if isinstance(outcome.data, Mapping) else []


def _day(value: Any) -> date | None:
    try:
        return datetime.fromisoformat(value).date() if isinstance(value, str) else None
    except ValueError:
        return None


def _label(item: Mapping[str, Any]) -> str:
    who = item.get("from") or item.get("to") or "?"
    return f"{item['id']} {who}: {item.get('subject', '')} ({item.get('date', '?')})"
