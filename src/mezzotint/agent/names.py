"""Which of the things that exist a name means: people and small models say names loosely.

The first kind of likeness that any thing has decides: the same name, then all the words of one
in the other, then a slip of the pen. Several may fit; who asks which is the tool. This file
knows texts only.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NoReturn, TypeVar

from mezzotint.agent.tool import Context, Problem

T = TypeVar("T")
_SMALL_EN = ("the", "a", "an", "my", "our", "your", "with", "of", "to", "at", "in", "on", "for")
_SMALL = frozenset([*_SMALL_EN, "and", "s", "的", "了", "我", "和", "跟", "与"])
_WORD = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")
_FILES = re.compile(r"[\w./-]*\w\.[a-z]\w{1,4}\b|\S+@\S+", re.ASCII | re.IGNORECASE)
_SLIP = 0.82  # difflib's ratio from which two names are one, misspelt
_NEAR = 0.5  # and from which one is worth suggesting


def fitting(name: str, things: Sequence[T], called: Callable[[T], str]) -> list[T]:
    """The things that `name` may mean, in their order; none if it means nothing here."""
    wanted = words(name)
    if not wanted:
        return []
    known = [(thing, words(called(thing))) for thing in things]
    raw = unicodedata.normalize("NFKC", name).casefold()
    for alike in (_same, _within, partial(_around, raw), _slip):
        if found := [thing for thing, has in known if has and alike(wanted, has)]:
            return found
    return []


def alike(name: str, other: str) -> bool:
    """Whether `other` is one of the things that `name` could mean, if no better one is."""
    return bool(fitting(name, [other], str))


def holds(name: str, said: str) -> bool:
    """Whether all words that are said are in the name."""
    return _within(words(said), words(name))


def closest(name: str, names: Iterable[str]) -> str:
    """The name most like `name`, or "" if none is."""
    wanted = words(name)
    rated = [(_likeness(wanted, words(other)), other) for other in names]
    best = max(rated, default=(0.0, ""), key=lambda pair: pair[0])
    return best[1] if best[0] >= _NEAR else ""


def only(
    name: str,
    things: Sequence[T],
    called: Callable[[T], str],
    context: Context,
    argument: str,
    label: Callable[[T], str] | None = None,
) -> T:
    """The one thing that `name` means. Raises Problem if none does, with the closest name, or
    if several do, with the choices. label: tells things of the same name apart."""
    label = label or called
    found = [thing for thing in things if label(thing) == name] or fitting(name, things, called)
    if not found:
        missing(name, [called(thing) for thing in things], context, argument)
    if len(found) > 1:
        several(name, [label(thing) for thing in found], context, argument)
    return found[0]


def several(name: str, labels: Iterable[str], context: Context, argument: str) -> NoReturn:
    """Raise the Problem for a name that several things have; each label picks one."""
    choices = list(dict.fromkeys(labels))
    raise Problem(
        context.say(
            f"{len(choices)} fit {name}: {'; '.join(choices)}",
            f"有{len(choices)}个符合“{name}”：{'、'.join(choices)}",
        ),
        choices=choices,
        argument=argument,
    )


def missing(name: str, names: Iterable[str], context: Context, argument: str) -> NoReturn:
    """Raise the Problem for a name that nothing has."""
    known = list(dict.fromkeys(names))
    raise Problem(
        context.say(f"no {argument} {name}", f"没有“{name}”"),
        closest=closest(name, known),
        argument=argument,
        known=known,
    )


def said_in(text: str, known: Iterable[str], kind: bool = False, whole: bool = False) -> list[str]:
    """What a text says of known names, as it says it: runs of words that are all of one name, a
    Chinese name whole. A run within a longer one is left out. kind: a run must have the last
    word of the name, which says what kind of thing it is ("back" is no "back door"). whole: it
    must have all of them."""
    text = _FILES.sub(lambda match: " " * len(match[0]), text)
    folded = unicodedata.normalize("NFKC", text).casefold()
    if len(folded) != len(text):
        folded = text.casefold() if len(text.casefold()) == len(text) else text
    tokens = [match.span() for match in _WORD.finditer(folded)]
    spans: set[tuple[int, int]] = set()
    for name in known:
        runs = _runs(folded, tokens, set(words(name)), unicodedata.normalize("NFKC", name))
        needed = set(words(name) if whole else words(name)[-1:] if kind else ())
        spans |= {r for r in runs if not name.isascii() or needed <= set(words(folded[slice(*r)]))}
    longest = [a for a in spans if not any(b != a and b[0] <= a[0] and a[1] <= b[1] for b in spans)]
    return list(dict.fromkeys(text[start:stop] for start, stop in sorted(longest)))


def _runs(
    folded: str, tokens: Sequence[tuple[int, int]], has: set[str], name: str
) -> Iterator[tuple[int, int]]:
    if not name.isascii():
        at = folded.find(name.casefold())
        if at >= 0:
            yield at, at + len(name)
        return
    run: list[tuple[int, int]] = []
    for start, stop in [*tokens, (0, 0)]:
        if folded[start:stop] in has and (start, stop) != (0, 0):
            run.append((start, stop))
        elif run:
            yield run[0][0], run[-1][1]
            run = []


def words(name: str) -> list[str]:
    """A name's words, folded, without the small ones; each Chinese character is a word."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    found: list[str] = _WORD.findall(folded)
    return [word for word in found if word not in _SMALL] or found


def _same(wanted: list[str], has: list[str]) -> bool:
    return wanted == has


def _within(wanted: list[str], has: list[str]) -> bool:
    """All that was said is in the name. Chinese characters must stand together, in order."""
    if any(len(word) == 1 and not word.isascii() for word in wanted):
        return "".join(wanted) in "".join(has)
    return set(wanted) <= set(has)


def _around(raw: str, wanted: list[str], has: list[str]) -> bool:
    """All of the name was said, and more; in Chinese as it was said ("阳台的灯" is no "台灯")."""
    return _within(has, wanted) and (has[0].isascii() or "".join(has) in raw)


def _slip(wanted: list[str], has: list[str]) -> bool:
    return _ratio(wanted, has) >= _SLIP


def _likeness(wanted: list[str], has: list[str]) -> float:
    shared = len(set(wanted) & set(has)) / max(1, min(len(set(wanted)), len(set(has))))
    return max(_ratio(wanted, has), 0.8 * shared)


def _ratio(one: list[str], other: list[str]) -> float:
    return difflib.SequenceMatcher(None, " ".join(one), " ".join(other)).ratio()
