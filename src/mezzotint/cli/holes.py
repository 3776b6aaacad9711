"""The spelling of holes in a text: [[8]] is eight tokens, [[?]] is of unknown length.

A backslash before such a mark makes it plain text (and is dropped); any other bracket,
brace or backslash is plain text as it is.
"""

from __future__ import annotations

import re

from mezzotint.errors import UsageError

_MARK = re.compile(r"(\\?)\[\[(\d+|\?)\]\]")
LONGEST = 4096


def parse(text: str) -> list[str | int | None]:
    """Text, hole lengths and None for unknown, in order. Raises UsageError without a hole.

    >>> parse(r"def f([[4]]): \\[[1]] [[?]]")
    ['def f(', 4, '): [[1]] ', None]
    """
    parts: list[str | int | None] = []
    plain, at = "", 0
    for mark in _MARK.finditer(text):
        plain += text[at : mark.start()]
        at = mark.end()
        if mark[1]:
            plain += mark[0][1:]
            continue
        parts += [plain] if plain else []
        parts.append(None if mark[2] == "?" else _length(mark[2]))
        plain = ""
    if not parts:
        raise UsageError(
            "the text has no hole", "write [[8]] for eight tokens or [[?]] for any number"
        )
    plain += text[at:]
    return [*parts, plain] if plain else parts


def _length(digits: str) -> int:
    if len(digits) > 4 or not 1 <= int(digits) <= LONGEST:
        raise UsageError(f"a hole of {digits} tokens; its length must be 1 to {LONGEST}")
    return int(digits)
