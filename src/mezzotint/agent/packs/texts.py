"""Text that is searched and shown. It is data: nothing here reads a meaning out of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mezzotint.agent.tool import Context

SHOWN = 4000  # characters of a mail, note or file that a model is shown
_SMALL = frozenset(["the", "a", "an", "my", "of", "about", "for", "to", "and", "s"])
_TERM = re.compile(r"[㐀-鿿]+|[^\W㐀-鿿]+")


def folded(text: str) -> str:
    """For comparing: without case, width and the other differences that readers overlook."""
    return unicodedata.normalize("NFKC", text).casefold()


def terms(text: str) -> list[str]:
    """The words of a query, folded, without the small ones; a run of Chinese characters is one."""
    found: list[str] = _TERM.findall(folded(text))
    return [term for term in found if term not in _SMALL] or found


def holds(text: str, wanted: Sequence[str]) -> bool:
    """Whether a text has all the terms, in any order."""
    text = folded(text)
    return all(term in text for term in wanted)


def line_with(text: str, wanted: Sequence[str], width: int = 120) -> str:
    """The line that has most of the terms, the first of such, cut to `width` around one."""
    line = max(text.splitlines() or [""], key=lambda one: sum(t in folded(one) for t in wanted))
    line = clean(line)
    at = min((found for t in wanted if (found := folded(line).find(t)) >= 0), default=0)
    start = max(0, min(at - width // 3, len(line) - width))
    return line[start : start + width]


def clean(text: str) -> str:
    """One line: what separates lines, or cannot be seen, becomes a space."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def cut(text: str, context: Context, limit: int = SHOWN) -> str:
    """At most `limit` characters, and a note of how many there were."""
    if len(text) <= limit:
        return text
    note = context.say(
        f"[cut: the first {limit} of {len(text)} characters]",
        f"[已截断：共{len(text)}字，只显示前{limit}字]",
    )
    return f"{text[:limit]}\n{note}"


def decoded(data: bytes) -> str | None:
    """The text in a file, or None if it is not text. UTF-8, marked UTF-16, or GB18030."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:8192]:
        return None
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None
