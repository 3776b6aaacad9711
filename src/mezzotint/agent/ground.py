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

from mezzotint.agent import names, when
from mezzotint.agent.tool import Effect, Tool
from mezzotint.toolcall import Call

_MOST = 4  # days or times of one request; more are not told apart
_ASKS = re.compile(
    r"\s*(?:(?:hey|hi|so|and|ok|okay|well|please)\b[ ,]*)*"
    r"(?:did|do|does|is|are|was|were|am|have|has|what|when|where|which|who|whose|how|any)\b",
    re.IGNORECASE,
)
_ASKS_ZH = re.compile(r"[吗么呢]|什么|几点|几个|哪|多少|是否|有没有|是不是|怎么样")
_ORDERS = re.compile(r"(?:how about|what about|提醒|帮我|请)", re.IGNORECASE)
_CORRECTS = re.compile(
    r"\s*(?:no\b|wait|actually|sorry|i meant|rather|make (?:it|that)|scratch that|on second thought"
    r"|change (?:it|that)|不对|不是|等等|等一下|还是|算了|我是说|改成|改到)|.*\binstead\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Moments:
    """The days and times of day that a text speaks of."""

    days: tuple[date, ...] = ()
    clocks: tuple[time, ...] = ()

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
        return {"date": days, "time": clocks, "date-time": both or clocks or days}.get(form, [])


def narrowed(parameters: Mapping[str, Any], said: Moments) -> dict[str, Any]:
    """A tool's parameters, its dates and times held to those that were said."""
    properties = {}
    for name, schema in parameters.get("properties", {}).items():
        texts = said.texts(str(schema.get("format")))
        properties[name] = {"enum": texts} if texts else schema
    return {**parameters, "properties": properties}


def pruned(tool: Tool, call: Call, told: str) -> Call:
    """The call without what the model made up: optional free texts of which no word was told,
    or that repeat another argument. told: the request, and what was read for it."""
    words, values = set(names.words(told)), list(call.arguments.values())
    properties, required = tool.parameters["properties"], tool.parameters.get("required", ())

    def stays(name: str, value: Any) -> bool:
        schema = properties.get(name, {})
        free = schema.get("type") == "string" and not {"enum", "format"} & schema.keys()
        if name in required or not free:
            return True
        return bool(words & set(names.words(value))) and values.count(value) == 1

    return Call(call.name, {n: value for n, value in call.arguments.items() if stays(n, value)})


def lacks_moment(tool: Tool, said: Moments) -> bool:
    """Whether the tool must be told a time of which the request has no word."""
    required = tool.parameters.get("required", ())
    some = (tool.parameters["properties"][name] for name in required)
    return not said and any(s.get("format") in ("date", "time", "date-time") for s in some)


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


def fit(tools: list[Tool], request: str) -> list[Tool]:
    """Of the tools, those that only read for a request that asks, if there are any."""
    reading = [tool for tool in tools if tool.effect is Effect.READS]
    return reading if reading and asks(request) else tools
