"""Which arguments of a call a request has no word for.

A model fills every hole it is shown, and each costs a pass. So an optional argument that nobody
spoke of is left out of the schema before the model writes, and out of the call after; one that
the call needs is left out, too, and asked for (see `guard`). This file knows words and schemas,
no model and no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from mezzotint.agent import names, when
from mezzotint.agent.clauses import VERBS
from mezzotint.agent.ground import MOMENTS, shaped
from mezzotint.agent.handed import content
from mezzotint.agent.lengths import SPAN
from mezzotint.agent.levels import levels, numbers, said_levels
from mezzotint.agent.tool import Tool, language_of
from mezzotint.toolcall import Call

NUMBERS = ("id", "message")  # of things: known from what was read
_SAYS_NOTHING = frozenset(
    ["about", "it", "that", "this", "mail", "email", "message", "again", "him", "her", "them"]
)
_ALWAYS = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|yearly|all|whole|series)\b|每|所有|全部|整个",
    re.IGNORECASE,
)
# Words for options, besides the option itself.
_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_OPTIONS = {
    "red": "红",
    "blue": "蓝",
    "green": "绿",
    "yellow": "黄",
    "purple": "紫",
    "orange": "橙|橘",
    "pink": "粉",
    "white": "白",
    "warm white": "暖白|暖光|暖色",
    "turquoise": "青",
    "heat": "制热|暖风",
    "cool": "制冷|冷风",
    "auto": "自动",
    "fan": "送风|通风",
    "dry": "除湿",
    "low": "低|轻柔|小档",
    "medium": "中[档等]",
    "high": "高|强力|大档",
    "daily": r"\b(?:every|each) ?(?:day|morning|evening|night)\b|每[天日早晚]|天天",
    "weekly": rf"\b(?:every|each) (?:week|{_DAYS})\b|每个?(?:周|星期|礼拜)",
    "monthly": r"\b(?:every|each) month\b|每个?月",
    "weekdays": r"\b(?:weekday|workday|working day)s?\b|工作日",
    "read": "已读",
    "unread": "未读",
    "flagged": r"\bflag\b|标星|星标|加旗|旗标",
    "unflagged": r"\bunflag\b|取消(?:星标|标星|旗标)|去掉(?:星标|旗标)",
    "driver": "主驾|驾驶|司机",
    "passenger": "副驾",
    "rear": r"\bback\b|后[排座窗面]",
    "all": "所有|全部",
}
_PLACE = re.compile(
    r"\b(?:at|in|location|venue|room|place)\b|[@,:，：(（]|在|地点|到", re.IGNORECASE
)
# Words of a request that are no part of any value.
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a an the my our your his her their its i you he she it we they me us him them this that"
        " these those there here to at on in of for from by with into onto off out up down as about"
        " and or but so then also too just now please pls can could would will should shall do does"
        " did is are was were be been am have has had let get got want need like new newest latest"
        " last one some any all s d ll ve re m t say says said saying write wrote written tell show"
        " give know what which who whose where when how hey hi ok okay thanks thank again back over"
        " go more",
    )
) | frozenset(
    "加记放查找看开关调请帮我把将给的了一下吧里上那这封条个份张最新近些和跟到在替麻烦您你先再说就也呢吗有什么写"
)


def always(text: str) -> bool:
    """Whether a text speaks of all times that something happens."""
    return bool(_ALWAYS.search(text))


def options(choices: Iterable[Any], text: str) -> list[str]:
    """Those of an enumeration that a text names; of two in one place the longer one."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for one in choices:
        if isinstance(one, str):
            words = "|".join(filter(None, (rf"\b{re.escape(one)}'?s?\b", _OPTIONS.get(one, ""))))
            words = r"\ball\b(?! the way| right)|全部|所有" if one == "all" else words
            found = [m.span() for m in re.finditer(words, text, re.IGNORECASE)]
            spans |= {one: found} if found else {}

    def stands(one: str) -> bool:
        others = [span for name, some in spans.items() if name != one for span in some]
        return not all(any(_inside(mine, other) for other in others) for mine in spans[one])

    return [one for one in spans if stands(one)]


