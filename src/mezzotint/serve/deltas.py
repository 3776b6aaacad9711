"""Settled tokens in, text that is never taken back out: whole characters, stop strings, calls.

Each class takes parts as they come and gives the same whole however it was cut into parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

LOST = "\N{REPLACEMENT CHARACTER}"  # what bytes that are no character decode to


class Letters:
    """Tokens to text; a character whose last bytes have not come waits for them."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._held: list[int] = []

    def push(self, tokens: Iterable[int]) -> str:
        self._held += tokens
        text = self._decode(self._held)
        if text.endswith(LOST):
            return ""
        self._held = []
        return text

    def end(self) -> str:
        """What is left: a character that never came whole, as U+FFFD."""
        held, self._held = self._held, []
        return self._decode(held)


class Stops:
    """Text up to the first stop string; nothing that may be the beginning of one is let out.

    The first is the one that is complete first, and of those the longest.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = sorted(filter(None, stops), key=len, reverse=True)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        if self.found or not self._stops:
            return "" if self.found else text
        held = self._held + text
        at = [(held.find(stop) + len(stop), stop) for stop in self._stops if stop in held]
        if at:
            end, stop = min(at, key=lambda pair: pair[0])
            self.found, self._held = True, ""
            return held[: end - len(stop)]
        keep = max(_overlap(held, stop) for stop in self._stops)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def end(self) -> str:
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`, and is not the whole of it."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


@dataclass(frozen=True, slots=True)
class Name:
    """A call begins."""

    name: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """More of the arguments, JSON text, of the call that began last."""

    text: str


class Calls:
    """Lines `{"name":{…}}` (see `mezzotint.toolcall`) to names and the text of arguments."""

    _OPENING = re.compile(r'\{("(?:[^"\\]|\\.)*"):')

    def __init__(self) -> None:
        self._line = ""
        self._inside = False

    def push(self, text: str) -> Iterator[Name | Arguments]:
        self._line += text
        *whole, rest = self._line.split("\n")
        for line in whole:
            yield from self._read(line, whole=True)
            self._inside = False
        self._line = yield from self._read(rest, whole=False)

    def end(self) -> Iterator[Name | Arguments]:
        yield from self._read(self._line, whole=True)
        self._line, self._inside = "", False

    def _read(self, line: str, whole: bool) -> Generator[Name | Arguments, None, str]:
        """The line's parts; returns what of it is left. Its last brace closes the call itself."""
        if not self._inside:
            opening = self._OPENING.match(line)
            if opening is None:
                return line
            self._inside = True
            yield Name(json.loads(opening[1]))
            line = line[opening.end() :]
        known = line.removesuffix("}") if whole else line[:-1]
        if known:
            yield Arguments(known)
        return line[len(known) :]
