"""Numbers that a request says, and levels that it says in words: half, full, shut, up.

Levels are integers with two bounds; a call's are held to what was said. This file knows words and
schemas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from mezzotint.agent import when_words

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
