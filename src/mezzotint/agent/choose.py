"""Which tools a request may be about: the few that the model is shown, and may call.

Words of the request are matched with each tool's name, description and hints, weighed by how
rare they are among the tools (BM25's idf). The user's words alone decide: a mail or a
file says can bring no tool into play.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mezzotint.agent.tool import Tool

SHOWN = 8  # tools at most, as in training
FLOOR = 0.45  # of the likeliest tool's score, that others must have
_HAN = re.compile("[㐀-鿿]+")
_CLAUSES = re.compile(r"\b(?:and|then|also)\b|[,;.，；。、]|然后|并且|再|还有")
_STEM = 5  # letters of an English word that count: "reschedule", "rescheduling"
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an the all to of at in on for and or with by my your me i it be do that this"
        " from please can could you then also let not no",
    )
)


@dataclass(frozen=True)
class Chooser:
    """The tools and is known of their words."""

    tools: tuple[Tool, ...]
    words: Mapping[str, Mapping[str, int]]
    weights: Mapping[str, float]

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> Chooser:
        words = {tool.name: _weighed(tool) for tool in tools}
        counts = Counter(word for some in words.values() for word in some)
        weights = {word: math.log(1 + len(words) / count) for word, count in counts.items()}
        return cls(tuple(tools), words, weights)

    def choose(self, request: str, most: int = 6) -> list[Tool]:
        """The tools that the request has words of, likeliest first; all of them if few.

        Each part of a request that asks for several things has its say.
        """
        if len(self.tools) <= most:
            return list(self.tools)
        clauses = [part for part in _CLAUSES.split(request) if part.strip()] or [request]
        each = max(most // len(clauses), 2)
        found: dict[str, Tool] = {}
        for clause in clauses:
            scored = [(self._score(clause, tool), tool) for tool in self.tools]
            best = sorted(scored, key=lambda pair: -pair[0])[:each]
            floor = FLOOR * best[0][0]
            found |= {tool.name: tool for score, tool in best if score and score >= floor}
        return list(found.values())[:SHOWN]

    def evident(self, tool: Tool, request: str) -> bool:
        """Whether the user's own words speak of the tool."""
        return self._score(request, tool) > 0

    def _score(self, asked: str, tool: Tool) -> float:
        stems = set(_stems(asked))
        words = self.words[tool.name]
        here = [word for word in words if word in stems or (_HAN.match(word) and word in asked)]
        return sum(self.weights[word] * words[word] for word in here)


def _weighed(tool: Tool) -> dict[str, int]:
    """How much each of a tool's words counts."""
    hint = _hints().get(tool.name, "")
    said = _words(f"{tool.name} {tool.description} {hint}")
    return dict.fromkeys(said, 1) | dict.fromkeys(_words(hint.partition("|")[0]), 2)


def _words(text: str) -> list[str]:
    """Stems of English words, and Chinese words as they are written apart."""
    return [*_stems(text), *_HAN.findall(text)]


def _stems(text: str) -> list[str]:
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower()
    return [word[:_STEM] for word in re.findall(r"[a-z]+", apart) if word not in _COMMON]


@cache
def _hints() -> Mapping[str, str]:
    """Other words for the built-in tools do, in English and Chinese."""
    return tomllib.loads((files(__package__) / "hints.toml").read_text("utf-8"))
