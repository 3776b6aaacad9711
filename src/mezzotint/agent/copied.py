"""Texts that a small model copied badly, as the user said them or a tool told them.

A model of this size writes "lentries" for "lentils", and leaves words out. A free text of a call
that nobody said is replaced by the likest run of words that somebody did, if one is very like it.
This file knows texts, no tools and no models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

ALIKE = 0.75  # difflib's ratio: twice what is the same over what both have
LONGEST = 4000  # characters that are looked through
_WORD = re.compile(r"[㐀-鿿]|[^\s㐀-鿿]+")
_EDGE = ",;:.!?，。；：！？、“”\"'()（）"


def mended(value: str, told: str) -> str:
    """The value, or the run of words of `told` that it was to be a copy of."""
    told = told[:LONGEST]
    if not value.strip() or _said(value.casefold(), told.casefold()):
        return value
    best, ratio = value, ALIKE
    matcher = SequenceMatcher(None, "", value.casefold(), autojunk=False)
    for run in _runs(told, len(_WORD.findall(value))):
        matcher.set_seq1(run.casefold())
        if matcher.real_quick_ratio() > ratio and matcher.quick_ratio() > ratio:
            found = matcher.ratio()
            best, ratio = (run, found) if found > ratio else (best, ratio)
    return best


def _said(value: str, told: str) -> bool:
    edge = r"\b" if value.isascii() else ""
    lead, end = (edge if char.isalnum() else "" for char in (value[0], value[-1]))
    return re.search(f"{lead}{re.escape(value)}{end}", told) is not None


def _runs(text: str, count: int) -> Iterator[str]:
    """Runs of about `count` words (or Chinese characters), without what stands around them."""
    spans = [match.span() for match in _WORD.finditer(text)]
    for length in range(max(count - 2, 1), count + 3):
        for first, last in zip(spans, spans[length - 1 :], strict=False):
            if run := text[first[0] : last[1]].strip(_EDGE):
                yield run.removesuffix("'s")
