"""Values for the slots of a grammar: what is said, and what a tool is given for it.

A kind is a word list or a table of grammar/words.toml or wide.toml, or one of: date, time, moment,
minutes, seconds, percent, degrees, amount, int:LOW-HIGH. Its JSON Schema is part of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatch
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

from mezzotint.adapt.data import times
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.times import Said

_SECONDS = {
    "seconds": (1, 600),
    "seconds:0": (0, 40),
    "seconds:1": (41, 600),
    "seconds:short": (2, 15),
}


def read(name: str) -> dict[str, Any]:
    """A TOML file of the grammar folder."""
    return tomllib.loads((files(__package__) / "grammar" / name).read_text("utf-8"))


def named(pattern: str) -> list[str]:
    """Names of the files of the grammar folder that fit a pattern, sorted."""
    folder = files(__package__) / "grammar"
    return sorted(file.name for file in folder.iterdir() if fnmatch(file.name, pattern))


@cache
def read_once(name: str) -> Mapping[str, Any]:
    """`read`, kept."""
    return read(name)


@cache
def _words() -> Mapping[str, Any]:
    """Both files of words, each language's lists and the tables together."""
    one, wide = read("words.toml"), read("wide.toml")
    return {part: {**one[part], **wide[part]} for part in one}


@dataclass(frozen=True)
class Scene:
    """What a request is said in: its language ("en" or "zh"), its moment, its randomness."""

    language: str
    now: datetime
    rng: Random

    def say(self, kind: str) -> Said:
        """A value of `kind`. Raises KeyError for an unknown one."""
        language, rng = self.language, self.rng
        if kind.startswith("int:"):
            low, high = map(int, kind[4:].split("-"))
            return _count(rng.randint(low, high), language, rng)
        match kind:
            case "date":
                return times.date(language, rng, self.now)
            case "time":
                return times.time(language, rng)
            case "moment":
                return times.moment(language, rng, self.now)
            case "minutes":
                return times.minutes(language, rng)
            case "seconds" | "seconds:0" | "seconds:1" | "seconds:short":
                return times.seconds(language, rng, _SECONDS[kind])
            case "percent":
                return _percent(language, rng)
            case "degrees":
                return _degrees(language, rng)
            case "amount":
                return _amount(rng)
        if kind in _words()["map"]:
            table = _words()["map"][kind][language]
            text = rng.choice(list(table))
            return Said(text, text, table[text])
        text = self.word(kind)
        return Said(text, text, text)

    def word(self, kind: str) -> str:
        """A word of a list, which may itself be built of others."""
        lists = _words()[self.language]
        entry = lists.get(kind, _words()["en"].get(kind))
        if entry is None:
            raise KeyError(kind)
        template = self.rng.choice(_branches(entry) if isinstance(entry, str) else entry)
        text = expand(template, self.rng, self._plain)
        return text.lower() if kind == "email" else text

    def _plain(self, kind: str) -> str:
        if kind.startswith("int:"):
            low, high = map(int, kind[4:].split("-"))
            return str(self.rng.randint(low, high))
        return self.say(kind).bare


def draw_scene(language: str, rng: Random) -> Scene:
    """A scene at some minute of three years."""
    now = datetime(2024, 1, 1) + timedelta(minutes=rng.randrange(3 * 365 * 24 * 60))
    return Scene(language, now, rng)


@cache
def _branches(entry: str) -> list[str]:
    return entry.split("|")


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind's values."""
    if kind.startswith("int:") or kind in ("minutes", "degrees", *_SECONDS):
        return {"type": "integer"}
    if kind == "percent":
        return {"type": "integer", "minimum": 0, "maximum": 100}
    if kind == "amount":
        return {"type": "number"}
    if kind in ("date", "time", "moment"):
        return {"type": "string", "format": {"moment": "date-time"}.get(kind, kind)}
    tables = _words()["map"].get(kind)
    if tables is None:
        return {"type": "string"}
    values = list(dict.fromkeys([*tables["en"].values(), *tables["zh"].values()]))
    if all(isinstance(value, bool) for value in values):
        return {"type": "boolean"}
    if all(isinstance(value, int | float) for value in values):
        return {"type": "number"}
    return {"type": "string", "enum": values}


def _count(n: int, language: str, rng: Random) -> Said:
    text = times.number(n, language, rng, counting=True)
    return Said(text, text, n)


def _percent(language: str, rng: Random) -> Said:
    n = rng.choice([rng.randrange(5, 101, 5), rng.randint(1, 100)])
    if language == "zh":
        text = rng.choice([f"{n}%", f"{n}%", f"百分之{times.chinese(n) if n < 100 else '百'}"])
    else:
        text = rng.choice(
            [f"{n}%", f"{n} percent", f"{times.english(n) if n < 100 else n} percent"]
        )
    return Said(text, text, n)


def _degrees(language: str, rng: Random) -> Said:
    n = rng.randint(16, 28)
    text = f"{times.number(n, language, rng)}度" if language == "zh" else f"{n} degrees"
    return Said(text, text, n)


def _amount(rng: Random) -> Said:
    n: float = rng.choice(
        [rng.randint(2, 50), rng.randrange(50, 1000, 10), rng.randint(100, 9999) / 100]
    )
    n = int(n) if n == int(n) else n
    return Said(str(n), str(n), n)
