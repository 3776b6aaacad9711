"""What a reply to a question means: one of the choices, yes or no, or the value asked for.

This file knows words and schemas; who asked, and what follows, it does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mezzotint.agent import names, when_words
from mezzotint.agent.ground import MOMENTS, Moments, shaped
from mezzotint.agent.handed import content
from mezzotint.agent.tool import Context, Tool
from mezzotint.toolcall import Call

_PLACES = {"1": 0, "first": 0, "2": 1, "second": 1, "3": 2, "third": 2, "last": -1}
_PLACES |= {"第一": 0, "第二": 1, "第三": 2, "最后": -1}
_NEWEST = re.compile(r"\b(?:newest|latest|most recent|last)\b|最新|最近", re.IGNORECASE)
_FEW = 5  # choices that a user is asked to choose from
_YES = frozenset(
    re.findall(r"\S+", "y yes yeah yep sure right correct ok okay 是 是的 对 对的 好 好的 嗯")
)
_NO = frozenset(
    re.findall(r"\S+", "n no nope neither none cancel stop 不 不是 不对 不要 都不是 算了")
)
_OPENING = re.compile(
    r"^\s*(?:(?:please|to|it's|its|it is|make it|call it|just|the one (?:with|about|from)|with|for"
    r"|改成|改为|叫|是|给)\s*)+",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def picked(text: str, labels: Sequence[str]) -> int | None:
    """The one choice that a text names best, by its words or its place; None if none or two."""
    said = set(names.words(text))
    if len(labels) == 1:
        return 0 if said & _YES or text.strip() in _YES else _shared(said, labels)
    if (best := _shared(said, labels)) is not None:
        return best
    place = next((at for word, at in _PLACES.items() if word in said or word in text), None)
    return place % len(labels) if place is not None and place < len(labels) else None


def singled_out(request: str, labels: Sequence[str]) -> int | None:
    """The one choice that the request itself tells from the others, by words that are only its
    own; the newest of things that come newest first, if it asks for that."""
    words = [_telling(label) for label in labels]
    said = _telling(request)
    own = [said & mine.difference(*(w for w in words if w is not mine)) for mine in words]
    if sum(map(bool, own)) == 1:
        return next(i for i, some in enumerate(own) if some)
    numbered = all(label[:1].isdigit() for label in labels)
    return 0 if numbered and _NEWEST.search(request) and not any(own) else None


def spoken_of(request: str, labels: Sequence[str]) -> list[str]:
    """The few things, of many, that share a telling word with the request."""
    said = _telling(request)
    found = [label for label in labels if said & _telling(label)]
    return found if len(found) <= _FEW else []


def _telling(text: str) -> set[str]:
    """Words that tell things apart: no numbers, and no Chinese character by itself."""
    pairs = {text[i : i + 2] for i in range(len(text) - 1)}
    words = {_stem(word) for word in names.words(text) if word.isascii() and not word.isdigit()}
    return words | {pair for pair in pairs if re.fullmatch("[㐀-鿿]{2}", pair)}


def refuses(text: str) -> bool:
    return text.strip(" .!。！").casefold() in _NO


def values(
    argument: str, schema: Mapping[str, Any], text: bool, reply: str, context: Context
) -> list[Any]:
    """What an argument may be that was asked for; none if the reply does not say. text: it is
    what is handed on."""
    said = _OPENING.sub("", reply).strip(" .!。！")
    if schema.get("format") in MOMENTS:
        return list(Moments.of(reply, context.now).texts(schema["format"]))
    if "enum" in schema:
        return [value for value in schema["enum"] if str(value).casefold() in reply.casefold()]
    if schema.get("type") in ("integer", "number"):
        return _numbers(reply)
    if schema.get("type") != "string":
        return []
    if "pattern" in schema:
        return shaped(schema["pattern"], said)
    return [content(reply) or reply.strip()] if text else [said]


def instead(tool: Tool, call: Call, reply: str) -> tuple[str, list[Any]] | None:
    """Another argument that the reply gives by its form: a phone number for an email."""
    patterns = ((n, s.get("pattern")) for n, s in tool.parameters["properties"].items())
    found = ((n, shaped(p, reply)) for n, p in patterns if p and n not in call.arguments)
    return next((pair for pair in found if pair[1]), None)


def _numbers(text: str) -> list[int]:
    found = [int(float(number)) for number in _NUMBER.findall(text)]
    if found:
        return found
    for word in re.findall(r"[a-z-]+|[零一二两三四五六七八九十]+", text.casefold()):
        try:
            found.append(when_words.number(word.removeprefix("百分之")))
        except ValueError:
            continue
    return found


def _stem(word: str) -> str:
    return re.sub("(?<=[a-z]{3})(?:ing|ed|s)$", "", word)


def _shared(said: set[str], labels: Sequence[str]) -> int | None:
    stems = set(map(_stem, said))
    shared = [len(stems & set(map(_stem, names.words(label)))) for label in labels]
    most = max(shared, default=0)
    return shared.index(most) if most and shared.count(most) == 1 else None
