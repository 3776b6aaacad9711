"""What the arguments of a call may be, as far as the request and what was read decide it.

A small model copies worse than it chooses. So what can only be copied is an enumeration in the
schema that the call is held to: the moments of the order, the words that it hands on, the number
of the mail that was found. Where there is one, it costs no pass. What is left open, the model
writes. This file makes schemas; it calls neither tools nor models.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mezzotint.agent import when
from mezzotint.agent.choose import words_of
from mezzotint.agent.clauses import Clause, clauses
from mezzotint.agent.found import Found
from mezzotint.agent.ground import Moments, content_of, narrowed, shaped
from mezzotint.agent.handed import content, task
from mezzotint.agent.lengths import anchored, lasting, minutes, offset
from mezzotint.agent.levels import leveled
from mezzotint.agent.mentioned import Values, about_what, named, person, plainly, thing
from mezzotint.agent.tool import Context, Tool
from mezzotint.agent.unsaid import always, missing, options, rest, unsaid

# Words for no and for yes; those of the first line that is spoken of decide.
_SWITCHES = {
    "on": [(r"\boff\b", r"\bon\b"), ("关", "开")],
    "locked": [(r"\bunlock", r"\block"), ("开锁|解锁|打开", "锁[上好住了门]|上锁|关")],
}
_CLOSED = ("room", "folder")  # of these a store knows every one


def held(tool: Tool, values: Values, without: frozenset[str] = frozenset()) -> Tool:
    """The tool, some arguments held to values and then needed, others left out."""
    properties = {n: s for n, s in tool.parameters["properties"].items() if n not in without}
    properties |= {name: {"enum": list(some)} for name, some in values.items()}
    needed = dict.fromkeys([*tool.parameters.get("required", ()), *values])
    required = [name for name in properties if name in needed]
    return replace(
        tool, parameters={**tool.parameters, "properties": properties, "required": required}
    )


def filled(
    tool: Tool, clause: Clause, said: Moments, found: Found, context: Context, request: str = ""
) -> Tool:
    """The tool as an order may call it. said: the moments of the order, or, if it has none, of
    the request, in which "him" or "her" of the order is named."""
    values = dict(named(tool, clause, request, found)) | dict(thing(tool, clause, found))
    values |= dict(_options(tool, clause))
    if words := _words(tool, clause, found, context):
        values[content_of(tool)] = [words]
    values |= {**about_what(tool, clause, values), **person(tool, clause)}
    values |= plainly(tool, clause, values, context)
    moments = _moments(tool, clause, said, found, context)
    if "duration" in tool.parameters["properties"] and (span := lasting(clause.text, context.now)):
        moments, values["duration"] = replace(moments, clocks=(span[0],)), [span[1]]
    parameters = leveled(narrowed(tool.parameters, moments), clause.text)
    dated = replace(tool, parameters=parameters)
    known = bool(moments) or bool(found and found.days())
    spare = _spare(tool, clause, values) | _unsaid(tool, clause.text, values, bool(found), context)
    asked = frozenset(missing(tool, request or clause.text, known))
    return held(dated, values, spare.difference(values) | asked)


def _moments(tool: Tool, clause: Clause, said: Moments, found: Found, context: Context) -> Moments:
    """When a call is for: before or after what was found, on its day, or as the order says."""
    if (start := found.start()) and (length := offset(clause.text)):
        at = start + length
        return Moments((at.date(),), (at.time(),))
    if found and not said.days and said.clocks and (days := found.days()):
        return Moments(tuple(days[:1]), said.clocks)
    return said.to(clause.text, context.now) if tool.name.startswith("move_") else said


def grounded(tool: Tool, request: str, said: Moments, context: Context) -> Tool:
    """The tool as a request may call it that may hold several orders, or none that is certain:
    its moments and levels, and if it is one order, the things and options that it names."""
    parameters = leveled(narrowed(tool.parameters, said), request)
    bare, parts = replace(tool, parameters=parameters), clauses(request)
    if len(parts) > 1:
        return bare
    values = dict(named(tool, parts[0], request)) | dict(_options(tool, parts[0]))
    spare = _unsaid(tool, request, values, True, context).difference(values)
    return held(bare, values, spare | frozenset(missing(tool, request, bool(said))))


def _unsaid(tool: Tool, text: str, values: Values, found: bool, context: Context) -> frozenset[str]:
    known = [some[0] for some in values.values() if len(some) == 1]
    return unsaid(tool, text, rest(text, words_of(tool), known, context.now), found)


def _options(tool: Tool, clause: Clause) -> Values:
    """Options that the order names, what has the form of an address or a phone number, and a
    length of time in minutes."""
    values: dict[str, list[Any]] = {}
    for name, schema in tool.parameters["properties"].items():
        if some := options(schema.get("enum", ()), clause.text):
            values[name] = some
        if "pattern" in schema and (some := shaped(schema["pattern"], clause.text)):
            values[name] = some
        switched = _switched(name, clause.text) if schema.get("type") == "boolean" else None
        if switched is not None:
            values[name] = [switched]
        if name == "series" and always(clause.text):
            values[name] = [True]
        if name == "duration" and (lengths := minutes(clause.text)):
            values[name] = lengths
    return values


def _switched(name: str, text: str) -> bool | None:
    """Whether an order wants something on, or locked; None if it does not say, or says both."""
    stem = name.removesuffix("ed")
    for negative, positive in _SWITCHES.get(name, [(rf"\bun{stem}\b", rf"\b{stem}\b")]):
        says = [bool(re.search(p, text, re.IGNORECASE)) for p in (negative, positive)]
        if any(says):
            return says[1] if says[0] != says[1] else None
    return None


def _words(tool: Tool, clause: Clause, found: Found, context: Context) -> str:
    """What is handed on: the order's own words for it, or what was found."""
    name = content_of(tool)
    if name == "task":
        said, rest = task(clause.text)
        said = anchored(said)[0]
        if not said and len(titles := found.values("title")) == 1:
            return str(titles[0])
        if not said or _has_moment(rest, context):
            return said
        return _without_moment(said, context)
    if said := content(clause.text):
        return said if name else ""
    needed = name in tool.parameters.get("required", ()) or name == "body"
    return found.words() if found and name and needed and clause.back else ""


