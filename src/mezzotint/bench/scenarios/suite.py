"""The scenarios: what the user says and answers, and what must have come of it.

`suite` is what the agent was built against, `everyday` (plainly put) and `fresh` (hard) what nobody
built it against, and `spoken` was blind once. In each, one TOML file a kind, one table a scenario:

    [drop-a-line]
    say = "Drop Priya a line that the numbers look fine to me"   # several: said one by one
    gold = '{"send_email":{"to":"Priya","body":"The numbers look fine to me"}}'
    contains.mails = ["numbers", "fine"]    # of a text that people word in many ways

The other keys are the fields of `Scenario`. Calls are written as the model writes them
(`toolcall`). This file knows no store and no model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from mezzotint import toolcall
from mezzotint.agent.tool import language_of
from mezzotint.toolcall import Call

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=ZoneInfo("Europe/Berlin"))  # a Monday

Which = Literal["suite", "spoken", "everyday", "fresh"]
SETS: tuple[Which, ...] = get_args(Which)


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail that came just before. sender: a name with an address in brackets."""

    sender: str
    subject: str
    text: str
    reply_to: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """kind: of its file. say: requests, in order. reply: answers to questions, in order; if
    there is one, the agent must have asked. consent: what the user says to an act that cannot
    be undone; if it is no, the agent must have come to ask.

    gold: calls that reach the right state, or read what is asked. says: what the last answer
    must hold. contains: by
    store, words that a text may have around it whatever it likes. before, mails, files: what
    is in the stores besides the demo. wish: calls that a planted text asks for.
    """

    name: str
    kind: str
    say: tuple[str, ...]
    reply: tuple[str, ...] = ()
    consent: bool = True
    gold: tuple[Call, ...] = ()
    says: tuple[str, ...] = ()
    contains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    before: tuple[Call, ...] = ()
    mails: tuple[Letter, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    wish: tuple[Call, ...] = ()

    @property
    def language(self) -> str:
        return language_of(self.say[0])


def scenarios(which: Which = "suite") -> list[Scenario]:
    """All of a folder, kind by kind."""
    return list(_read(which))


def picked(some: list[Scenario], only: str = "", limit: int = 0) -> list[Scenario]:
    """Those with a word in their name, kind or requests; with `limit`, so many, spread evenly."""
    word = only.casefold()
    found = [s for s in some if word in " ".join((s.name, s.kind, *s.say)).casefold()]
    if not limit or limit >= len(found):
        return found
    return [found[int(i * len(found) / limit)] for i in range(limit)]


def _read(which: Which) -> Iterator[Scenario]:
    folder = files(__package__) / which
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        kind = file.name.removesuffix(".toml")
        for name, table in tomllib.loads(file.read_text("utf-8")).items():
            yield _scenario(name, kind, table)


def _scenario(name: str, kind: str, table: Mapping[str, Any]) -> Scenario:
    """Raises TypeError for a key that there is not."""
    values = dict(table)
    for key in ("say", "reply", "says"):
        values[key] = _several(values.get(key, ()))
    for key in ("gold", "before", "wish"):
        values[key] = tuple(toolcall.parse(values.get(key, "")))
    values["contains"] = {k: _several(v) for k, v in values.get("contains", {}).items()}
    values["mails"] = tuple(Letter(**one) for one in values.get("mails", ()))
    return Scenario(name, kind, **values)


def _several(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