def _inside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and other[0] <= one[0] and one[1] <= other[1]


def rest(text: str, tool_words: Iterable[str], values: Iterable[Any], now: datetime) -> list[str]:
    """The words of an order that say neither what to do, nor when, nor any value that is known."""
    left = text.replace(content(text) or "\0", " ")
    for value in values:
        if isinstance(value, str) and value:
            left = re.sub(re.escape(value), " ", left, flags=re.IGNORECASE)
    left = SPAN.sub(" ", left)
    for _ in range(3):
        left = when.split(left, now)[1]
    for word in tool_words:
        if not word.isascii():
            left = left.replace(word, " ")
    stems = tuple(word for word in tool_words if word.isascii())
    return [
        word
        for word in names.words(left)
        if word not in _EMPTY
        and word not in VERBS
        and not word.isdigit()
        and not any(word[: len(stem)] == stem for stem in stems)
    ]


def unsaid(tool: Tool, text: str, left: list[str], found: bool) -> frozenset[str]:
    """Optional arguments that an order has no word for. text: the order; left: its words that no
    value has, see `rest`; found: it may also speak of what was read."""
    needed = tool.parameters.get("required", ())
    properties: Mapping[str, Any] = tool.parameters["properties"]

    def speaks(name: str, schema: Mapping[str, Any]) -> bool:
        if name in NUMBERS:
            return found or bool(re.search(r"\d", text))
        if schema.get("type") in ("integer", "number"):
            return _number(text)
        if schema.get("type") == "boolean":
            return always(text) or name in text
        if "enum" in schema:
            return _chosen(schema["enum"], text)
        if "pattern" in schema:
            return bool(shaped(schema["pattern"], text))
        if schema.get("type") != "string" or "format" in schema:
            return True
        return bool(left) and (name != "location" or bool(_PLACE.search(text)))

    optional = ((n, s) for n, s in properties.items() if n not in needed)
    return frozenset(name for name, schema in optional if not speaks(name, schema))


def missing(tool: Tool, request: str, dated: bool) -> list[str]:
    """Arguments that the call needs and only the user can say, but has not: a moment, a number.
    dated: a moment was said, or found."""
    properties = tool.parameters["properties"]

    def lacks(name: str) -> bool:
        schema = properties[name]
        if schema.get("format") in MOMENTS:
            return not dated
        number = schema.get("type") in ("integer", "number") and name not in NUMBERS
        return number and not said_levels(name, schema, request)

    return [name for name in tool.parameters.get("required", ()) if lacks(name)]


def _number(text: str) -> bool:
    return bool(numbers(text) or re.search(r"\d", text) or levels(text))


def _chosen(choices: list[Any], text: str) -> bool:
    """Whether a text may speak of an option; of a language whose words are not known, it may."""
    if "daily" in choices:
        return bool(_ALWAYS.search(text) or options(choices, text))
    known = language_of(text) == "en" or all(one in _OPTIONS for one in choices)
    return not known or bool(options(choices, text))


def pruned(tool: Tool, call: Call, told: str) -> Call:
    """The call without what the model made up: optional numbers where none was told, optional
    choices that English does not name, optional free texts of which no word was told, or that
    repeat another argument. told: the request, and what was read for it."""
    words, values = set(names.words(told)), list(call.arguments.values())
    properties, required = tool.parameters["properties"], tool.parameters.get("required", ())

    def stays(name: str, value: Any) -> bool:
        schema = properties.get(name, {})
        if name in required:
            return True
        if schema.get("type") in ("integer", "number") and name not in NUMBERS:
            return _number(told)
        if schema.get("type") == "boolean":
            return always(told) or name in words
        if "enum" in schema:
            return _chosen(schema["enum"], told)
        if schema.get("type") != "string" or "format" in schema:
            return True
        told_of = words & set(names.words(value)) - _SAYS_NOTHING
        return bool(told_of) and values.count(value) == 1

    return Call(call.name, {n: value for n, value in call.arguments.items() if stays(n, value)})
