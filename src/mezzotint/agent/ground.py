"""What a request says that a call may only copy: its dates and times, and whether it asks.

A small model copies a date worse than it chooses a tool. So the moments that the request
speaks of are found by the same words that tools understand, and a call's dates are held to
them; where there is just one, it costs no pass. This file knows words and schemas, no model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from mezzotint.agent import when, when_words
from mezzotint.agent.copied import mended
from mezzotint.agent.tool import Effect, Tool
from mezzotint.toolcall import Call

_MOST = 4  # days or times of one request; more are not told apart
_HOUR = re.compile(
    r"\b(?:1[0-2]|[1-9]|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
    r"|[一二两三四五六七八九十]+(?=点)"
)
_SAID = re.compile(
    r"\d+(?:\.\d+)?|[零一二两三四五六七八九]?十[一二三四五六七八九]?"
    r"|(?<![㐀-鿿])[零一二两三四五六七八九]+(?![下些个点起直样会封条])"
    r"|(?<=[到成为调])[零一二两三四五六七八九](?![下些个点起直样会封条])"
    r"|\b(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
    r"(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen)\b"
)
_LEVELS = (
    (re.compile(r"\bthree quarters\b|四分之三", re.IGNORECASE), 75),
    (re.compile(r"\b(?:half|halfway)\b|一半", re.IGNORECASE), 50),
    (re.compile(r"\b(?:a|one) quarter\b|四分之一", re.IGNORECASE), 25),
    (re.compile(r"\b(?:open|full|fully|max|maximum)\b|全|满|最大|打开", re.IGNORECASE), 100),
    (re.compile(r"\b(?:shut|closed?|mute)\b|关|静音", re.IGNORECASE), 0),
)
_MOVED = ("position", "percent")
_MOVES = (
    (re.compile(r"\b(?:up|raise|lift)\b|[拉升]起|升上", re.IGNORECASE), 100),
    (re.compile(r"\b(?:down|lower|draw)\b|[拉合]上|[拉放降]下", re.IGNORECASE), 0),
)
_LENGTH = re.compile(
    r"(?:\bfor|,|\blasting|\btakes?) (?:(?P<half>half an)"
    r"|(?P<n>\d+|an?|one|two|three|four|five|six|ten|fifteen|twenty|thirty|forty|forty-five|fifty))"
    r" (?P<unit>min(?:ute)?s?|h(?:ou)?rs?)\b(?P<more> and a half)?"
    r"|(?:(?P<halfzh>半)个?|(?P<nzh>\d+|[一二两三四五六七八九十]+)个?(?P<morezh>半)?)"
    r"(?P<unitzh>分钟|小时|钟头)(?![以之]?后)",
    re.IGNORECASE,
)
_TO = re.compile(
    r"\b(?:to|until|till|for)\b|改到|改成|改为|[移挪]到|推迟到|提前到|到", re.IGNORECASE
)
_CLOCK = (
    r"(?:half past |quarter (?:past|to) )?(?:\d\d?(?:[:.]\d\d)?|one|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve|noon)(?: ?[ap]\.?m\b\.?)?"
)
_CLOCK_ZH = (
    r"(?:[早上中下午晚]{2})?[\d一二三四五六七八九十两]+点(?:半|[\d一二三四五六七八九十]+分?)?"
)
_SPAN = re.compile(
    rf"\b(?P<a>{_CLOCK})\s*(?:to|till|until|-|–)\s*(?P<b>{_CLOCK})(?![\w%])"
    rf"|(?P<azh>{_CLOCK_ZH})[到至](?P<bzh>{_CLOCK_ZH})",
    re.IGNORECASE,
)
_OFFSET = re.compile(
    r"\b(?:(?P<half>half an)|(?P<n>\d+|an?|one|two|three|four|five|ten|fifteen|twenty|thirty|forty-five))"
    r" (?P<unit>min(?:ute)?s?|h(?:ou)?rs?|days?)(?P<more> and a half)? "
    r"(?P<side>before|ahead|earlier|prior|after|later)\b"
    r"|(?P<beforezh>提前)?(?:(?P<halfzh>半)个?|(?P<nzh>\d+|[一二两三四五六七八九十]+)个?(?P<morezh>半)?)"
    r"(?P<unitzh>分钟|小时|钟头|天)(?P<sidezh>[以之]?前|[以之]?后)?",
    re.IGNORECASE,
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
    r"how about|what about|提醒|帮我|请|^你?(?:看看|查|翻|找|搜)|(?:然后|再|并|顺便|接着)(?=[㐀-鿿])"
    r"|[，,](?:你|请|帮我)?[翻查把给发写记转找]"
    r"|\b(?:and|then),? (?:please )?(?:remind|send|e-?mail|mail|text|tell (?!me)|forward|move|put|add"
    r"|cancel|delete|book|turn|set|note|save|write|reply)\b",
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


def lasting(text: str, now: datetime) -> tuple[time, int] | None:
    """When a text says that something begins, and its minutes, if it says when it ends ("two to
    half past three"); what both say of the half of the day the end says."""
    for match in _SPAN.finditer(text):
        first, last = (match["azh"], match["bzh"]) if match["azh"] else (match["a"], match["b"])
        late = re.search(r"[ap]\.?m", last, re.IGNORECASE)
        if late and not re.search(r"[ap]\.?m", first, re.IGNORECASE):
            first = f"{first} {late[0]}"
        part = re.match("[早上中下午晚]{2}", first)
        last = f"{part[0]}{last}" if part and not re.match("[早上中下午晚]{2}", last) else last
        lead = "" if match["azh"] else "at "
        begin, end = (when.leading(lead + said, now).clock for said in (first, last))
        if begin and end:
            length = (end.hour - begin.hour) * 60 + end.minute - begin.minute
            length += 720 if length <= 0 else 0
            if 0 < length <= 720:
                return begin, length
    return None


def offset(text: str) -> timedelta | None:
    """How long before (negative) or after something a text says, if it does."""
    for match in _OFFSET.finditer(text):
        side = match["side"] or match["beforezh"] or match["sidezh"]
        if not side:
            continue
        half, number = match["half"] or match["halfzh"], match["n"] or match["nzh"]
        amount = 0.5 if half else float(when_words.number(number))
        amount += 0.5 if match["more"] or match["morezh"] else 0
        unit = (match["unit"] or match["unitzh"]).casefold()
        hours = 24.0 if unit[0] in "d天" else 1.0 if unit[0] in "h小钟" else 1 / 60
        before = side in ("before", "ahead", "earlier", "prior", "提前") or side[-1] == "前"
        return timedelta(hours=amount * hours * (-1 if before else 1))
    return None


def minutes(text: str) -> list[int]:
    """Lengths of time that a text says, in minutes."""
    found = []
    for match in _LENGTH.finditer(text):
        half, number = match["half"] or match["halfzh"], match["n"] or match["nzh"]
        amount = 0.5 if half else float(when_words.number(number))
        amount += 0.5 if match["more"] or match["morezh"] else 0
        hour = (match["unit"] or match["unitzh"]).casefold().startswith(("h", "小", "钟"))
        found.append(int(amount * (60 if hour else 1)))
    return found


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


def leveled(parameters: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A tool's parameters, its levels (integers with two bounds) held to the numbers that a text
    says, if one of those is within the bounds; what is open, shut, full is 100 or 0."""
    needed = parameters.get("required", ())

    def held(name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if schema.get("type") != "integer" or {"minimum", "maximum"} - schema.keys():
            return schema
        said, fitting = numbers(text), said_levels(name, schema, text)
        sure = bool(said) or (name in needed and len(fitting) == 1)
        return {"enum": fitting} if fitting and sure else schema

    properties = parameters.get("properties", {})
    return {**parameters, "properties": {n: held(n, s) for n, s in properties.items()}}


def said_levels(name: str, schema: Mapping[str, Any], text: str) -> list[int]:
    """Whole numbers that a text says, in digits or in words, within the bounds of a schema."""
    meant = levels(text)
    if name in _MOVED and (moved := _moved(text)) and not any(0 < one < 100 for one in meant):
        meant = moved
    said = [*numbers(text), *meant]
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return [level for level in dict.fromkeys(said) if low <= level <= high]


def _moved(text: str) -> list[int]:
    return [level for words, level in _MOVES if words.search(text)]


def levels(text: str) -> list[int]:
    """What words say of a level: a part of the whole, else all or nothing."""
    found = [level for words, level in _LEVELS if words.search(text)]
    return [level for level in found if 0 < level < 100] or found


def numbers(text: str) -> list[int]:
    """Whole numbers that a text says, in digits or words; none if it says a fraction."""
    found = _SAID.findall(re.sub("百分之百|一百", "100", text.casefold()))
    return [] if any("." in one for one in found) else [when_words.number(one) for one in found]


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


def lacks_moment(tool: Tool, said: Moments) -> bool:
    """Whether the tool must be told a time of which the request has no word."""
    required = tool.parameters.get("required", ())
    some = (tool.parameters["properties"][name] for name in required)
    return not said and any(s.get("format") in MOMENTS for s in some)


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


def fit(tools: list[Tool], request: str) -> list[Tool]:
    """Of the tools, those that only read for a request that asks, if there are any."""
    reading = [tool for tool in tools if tool.effect is Effect.READS]
    return reading if reading and asks(request) else tools
