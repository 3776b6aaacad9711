"""Which tools a request may be about: the few that the model is shown, and may call.

Words of the request are matched with each tool's name, description and hints, weighed by how
rare they are among the tools (BM25's idf); of the built-in tools it has also been learnt which
requests need them (see retrieve). The user's words alone decide: what a mail or a file says can
bring no tool into play.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mezzotint.agent.retrieve import builtin
from mezzotint.agent.tool import Effect, Tool

SHOWN = 8  # tools at most, as in training
FLOOR = 0.45  # of the likeliest tool's score, that others must have
SURE = 0.6  # the same, where the words are certain
WORDS = 0.5  # what the score counts beside the learnt odds
MARGIN = 2.5  # of odds, that a tool may be behind the likeliest
NEVER = -7.0  # odds below which a request does not speak of a tool
LIKELY = -0.5  # odds above which a part of it is taken to be an order for one
PLAIN = 1.0  # the same, of a look that is neither asked nor ordered in so many words
SURELY = 1.5  # the same, of a question that nothing but this look answers
CLOSE = 1.5  # of odds, that another tool may be behind the likeliest of such a part
NAMED = 4.0  # what a thing that its store knows adds to a score: as much as a rare word
_THINGS = ("device", "light", "door", "cover")
MEANT = 3  # tools of one order at most
_HAN = re.compile("[㐀-鿿]+")
_FILES = re.compile(r"[\w-]+\.(?:txt|md|pdf|docx?|xlsx?|jpe?g|png|csv|zip)\b", re.ASCII)
_CLAUSES = re.compile(r"\b(?:and|then|also)\b|[,;，；。、]|\.(?=\s)|然后|并且|再|还有")
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
    """The tools, and what is known of their words."""

    tools: tuple[Tool, ...]
    words: Mapping[str, Mapping[str, int]]
    weights: Mapping[str, float]

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> Chooser:
        words = {tool.name: words_of(tool) for tool in tools}
        counts = Counter(word for some in words.values() for word in some)
        weights = {word: math.log(1 + len(words) / count) for word, count in counts.items()}
        return cls(tuple(tools), words, weights)

    def choose(
        self, request: str, most: int = 6, among: Collection[Effect] = tuple(Effect)
    ) -> list[Tool]:
        """The tools that the request speaks of, likeliest first; all of them if few.

        Each part of a request that asks for several things has its say, after the whole of it.
        among: what they may do.
        """
        pool = [tool for tool in self.tools if tool.effect in among]
        if len(self.tools) <= most:
            return pool
        clauses = [part for part in _CLAUSES.split(request) if part.strip()] or [request]
        each = max(most // len(clauses), 2)
        found = self._likeliest(request, pool, each)
        for clause in clauses if len(clauses) > 1 else ():
            found |= self._likeliest(clause, pool, each)
        return list(found.values())[:SHOWN]

    def _likeliest(self, text: str, pool: Sequence[Tool], most: int) -> dict[str, Tool]:
        """Of learnt tools those near the best; of others those with words near the best."""
        scores = {tool.name: self._score(text, tool) for tool in pool}
        learnt, found = self._odds(text, scores), dict[str, Tool]()
        floor = FLOOR * max(scores.values(), default=0.0)
        ranked = sorted(pool, key=lambda tool: -learnt.get(tool.name, scores[tool.name] + NEVER))
        top = max(learnt.values(), default=0.0)
        for tool in ranked:
            likely = learnt.get(tool.name)
            has_words = scores[tool.name] > 0 and scores[tool.name] >= floor
            if has_words if likely is None else likely >= max(top - MARGIN, NEVER):
                found[tool.name] = tool
        return dict([*found.items()][:most])

    def _odds(self, text: str, scores: Mapping[str, float]) -> dict[str, float]:
        """Of the tools that were learnt, how likely a request speaks of them. scores: of tools."""
        odds = builtin().odds(_FILES.sub("notes.txt", text))
        return {name: odds[name] + WORDS * scores[name] for name in scores if name in odds}

    def meant(
        self, part: str, among: Collection[Effect], least: int = 2, said: str = ""
    ) -> list[Tool]:
        """The tools that an order certainly speaks of: as has been learnt, unless a tool that was
        not there to learn has more of its words. least: what words must count. said: the order
        with words that say nothing of the tool."""
        worded, learnt = self._worded(part, among, least), self.learnt(said or part, among)
        known = set(builtin().names)
        other = [t for t in worded if t.name not in known]
        best = max((self._score(part, tool) for tool in learnt), default=0.0)
        return [t for t in other if self._score(part, t) > best] or learnt or worded

    def _worded(self, part: str, among: Collection[Effect], least: int) -> list[Tool]:
        """Those with most of an order's words, at least one of which is the tool's own, or two."""
        pool = [tool for tool in self.tools if tool.effect in among]
        named = {tool.name for tool in pool if self._named(part, tool)}
        plain = [t for t in pool if self._strength(part, t) + 2 * (t.name in named) >= least]
        here = {t.name: len(self._here(part, self.words[t.name])) for t in plain}
        counts = {name: count + (name in named) for name, count in here.items()}
        best = [t for t in plain if counts[t.name] == max(counts.values())]
        marked = ((self._score(part, t) + NAMED * (t.name in named), t) for t in best)
        scored = sorted(marked, key=lambda pair: -pair[0])
        return [tool for score, tool in scored[:MEANT] if score >= SURE * scored[0][0]]

    def learnt(
        self, part: str, among: Collection[Effect] = tuple(Effect), least: float = LIKELY
    ) -> list[Tool]:
        """The tools that a part of a request speaks of, as has been learnt. least: their odds."""
        scores = {tool.name: self._score(part, tool) for tool in self.tools}
        odds = self._odds(part, scores)
        likely = [t for t in self.tools if t.effect in among and odds.get(t.name, NEVER) > least]
        ranked = sorted(likely, key=lambda tool: -odds[tool.name])
        return [t for t in ranked if odds[t.name] > odds[ranked[0].name] - CLOSE][:MEANT]

    def likeliest(self, part: str) -> float:
        """The odds of the tool that a part of a request most likely speaks of."""
        odds = self._odds(part, {tool.name: self._score(part, tool) for tool in self.tools})
        return max(odds.values(), default=NEVER)

    def certain(self, tool: Tool, request: str) -> bool:
        """Whether the user's words speak of the tool by a word of its own, or by two, or more
        likely than not."""
        if self._strength(request, tool) > 1 or self._named(request, tool):
            return True
        score = {tool.name: self._score(request, tool)}
        return self._odds(request, score).get(tool.name, NEVER) > 0

    def siblings(self, tools: Sequence[Tool]) -> list[Tool]:
        """The tools that read things of the kinds which `tools` are about."""
        kinds = {noun(tool) for tool in tools}
        return [t for t in self.tools if t.effect is Effect.READS and noun(t) in kinds]

    def evident(self, tool: Tool, request: str) -> bool:
        """Whether the user's own words speak of the tool."""
        return self._score(request, tool) > 0

    def _strength(self, asked: str, tool: Tool) -> int:
        words = self.words[tool.name]
        return sum(
            words[word] + (len(word) > 1 and not word.isascii())
            for word in self._here(asked, words)
        )

    def _named(self, asked: str, tool: Tool) -> bool:
        """Whether the words name a thing that the tool acts on, as its store knows it."""
        return any(tool.known[name](asked) for name in _THINGS if name in tool.known)

    def _here(self, asked: str, words: Mapping[str, int]) -> list[str]:
        stems = set(_stems(asked))
        return [word for word in words if word in stems or (_HAN.match(word) and word in asked)]

    def _score(self, asked: str, tool: Tool) -> float:
        words = self.words[tool.name]
        return sum(self.weights[word] * words[word] for word in self._here(asked, words))


def noun(tool: Tool) -> str:
    """What a tool is about: tools are named verb_noun."""
    return tool.name.rpartition("_")[2].removesuffix("s")


def words_of(tool: Tool) -> dict[str, int]:
    """How much each of a tool's words counts."""
    hint = hints().get(tool.name, "")
    said = _words(f"{tool.name} {tool.description} {hint}")
    return dict.fromkeys(said, 1) | dict.fromkeys(_words(hint.partition("|")[0]), 2)


def _words(text: str) -> list[str]:
    """Stems of English words, and Chinese words as they are written apart."""
    return [*_stems(text), *_HAN.findall(text)]


def _stems(text: str) -> list[str]:
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", _FILES.sub(" file ", text)).lower()
    words = (word for word in re.findall(r"[a-z]+", apart) if word not in _COMMON)
    return [re.sub(r"(?<=[a-z]{3})(?<!s)s$", "", word)[:_STEM] for word in words]


@cache
def hints() -> Mapping[str, str]:
    """Other words for the built-in tools do, in English and Chinese."""
    return tomllib.loads((files(__package__) / "hints.toml").read_text("utf-8"))