def _spare(tool: Tool, clause: Clause, values: Values) -> frozenset[str]:
    """Arguments that say again what others say: how to search for what has a number; a subject
    of which there is no word, where there is a text."""
    spare = {name for name in _CLOSED if name in tool.known and name not in values}
    text = content_of(tool)
    if text and text not in values and text != "body":
        spare |= {text}  # nothing is handed on
    if "duration" not in values:
        spare |= {"duration"}
    if "id" in values:
        spare |= {"from", "about"}
    if text in values:
        spare |= {n for n in ("subject", "title") if not _speaks(clause.text, n)}
    return frozenset(spare - set(tool.parameters.get("required", ())))


def _speaks(text: str, argument: str) -> bool:
    words = {
        "subject": ("subject", "主题"),
        "title": ("title", "call", "name", "标题", "叫", "题为"),
    }
    return any(word in text.casefold() for word in words[argument])


def _has_moment(text: str, context: Context) -> bool:
    return bool(Moments.of(text, context.now))


def _without_moment(text: str, context: Context) -> str:
    """A task without the time at which to remind of it."""
    for _ in range(3):
        found, rest = when.split(text, context.now)
        if found == when.When() or not when_rest(rest):
            return text
        text = rest
    return text


def when_rest(rest: str) -> str:
    """A rest without the small words that stood before a moment at its end."""
    words = rest.split()
    while words and words[-1].casefold() in ("at", "on", "in", "by", "the", "this"):
        words.pop()
    return " ".join(words)
