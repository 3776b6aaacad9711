"""What the arguments of a call may be, as far as the request and what was read decide it.

A small model copies worse than it chooses. So what can only be copied is an enumeration in the
schema that the call is held to: the moments of the order, the words that it hands on, the number
of the mail that was found. Where there is one, it costs no pass. What is left open, the model
writes. This file makes schemas; it calls neither tools nor models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mezzotint.agent import names, plain, when, when_words
from mezzotint.agent.choose import words_of
from mezzotint.agent.clauses import Clause, clauses, content, names_person_before, task, unhanded
from mezzotint.agent.found import Found
from mezzotint.agent.ground import (
    Moments,
    content_of,
    lasting,
    leveled,
    minutes,
    narrowed,
    offset,
    shaped,
)
from mezzotint.agent.reply import spoken_of
from mezzotint.agent.tool import Context, Tool
from mezzotint.agent.unsaid import always, missing, options, rest, unsaid

_CAPITAL = re.compile(r"(?<=[a-z,'’] )[A-Z][\w-]+")
_CAPITALS = frozenset(
    [d.capitalize() for d in (*when_words.WEEKDAYS, *when_words.MONTHS)] + ["I", "PM", "AM", "OK"]
)
# Words for no and for yes; those of the first line that is spoken of decide.
_SWITCHES = {
    "on": [(r"\boff\b", r"\bon\b"), ("关", "开")],
    "locked": [(r"\bunlock", r"\block"), ("开锁|解锁|打开", "锁[上好住了门]|上锁|关")],
}
_ABOUT_ZH = re.compile(
    r"(?:(?:发|写|寄)?的|[那这]封|关于)[说讲写]?(?P<about>[㐀-鿿]{2,8}?)(?:的|[那这]封)+邮件"
)
_NEW_ZH = re.compile("最|新|上一|未读|邮件|那封")
_PERSON_ZH = re.compile(
    r"(?:联系人|通讯录)[里中]?[，,：:\s]*(?:[叫加存](?:一?个)?[，,]?)*(?P<name>[㐀-鿿]{2,4}?)(?=[，,：:\s]|的?(?:电话|手机|邮箱))"
)
_CREATES = "create_event"  # what was said just before is its title
_PEOPLE = ("from", "to", "recipient", "name")
_CLOSED = ("room", "folder")  # of these a store knows every one
Values = Mapping[str, list[Any]]


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
    values = dict(_named(tool, clause, request, found)) | dict(_thing(tool, clause, found))
    values |= dict(_options(tool, clause))
    if words := _words(tool, clause, found, context):
        values[content_of(tool)] = [words]
    values |= {**_about(tool, clause, values), **_person(tool, clause)}
    values |= _plain(tool, clause, values, context)
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
    values = dict(_named(tool, parts[0], request)) | dict(_options(tool, parts[0]))
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


def _named(tool: Tool, clause: Clause, request: str, about: Found | None = None) -> Values:
    """Arguments that name what a store knows, if the order names such: but not if it names
    somebody else, too, whom the store does not know."""
    said = clause.text.replace(content(clause.text) or "\0", " ")
    values = {}
    for name, which in tool.known.items():
        found = which(said)
        if not found and name in ("to", "recipient") and names_person_before(said):
            before = which(request.partition(clause.core or clause.text)[0])
            told = about.values("name") if about else []  # nobody is told his own number
            others = [one for one in before if not any(names.alike(one, name) for name in told)]
            found = others or before
        if found and not (name in _PEOPLE and _others(clause.core or said, found)):
            values[name] = list(found)
    return values


def _others(text: str, known: list[str]) -> bool:
    """Whether a text has a name besides those that are known: a word with a capital that does
    not begin it."""
    rest = text
    for name in known:
        rest = rest.replace(name, " ")
    return any(word not in _CAPITALS for word in _CAPITAL.findall(rest))


def _thing(tool: Tool, clause: Clause, found: Found) -> Values:
    """Arguments that name the thing which was found, if the order means that."""
    values = {}
    for name in tool.parameters["properties"]:
        meant = name in ("id", "message") or (clause.back and name != content_of(tool))
        if meant and (some := found.values(name)):
            values[name] = some
    return values


def _words(tool: Tool, clause: Clause, found: Found, context: Context) -> str:
    """What is handed on: the order's own words for it, or what was found."""
    name = content_of(tool)
    if name == "task":
        said, rest = task(clause.text)
        if not said or _has_moment(rest, context):
            return said
        return _without_moment(said, context)
    if said := content(clause.text):
        return said if name else ""
    needed = name in tool.parameters.get("required", ()) or name == "body"
    return found.words() if found and name and needed and clause.back else ""


def _about(tool: Tool, clause: Clause, values: Values) -> Values:
    """What a mail is about, as Chinese says it: 李明发的合同修改那封邮件."""
    if "about" not in tool.parameters["properties"]:
        return {}
    said = clause.text
    for one in values.get("from", ()):
        said = said.replace(str(one), " ")
    found = _ABOUT_ZH.search(said)
    return {"about": [found["about"]]} if found and not _NEW_ZH.search(found["about"]) else {}


def _person(tool: Tool, clause: Clause) -> Values:
    """Whom a new contact is of, where a name is told by its place."""
    found = _PERSON_ZH.search(clause.text) if tool.name == "add_contact" else None
    return {"name": [found["name"]]} if found else {}


def _plain(tool: Tool, clause: Clause, values: Values, context: Context) -> Values:
    """The one needed name that is still open, if the order is plain and names one thing more."""
    properties, needed = tool.parameters["properties"], tool.parameters.get("required", ())
    free = [
        name
        for name in needed
        if properties[name].get("type") == "string"
        and not properties[name].keys() & {"enum", "format", "pattern"}
        and name not in values
    ]
    if len(free) != 1 or free[0] == content_of(tool):
        return {}
    name, core = free[0], clause.core or clause.text
    known = [some[0] for some in values.values() if len(some) == 1]
    run = "" if clause.back else plain.named(core, known, context.now)
    if run:
        return {name: [run]}
    if name in tool.things:
        said = unhanded(clause.text)
        near = spoken_of(said, tool.things[name]())
        shared = names.said_in(said, near) if len(near) > 1 else []
        return {name: shared if len(shared) == 1 else near} if near else {}  # it asks which
    around = clause.text.removesuffix(core)
    run = plain.stated(around, context.now) if clause.back and tool.name == _CREATES else ""
    return {name: [run]} if run else {}


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
