"""What a request says that a call may only copy: its dates and times, and whether it asks.

A small model copies a date worse than it chooses a tool. So the moments that the request
speaks of are found by the same words that tools understand, and a call's dates are held to
them; where there is just one, it costs no pass. This file knows words and schemas, no model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from mezzotint.agent import when, when_words
from mezzotint.agent.copied import mended
from mezzotint.agent.tool import Tool
from mezzotint.toolcall import Call

_MOST = 4  # days or times of one request; more are not told apart
_HOUR = re.compile(
    r"\b(?:1[0-2]|[1-9]|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
    r"|[一二两三四五六七八九十]+(?=点)"
)
_TO = re.compile(
    r"\b(?:to|until|till|for)\b|改到|改成|改为|[移挪]到|推迟到|提前到|到", re.IGNORECASE
)
MOMENTS = ("date", "time", "date-time")
_CONTENT = ("body", "text", "content", "comment", "task")
_ASKS = re.compile(
    r"\s*(?:(?:hey|hi|so|and|ok|okay|well|please)\b[ ,]*)*"
    r"(?:did|do|does|is|are|was|were|am|have|has|what|when|where|which|who|whose|how|any)\b",
    re.IGNORECASE,
)
_ASKS_ZH = re.compile(r"[吗么呢]|什么|几点|几个|哪|多少|是否|有没有|是不是|怎么样")
_ORDERS = re.compile(
    r"how about|what about|提醒|帮我|请|^你?(?:看看|查|翻|找|搜)"
    r"|[，,](?:你|请|帮我)?[翻查把给发写记转找]"
    r"|(?:然后|再|并|顺便|接着)(?=[㐀-鿿])"
    r"|\b(?:and|then),? (?:please )?(?:remind|send|e-?mail|mail|text|tell (?!me)|forward|move|put"
    r"|add|cancel|delete|book|turn|set|note|save|write|reply)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\s*(?:no\b|wait|actually|sorry|i meant|rather|make (?:it|that)|scratch that|on second thought"
    r"|h+m+\b|oops\b|that(?:'s| is) (?:too|not|wrong)\b|too \w+"
    r"|change (?:it|that)|不对|不是|等等|等一下|还是|算了|我是说|改成|改到)|.*\binstead\b"
    r"|.*\b(?:will|would) do\b|.*\b(?:is|are) (?:enough|plenty)\b|.*\btoo \w+.*\bjust\b"
    r"|.*(?:就行|就够|太[大小高低亮暗冷热吵])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Moments:
    """Days and times of day that a text speaks of. loose: a time may be of none of the days."""

    days: tuple[date, ...] = ()
    clocks: tuple[time, ...] = ()
    loose: bool = False

    @classmethod
    def of(cls, text: str, now: datetime) -> Moments:
        days: dict[date, None] = {}
        clocks: dict[time, None] = {}
        rest = text
        for _ in range(2 * _MOST):
            found, left = when.split(rest, now)
            if left == rest or (found.day is None and found.clock is None):
                break
            if found.day:
                days[found.day] = None
            if found.clock:
                clocks[found.clock] = None
            rest = left
        return cls(tuple(days)[:_MOST], tuple(clocks)[:_MOST])

    def to(self, text: str, now: datetime) -> Moments:
        """These, or what a text that moves something says it is moved to."""
        for match in reversed([*_TO.finditer(text)]):
            said = when.leading(text[match.end() :], now)
            if said != when.When():
                days = (said.day,) if said.day else self.days
                return Moments(days, (said.clock,) if said.clock else self.clocks)
        return self

    def then(self, later: Moments) -> Moments:
        """These, as a later text corrects or completes them."""
        return Moments(later.days or self.days, later.clocks or self.clocks)

    def __bool__(self) -> bool:
        return bool(self.days or self.clocks)

    def texts(self, form: str) -> list[str]:
        """What a value of JSON Schema's format `form` may be, if the text decides it.

        A day or a time alone stays alone: the tool knows what the other is (see `when`).
        """
        days = [day.isoformat() for day in self.days]
        clocks = [f"{clock:%H:%M}" for clock in self.clocks]
        both = [f"{day}T{clock}" for day in days for clock in clocks]
        alone = [*both, *clocks] if self.loose else both
        return {"date": days, "time": clocks, "date-time": alone or clocks or days}.get(form, [])


def hours(text: str, before: Moments) -> Moments:
    """Moments of a text that corrects a time by a bare hour ("seven is better"): it is in the
    half of the day that was said before."""
    if not before.clocks:
        return Moments()
    late = 12 if before.clocks[-1].hour >= 12 else 0
    found = [when_words.number(n) for n in _HOUR.findall(text.casefold())]
    return Moments(clocks=tuple(time(hour % 12 + late) for hour in found if 0 < hour <= 12)[:_MOST])


def narrowed(parameters: Mapping[str, Any], said: Moments) -> dict[str, Any]:
    """A tool's parameters, its dates and times held to those that were said; where none was,
    without those that may be left out."""
    properties, needed = {}, parameters.get("required", ())
    for name, schema in parameters.get("properties", {}).items():
        texts = said.texts(str(schema.get("format")))
        if not said and schema.get("format") in MOMENTS and name not in needed:
            continue
        properties[name] = {"enum": texts} if texts else schema
    return {**parameters, "properties": properties}


def shaped(pattern: str, text: str) -> list[str]:
    """The first part of a text that has a form; none if none has. pattern: of a whole value."""
    found = re.search(pattern.removeprefix("^").removesuffix("$"), text)
    return [found[0].strip(" .,!")] if found else []


def recopied(tool: Tool, call: Call, told: str) -> Call:
    """The call, its free texts as they were told (see copied.py)."""
    properties = tool.parameters["properties"]

    def free(name: str, value: Any) -> bool:
        schema = properties.get(name, {})
        return isinstance(value, str) and not {"enum", "format", "const"} & schema.keys()

    arguments = {n: mended(v, told) if free(n, v) else v for n, v in call.arguments.items()}
    return Call(call.name, arguments)


def content_of(tool: Tool) -> str:
    """The argument that holds what is handed on: a mail's or a note's text, what to be reminded
    of; "" if there is none. A task without a moment is the name of one that exists."""
    properties = tool.parameters.get("properties", {})
    moments = [n for n, s in properties.items() if s.get("format") in MOMENTS]
    for name in _CONTENT:
        if properties.get(name, {}).get("type") == "string" and (name != "task" or moments):
            return name
    return ""


def needs_number(tool: Tool) -> bool:
    """Whether the tool must be told the number of a thing, which only a search can give."""
    return bool({"id", "message"} & set(tool.parameters.get("required", ())))


def asks(request: str) -> bool:
    """Whether it wants to be told something, and nothing done."""
    if _ORDERS.search(request):
        return False
    return bool(_ASKS.match(request) or _ASKS_ZH.search(request))


def corrects(request: str) -> bool:
    """Whether it takes back what was asked just before."""
    return bool(_CORRECTS.match(request))
