"""What an order names: people and things that the stores know, what was found before, and what is
left of a plain order when all else is accounted for.

Each becomes the values that an argument may have. This file reads the stores by the tools' own
eyes; it calls no tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mezzotint.agent import names, plain, when_words
from mezzotint.agent.clauses import Clause
from mezzotint.agent.found import Found
from mezzotint.agent.ground import content_of
from mezzotint.agent.handed import content, names_person_before, unhanded
from mezzotint.agent.lengths import anchored
from mezzotint.agent.reply import spoken_of
from mezzotint.agent.tool import Context, Effect, Tool

Values = Mapping[str, list[Any]]
_CAPITAL = re.compile(r"(?<=[a-z,'’] )[A-Z][\w-]+")
_CAPITALS = frozenset(
    [d.capitalize() for d in (*when_words.WEEKDAYS, *when_words.MONTHS)] + ["I", "PM", "AM", "OK"]
)
_ABOUT_ZH = re.compile(
    r"(?:(?:发|写|寄)?的|[那这]封|关于)[说讲写]?(?P<about>[㐀-鿿]{2,8}?)(?:的|[那这]封)+邮件"
)
_NEW_ZH = re.compile("最|新|上一|未读|邮件|那封")
_PERSON_ZH = re.compile(
    r"(?:联系人|通讯录)[里中]?[，,：:\s]*(?:[叫加存](?:一?个)?[，,]?)*(?P<name>[㐀-鿿]{2,4}?)"
    r"(?=[，,：:\s]|的?(?:电话|手机|邮箱))"
)
_CREATES = "create_event"  # what was said just before is its title
_PEOPLE = ("from", "to", "recipient", "name")


def named(tool: Tool, clause: Clause, request: str, told: Found | None = None) -> Values:
    """Arguments that name what a store knows, if the order names such: but not if it names
    somebody else, too, whom the store does not know."""
    said = clause.text.replace(content(clause.text) or "\0", " ")
    values = {}
    for name, which in tool.known.items():
        found = which(said)
        if not found and name in ("to", "recipient") and names_person_before(said):
            before = which(request.partition(clause.core or clause.text)[0])
            whose = told.values("name") if told else []  # nobody is told his own number
            others = [one for one in before if not any(names.alike(one, who) for who in whose)]
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


def thing(tool: Tool, clause: Clause, found: Found) -> Values:
    """Arguments that name the thing which was found, if the order means that."""
    values = {}
    for name in tool.parameters["properties"]:
        meant = name in ("id", "message") or (clause.back and name != content_of(tool))
        if meant and (some := found.values(name)):
            values[name] = some
    return values


def about_what(tool: Tool, clause: Clause, values: Values) -> Values:
    """What a mail is about, as Chinese says it: 李明发的合同修改那封邮件."""
    if "about" not in tool.parameters["properties"]:
        return {}
    said = clause.text
    for one in values.get("from", ()):
        said = said.replace(str(one), " ")
    found = _ABOUT_ZH.search(said)
    return {"about": [found["about"]]} if found and not _NEW_ZH.search(found["about"]) else {}


def person(tool: Tool, clause: Clause) -> Values:
    """Whom a new contact is of, where a name is told by its place."""
    found = _PERSON_ZH.search(clause.text) if tool.name == "add_contact" else None
    return {"name": [found["name"]]} if found else {}


def plainly(tool: Tool, clause: Clause, values: Values, context: Context) -> Values:
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
    if tool.effect is Effect.READS and (beside := anchored(core)[1]):
        run = plain.stated(beside, context.now)
    if run:
        return {name: [run]}
    if name in tool.things:
        said = unhanded(clause.text)
        near = spoken_of(said, tool.things[name]())
        shared = _common(said, near) if len(near) > 1 else ""
        return {name: [shared] if shared else near} if near else {}  # of several the tool asks
    around = clause.text.removesuffix(core)
    run = plain.stated(around, context.now) if clause.back and tool.name == _CREATES else ""
    return {name: [run]} if run else {}


def _common(text: str, some: list[str]) -> str:
    """The longest part of all the names that a text has, if it tells something."""
    first, *others = some
    spans = ((i, j) for i in range(len(first)) for j in range(len(first), i + 1, -1))
    parts = (first[i:j].strip() for i, j in spans)
    found = [part for part in parts if part in text and all(part in name for name in others)]
    return max(found, key=len, default="")
