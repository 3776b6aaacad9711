"""What a request wants done, order by order, and which tools can do each.

Most requests name what they want in so many words. Then the loop need not leave it to a small
model how many calls to make, or of what kind: an order that only looks something up is a
reading call, any other an acting one, and one that speaks of what is looked up waits for it.
Orders whose words name no tool are left to the model. This file makes no call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from mezzotint.agent import names, plain
from mezzotint.agent.choose import LIKELY, PLAIN, SURELY, Chooser, noun
from mezzotint.agent.clauses import Clause, Judge, Kind, clauses
from mezzotint.agent.found import Found
from mezzotint.agent.ground import asks, content_of, needs_number
from mezzotint.agent.handed import content, names_person_before, searches, subject, task, unhanded
from mezzotint.agent.lengths import anchored, offset
from mezzotint.agent.reply import spoken_of
from mezzotint.agent.tool import Effect, Tool

if TYPE_CHECKING:
    from mezzotint.agent.turn import Step

_BRIEF = 12  # words of an order that may hand on what was found without saying so
_TEXTS = ("path", "title")
_FINDS = "find_event"
_INSIDE = re.compile(r"\b(?:in|into) (?:there|it|that one)\b|到?里面|进去", re.IGNORECASE)
_THINGS = ("path", "file", "old", "title", "task", "device", "light", "door", "cover")
_ACTING = (Effect.WRITES, Effect.IRREVERSIBLE)


@dataclass(eq=False)
class Want:
    """One order. tools: what may do it. feeds: what can bring the number that these need; it is
    called first. after: the order whose findings it speaks of. step: what was called for it."""

    clause: Clause
    tools: tuple[Tool, ...]
    feeds: tuple[Tool, ...] = ()
    after: Want | None = None
    step: Step | None = None
    fed: Step | None = None

    @property
    def open(self) -> bool:
        return self.step is None

    @property
    def source(self) -> Step | None:
        """The step whose findings it uses, once that is made."""
        return self.fed or (self.after.step if self.after else None)

    @property
    def found(self) -> Found:
        """What it may speak of."""
        asked = self.after.clause.text if self.after else ""
        return Found((self.source.outcome,), asked) if self.source else Found()

    @property
    def next(self) -> tuple[Tool, ...]:
        """What may be called for it now; nothing while it waits, or if it waited in vain."""
        if not self.open or (self.source is not None and not self.source.outcome.ok):
            return ()
        if self.feeds:
            return self.tools if self.fed else self.feeds
        return () if self.after and self.source is None else self.tools

    def takes(self, tool: str, step: Step) -> bool:
        """Whether a call of the tool is for it; then the step is noted."""
        if not self.open or tool not in {one.name for one in self.next}:
            return False
        if self.feeds and not self.fed:
            self.fed = step
        else:
            self.step = step
        return True


@dataclass(frozen=True)
class _Learnt(Judge):
    """Judges by what has been learnt of requests."""

    chooser: Chooser

    def evident(self, part: str) -> bool:
        return bool(self.chooser.meant(subject(part), _ACTING, said=unhanded(part)))

    def kind(self, part: str) -> Kind:
        said, asked = unhanded(part), asks(part)
        acting = [] if asked else self.chooser.learnt(said, _ACTING)
        looking = self.chooser.learnt(said, (Effect.READS,), LIKELY if asked else PLAIN)
        first = self.chooser.learnt(said)[:1]
        looks = bool(looking) and (not acting or looking[:1] == first)
        return looks, bool(acting) and not looks

    def asked(self, part: str) -> bool:
        return asks(part)

    def same(self, part: str, following: str) -> bool:
        """Both are of one kind of thing, and both look or both act."""
        first, second = (
            next(iter(self.chooser.learnt(unhanded(text))), None) for text in (part, following)
        )
        if first is None or second is None:
            return True
        reads = {tool.effect is Effect.READS for tool in (first, second)}
        return noun(first) == noun(second) and len(reads) == 1


def wants(request: str, chooser: Chooser) -> tuple[list[Want], bool]:
    """The orders that certain tools can do; and whether that is all that the request says."""
    found: list[Want] = []
    parts = clauses(request, _Learnt(chooser))
    for part in parts:
        tools = _meant(part, chooser, found) if part.order else ()
        if not tools:
            continue
        looks = all(tool.effect is Effect.READS for tool in tools)
        found.append(Want(part, tools) if looks else _act(part, tools, found, request, chooser))
    return found, len(found) == len(parts)


def _act(
    part: Clause, tools: tuple[Tool, ...], found: list[Want], request: str, chooser: Chooser
) -> Want:
    """An order that does something, with the look that it waits for. found: the orders before."""
    before = next((w for w in reversed(found) if _looks(w)), None)
    number = all(needs_number(tool) for tool in tools)
    feeding = bool(before) and _suits(before, tools)
    handed = feeding and (number or names_person_before(part.text))
    wordless = all(map(content_of, tools)) and not (content(part.text) or task(part.text)[0])
    sends = wordless and all(noun(tool) == "email" for tool in tools)
    reader = _reader(request, chooser) if sends and not before else ()
    told = bool(before or reader) and wordless and len(part.core.split()) <= _BRIEF
    part = _put_inside(part, found)
    part = replace(part, back=part.back or told)
    after = before if part.back or handed or _of_that_day(part) or offset(part.text) else None
    if number:
        feeds = () if after and feeding else _suppliers(tools[0], chooser)
    elif not before and (thing := anchored(part.core)[1]):
        feeds = _finder(thing, chooser)
    else:
        feeds = () if after else reader
    return Want(part, tools, feeds, after)


def looked_up(request: str, chooser: Chooser) -> list[Want]:
    """What a question wants looked up, if it is one thing and certain; else nothing."""
    said, reads = unhanded(request), (Effect.READS,)
    tools = chooser.meant(subject(request), reads, 1, said)
    sure = {tool.name for tool in chooser.learnt(said, reads, SURELY)}
    several = len(clauses(request, _Learnt(chooser))) > 1
    if several or not tools or any(tool.name not in sure for tool in tools):
        return []
    return [Want(Clause(request, looks=True, core=request), tuple(tools))]


def _meant(part: Clause, chooser: Chooser, earlier: list[Want]) -> tuple[Tool, ...]:
    """Tools of the order: by its own words first, then by those around it, too; unless it only
    says "it" of what these name."""
    whole, alone = _spoken(part, chooser, earlier), replace(part, text=part.core)
    found = _spoken(alone, chooser, earlier) if part.core and not part.back else ()
    least = min(PLAIN, chooser.likeliest(unhanded(part.text)))
    surer = found and chooser.likeliest(unhanded(part.core)) >= least
    return _having(found if surer or not whole else whole, part)


def _having(tools: tuple[Tool, ...], part: Clause) -> tuple[Tool, ...]:
    """Those that act on a thing which the order names, if some do; else those that need none."""
    said = unhanded(part.text)
    having = tuple(t for t in tools if any(t.known[n](said) for n in _THINGS if n in t.known))
    having = having or tuple(
        t for t in tools if any(spoken_of(said, t.things[n]()) for n in t.things)
    )
    return having or tuple(t for t in tools if not t.things) or tools


def _spoken(part: Clause, chooser: Chooser, earlier: list[Want]) -> tuple[Tool, ...]:
    """Tools of the order: by its words, or, if it speaks of a thing found before, those for
    things of that kind."""
    said = unhanded(part.text)
    if part.looks and not part.acts:
        looking = chooser.meant(subject(part.text), (Effect.READS,), 1, said)
        if searches(part.text):  # for something: a bare list does not do
            looking = [tool for tool in looking if tool.parameters["properties"]] or looking
        return tuple(looking)
    effects = (*((Effect.READS,) if part.looks else ()), *_ACTING)
    tools = chooser.meant(subject(part.text), effects, said=said)
    if content(part.text) or task(part.text)[0]:  # words to hand on: few tools take such
        likely = chooser.meant(subject(part.text), effects, 1, said)
        tools = [tool for tool in tools or likely if content_of(tool)] or tools
    says_kind = any(noun(tool) in names.words(part.text) for tool in tools)  # "as a note"
    if part.back and earlier and tools and not says_kind:
        kinds, effect = {noun(tool) for tool in earlier[-1].tools}, tools[0].effect
        same = [t for t in chooser.tools if noun(t) in kinds and t.effect is effect]
        numbered = [t for t in same if needs_number(t) and chooser.evident(t, part.text)]
        tools = numbered or tools
    return tuple(tools)


def _reader(request: str, chooser: Chooser) -> tuple[Tool, ...]:
    """What reads the file or the note that a request names, to hand on what is in it."""
    said = unhanded(request)
    for tool in chooser.tools:
        if tool.effect is Effect.READS and any(
            tool.known[n](said) for n in _TEXTS if n in tool.known
        ):
            return (tool,)
    return ()


def _finder(thing: str, chooser: Chooser) -> tuple[Tool, ...]:
    """What tells when an event is that the calendar has."""
    finders = (tool for tool in chooser.tools if tool.name == _FINDS and tool.things)
    return tuple(tool for tool in finders if spoken_of(thing, tool.things["title"]()))


def _put_inside(part: Clause, found: list[Want]) -> Clause:
    """A part with the name of the folder that the order before it makes, for "in there"."""
    made = found[-1].clause.core if found and found[-1].tools[0].name == "create_folder" else ""
    name = plain.named(made, (), datetime.min) if made else ""
    if not name or not _INSIDE.search(part.text):
        return part
    into = partial(_INSIDE.sub, lambda match: f"in {name}" if match[0].isascii() else f"到{name}")
    return replace(part, text=into(part.text), core=into(part.core), back=False)


def _looks(want: Want) -> bool:
    return all(tool.effect is Effect.READS for tool in want.tools)


def _suits(before: Want | None, tools: tuple[Tool, ...]) -> bool:
    """Whether what one order reads are things of the kind that the other acts on."""
    return before is not None and noun(tools[0]) in {noun(tool) for tool in before.tools}


def _suppliers(tool: Tool, chooser: Chooser) -> tuple[Tool, ...]:
    """Tools that find things of the kind that a tool acts on, by number."""
    alike = (one for one in chooser.tools if noun(one) == noun(tool))
    return tuple(one for one in alike if one.effect is Effect.READS and not needs_number(one))


def _of_that_day(part: Clause) -> bool:
    said = part.text.casefold()
    return any(
        word in said
        for word in ("that day", "same day", "that morning", "that evening", "当天", "那天")
    )
