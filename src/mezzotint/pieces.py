"""A text as pieces, each with what it was and what it is: words, and what was edited.

One space before a word belongs to it, so words move whole. What an edit did to its words is a
rule that can be done again elsewhere. It knows characters; no tokens and no models.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from mezzotint.errors import UsageError

BY_USER = "edit"
LONGEST = 32  # words of an edit that is done again elsewhere
_ALONE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # scripts without spaces: a character a word
_WORD = re.compile(
    rf" ?\d+(?:[.,:/]\d+)*| ?[{_ALONE}]| ?(?:(?![\d{_ALONE}])\w)(?:(?![{_ALONE}])\w)*(?:['’-]\w+)*"
    r"| ?[^\w\s]+|\s+?(?= ?\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class Change:
    """Characters [start, end) of a text become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of the new text say `after` where the old one said `before`.

    why: "edit" for the user's own change, else what showed that `before` no longer fits.
    """

    start: int
    end: int
    before: str
    after: str
    why: str


@dataclass(slots=True)
class Piece:
    """`fixed` pieces never change again; those with a `why` have. parts: of an edited one, the
    edits as they were made, at characters of `old`."""

    old: str
    new: str
    fixed: bool = False
    why: str = ""
    parts: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """The words `old`, without the space around them, became the text `new`."""

    old: tuple[str, ...]
    new: str


def words(text: str) -> list[str]:
    """The text in words, numbers, marks and space; one space before a word belongs to it.

    >>> words("At 10:30, in Paris.")
    ['At', ' 10:30', ',', ' in', ' Paris', '.']
    """
    return _WORD.findall(text)


def is_word(piece: str) -> bool:
    """Whether it has a letter or a digit, and is no mark or space."""
    return re.search(r"\w", piece) is not None


def lead(piece: str) -> str:
    """The space it begins with."""
    return piece[: len(piece) - len(piece.lstrip())]


def pieces(text: str, edits: Sequence[Change], keep: Sequence[tuple[int, int]]) -> list[Piece]:
    """The text in pieces: every edit is one, widened to whole words; words in `keep` are fixed.

    Edits that change nothing are left out. Raises UsageError for positions outside the text,
    and for edits that overlap or touch what must stay.
    """
    edits = sorted(edits, key=lambda e: (e.start, e.end))
    _check(text, edits, keep)
    edits = [e for e in edits if e.text != text[e.start : e.end]]
    keep = [span for span in keep if span[0] < span[1]]
    found: list[Piece] = []
    at = 0

    def untouched(at: int, until: int) -> None:
        for word in words(text[at:until]):
            stop = at + len(word)
            kept = any(first < stop and at < last for first, last in keep)
            found.append(Piece(word, word, kept))
            at = stop

    for start, end in _ranges(text, edits):
        untouched(at, start)
        found.append(_edited(text, start, end, edits))
        at = end
    untouched(at, len(text))
    return found


def rules(piece: Piece) -> list[Rule]:
    """What a short edit did: to its words as a whole, and to each where they pair up.

    >>> rules(Piece(" Mr. Fischer", " Mr. Novak"))
    [Rule(old=('Fischer',), new='Novak')]
    """
    old, new = words(piece.old.strip()), words(piece.new.strip())
    bare = [word.strip() for word in new]
    while old and new and old[0].strip() == bare[0]:
        old, new, bare = old[1:], new[1:], bare[1:]
    while old and new and old[-1].strip() == bare[-1]:
        old, new, bare = old[:-1], new[:-1], bare[:-1]
    was = tuple(word.strip() for word in old)
    if not was or not new or len(new) > LONGEST or not is_word("".join(was)):
        return []
    pairs = zip(was, bare, strict=True) if len(was) == len(new) > 1 else ()
    each = [Rule((one,), other) for one, other in pairs if one != other and is_word(one)]
    return [Rule(was, "".join(new).strip()), *each]


def again(rule: Rule, at: Sequence[Piece]) -> tuple[int, str] | None:
    """How many of the first pieces the rule speaks of, and what it makes of them."""
    some = at[: len(rule.old)]
    said = [piece.old.strip() for piece in some]
    if any(p.fixed for p in some) or [s.lower() for s in said] != [o.lower() for o in rule.old]:
        return None
    raised = said[0][:1].isupper() and not rule.old[0][:1].isupper()
    new = rule.new[:1].upper() + rule.new[1:] if raised else rule.new
    return len(some), lead(some[0].old) + new


def result(found: Sequence[Piece]) -> tuple[str, tuple[Span, ...]]:
    """The new text, and all that differs; the space that both sides begin with is left out."""
    text, spans = "", []
    for piece in found:
        at = 0
        for part in piece.parts or _whole(piece):
            text += piece.old[at : part.start]
            before, at = piece.old[part.start : part.end], part.end
            spans.append(Span(len(text), len(text) + len(part.text), before, part.text, piece.why))
            text += part.text
        text += piece.old[at:]
    return text, tuple(spans)


def _whole(piece: Piece) -> tuple[Change, ...]:
    """All of the piece, if it was changed, but for the space that both sides begin with."""
    space = len(lead(piece.new)) if lead(piece.new) == lead(piece.old) else 0
    return (Change(space, len(piece.old), piece.new[space:]),) if piece.why else ()


def _check(text: str, edits: Sequence[Change], keep: Sequence[tuple[int, int]]) -> None:
    spans = [(e.start, e.end) for e in edits]
    for start, end in [*spans, *keep]:
        if not 0 <= start <= end <= len(text):
            what = f"the span {start}–{end} is not within the text of {len(text)} characters"
            raise UsageError(what, "positions are characters from 0, the end not included")
    for (_, end), (start, _) in pairwise(spans):
        if start < end:
            raise UsageError(f"two edits overlap at character {start}")
    for start, end in spans:
        if any(max(start, first) < min(end, last) or first < start < last for first, last in keep):
            raise UsageError(f"the edit of {start}–{end} touches what must stay")


def _ranges(text: str, edits: Sequence[Change]) -> list[tuple[int, int]]:
    """What the edits touch, in whole words; ranges that share a word are one."""
    ends = [0, *accumulate(map(len, words(text)))]
    done: list[tuple[int, int]] = []
    for edit in edits:
        first, last = bisect_right(ends, edit.start) - 1, bisect_left(ends, edit.end)
        joint = text[edit.start - 1 : edit.start] + edit.text[:1]
        if ends[first] == edit.start and re.match(r"\w\w", joint):
            first -= 1  # it goes on with the word before it
        low, high = ends[first], ends[last]
        if done and low <= done[-1][1]:
            low, high = done[-1][0], max(high, done.pop()[1])
        done.append((low, high))
    return done


def _edited(text: str, start: int, end: int, edits: Sequence[Change]) -> Piece:
    """text[start:end] and the edits within."""
    inside = [e for e in edits if start <= e.start and e.end <= end]
    parts = tuple(Change(e.start - start, e.end - start, e.text) for e in inside)
    piece = Piece(text[start:end], "", True, BY_USER, parts)
    piece.new, _ = result([piece])
    return piece
