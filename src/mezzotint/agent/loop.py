"""The agent: plan, call, verify, answer.

The user's request alone decides which tools can be called. The model sees those few tools and
writes the steps; each is checked before it is made and asked for where it cannot be undone.
What a call brings is data: it can fill a value of a later call, and can neither bring in a
tool that the request does not speak of, nor let an act that cannot be undone go unasked if
its values are not the user's. A step that fails is shown to the model once, with why; only that
step is written anew. Then the user is asked. Answers are composed from what was done.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mezzotint import toolcall
from mezzotint.agent import names
from mezzotint.agent.choose import Chooser
from mezzotint.agent.events import Chosen, Did, Event, Planned, Refused, Revised, Said, Timing
from mezzotint.agent.ground import (
    Moments,
    corrects,
    fit,
    lacks_moment,
    narrowed,
    needs_number,
    pruned,
)
from mezzotint.agent.journal import Journal
from mezzotint.agent.rules import Rules
from mezzotint.agent.tool import Context, Effect, Outcome, Tool, language_of
from mezzotint.agent.writer import Writer, calls_in, system
from mezzotint.toolcall import Call

ROUNDS = 3  # of steps that depend on the ones before
Consent = Callable[[Call, Tool], bool]
Message = dict[str, str]


def never(call: Call, tool: Tool) -> bool:
    return False


@dataclass
class Agent:
    """now: gives the time, aware. consent: asked before a call that the rules want asked.
    rehearse: calls are planned and checked, none that writes is made."""

    writer: Writer
    tools: Sequence[Tool]
    journal: Journal
    now: Callable[[], datetime] = lambda: datetime.now().astimezone()
    consent: Consent = never
    rules: Rules = field(default_factory=Rules)
    rehearse: bool = False
    _waiting: _Waiting | None = None
    _last: _Turn | None = None
    _chooser: Chooser = field(init=False)

    def __post_init__(self) -> None:
        self._chooser = Chooser.of(self.tools)

    def ask(self, request: str) -> Iterator[Event]:
        """Do what is asked, answer the question that the last `ask` ended with, or do anew
        what it did, if the request corrects that."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            yield from waiting.go_on(request)
            return
        turn = self._corrected(request) or self._turn(request)
        yield Chosen(tuple(tool.name for tool in turn.tools))
        yield from self._rounds(turn)

    def _turn(self, request: str) -> _Turn:
        tools = fit(self._chooser.choose(request), request)
        context = Context(self.now(), language_of(request))
        if not self.rehearse:
            context = replace(context, run=self.journal.run(request))
        messages = [system(tools, context.now), {"role": "user", "content": request}]
        said = Moments.of(request, context.now)
        return _Turn(request, self._chooser, tools, context, messages, said)

    def _corrected(self, request: str) -> _Turn | None:
        """The last turn as the request corrects it, what it did taken back; None if it is none.

        The correction is all that is new: tools are those that were called, and what it says
        of days and times goes before what was said first.
        """
        last = self._last
        if last is None or not last.steps or not corrects(request):
            return None
        past = self.journal.past()
        if past and last.context.run and past[-1].run == last.context.run.id:
            self.journal.undo()  # the last turn's run, and it was the last to write
        whole = f"{last.request}\n{request}"
        turn = self._turn(whole)
        called = {step.call.name for step in last.steps}
        turn.tools = [tool for tool in last.tools if tool.name in called]
        turn.said = last.said.then(Moments.of(request, turn.context.now))
        calls = toolcall.write([step.call for step in last.steps])
        told = [{"role": "assistant", "content": calls}, {"role": "user", "content": request}]
        turn.messages = [system(turn.tools, turn.context.now), last.messages[1], *told]
        return turn

    def _rounds(self, turn: _Turn) -> Iterator[Event]:
        """Steps, what they bring, the steps that follow from that; then the answer."""
        for _ in range(ROUNDS):
            text, timing = self.writer.write(turn.messages, turn.offered())
            turn.timing += timing
            calls = [turn.pruned(call) for call in calls_in(text) if turn.takes(call)]
            if not calls:
                break
            if any(lacks_moment(turn.tool(call), turn.said) for call in calls):
                text = turn.context.say("When?", "什么时候？")
                break
            turn.wrote(text)
            yield Planned(len(turn.steps), tuple(calls), timing)
            steps = [turn.add(call) for call in calls]
            yield from self._carry_out(turn, steps)
            if self._waiting:
                return
            told = [json.dumps(step.outcome.told(), ensure_ascii=False) for step in steps]
            turn.messages.append({"role": "tool", "content": "\n".join(told)})
            if not turn.may_go_on(steps):
                break
        else:
            text = ""
        yield from self._answer(turn, text)

    def _carry_out(self, turn: _Turn, steps: Sequence[_Step]) -> Iterator[Event]:
        """Make the calls: those that only read at the same time, the others one by one."""
        reading = [s for s in steps if turn.tool(s.call).effect is Effect.READS]
        with ThreadPoolExecutor(max(len(reading), 1)) as pool:
            done = list(pool.map(lambda step: self._make(turn, step), reading))
        for step, did in zip(reading, done, strict=True):
            yield did
            yield from self._mend(turn, step)
        for step in steps:
            if step not in reading and not self._waiting:
                yield self._make(turn, step)
                yield from self._mend(turn, step)

    def _make(self, turn: _Turn, step: _Step) -> Did | Refused:
        """Check the call, ask where that is needed, make it."""
        tool, began = turn.tool(step.call), time.perf_counter()
        problem = tool.problem(step.call.arguments, turn.context)
        if problem is None and (why := self._barred(turn, tool, step.call)):
            step.refused = why
            return Refused(step.number, step.call, why)
        step.outcome = problem or tool.run(step.call.arguments, turn.context)
        return Did(step.number, step.call, step.outcome, time.perf_counter() - began)

    def _barred(self, turn: _Turn, tool: Tool, call: Call) -> str:
        """Why the call must not be made, or ""."""
        if turn.has_read and not turn.chooser.evident(tool, turn.request):
            return "the request does not speak of it"
        if self.rehearse and tool.effect is not Effect.READS:
            return "rehearsal"
        if tool.name in self.rules.never:
            return "the rules forbid it"
        if not self.rules.asks(tool) or (self.rules.allows(tool) and turn.grounded(call)):
            return ""
        return "" if self.consent(call, tool) else "not allowed"

    def _mend(self, turn: _Turn, step: _Step) -> Iterator[Event]:
        """A call that failed: choices are the user's, anything else is shown to the model once."""
        outcome = step.outcome
        if outcome.ok or step.refused:
            return
        if outcome.choices and outcome.argument:
            yield self._question(turn, step, turn.context.say("Which one: ", "是哪一个："))
            return
        if not step.mended:
            step.mended = True
            before = step.call
            after, timing = self._rewritten(turn, step)
            turn.timing += timing
            if after is not None and (after := turn.pruned(after)) != before:
                step.call = after
                yield Revised(step.number, before, after, timing)
                yield self._make(turn, step)
                yield from self._mend(turn, step)

    def _rewritten(self, turn: _Turn, step: _Step) -> tuple[Call | None, Timing]:
        """The step's call as the model writes it, knowing why it failed; same tool, or none."""
        told = json.dumps(step.outcome.told(), ensure_ascii=False)
        messages = [
            *turn.first,
            {"role": "assistant", "content": toolcall.write([step.call])},
            {"role": "tool", "content": told},
        ]
        text, timing = self.writer.write(messages, [turn.tool(step.call)])
        calls = [call for call in calls_in(text) if call.name == step.call.name]
        return (calls[0] if calls else None), timing

    def _question(self, turn: _Turn, step: _Step, opening: str) -> Said:
        choices = step.outcome.choices
        text = opening + turn.context.say(", ", "、").join(choices) + turn.context.say("?", "？")

        def go_on(reply: str) -> Iterator[Event]:
            picked = _picked(reply, choices)
            argument = step.outcome.argument
            step.call = replace(step.call, arguments={**step.call.arguments, argument: picked})
            turn.hear(reply)
            yield self._make(turn, step)
            yield from self._mend(turn, step)
            later = [s for s in turn.steps if s.number > step.number and not s.tried]
            yield from self._carry_out(turn, later)
            if not self._waiting:
                yield from self._answer(turn, "")

        self._waiting = _Waiting(turn, go_on)
        return Said(text, question=True, timing=turn.timing)

    def _answer(self, turn: _Turn, prose: str) -> Iterator[Event]:
        """What was done, else what the model says; a question of its waits for a reply."""
        self._last = turn
        told = [step.told(turn.context) for step in turn.steps]
        if told:
            yield Said(" ".join(told), timing=turn.timing)
            return
        asks = prose.rstrip().endswith(("?", "？"))
        if asks:
            turn.messages.append({"role": "assistant", "content": prose})

            def go_on(reply: str) -> Iterator[Event]:
                turn.messages.append({"role": "user", "content": reply})
                turn.hear(reply)
                yield from self._rounds(turn)

            self._waiting = _Waiting(turn, go_on)
        yield Said(prose, question=asks, timing=turn.timing)


@dataclass
class _Step:
    """One call of a turn, as it stands, and what came of it."""

    number: int
    call: Call
    outcome: Outcome = field(default_factory=Outcome)
    refused: str = ""
    mended: bool = False

    @property
    def tried(self) -> bool:
        return bool(self.outcome.said or self.outcome.error or self.refused)

    def told(self, context: Context) -> str:
        if self.refused:
            shown = toolcall.write([self.call])
            return context.say(
                f"Not done ({self.refused}): {shown}", f"没有做（{self.refused}）：{shown}"
            )
        if not self.outcome.ok:
            error = self.outcome.error
            return context.say(f"That did not work: {error}.", f"没有成功：{error}。")
        return self.outcome.said or context.say("Done.", "好了。")


@dataclass
class _Turn:
    """One request on its way: its tools, its messages, its steps. said: when, in its words."""

    request: str
    chooser: Chooser
    tools: list[Tool]
    context: Context
    messages: list[Message]
    said: Moments
    steps: list[_Step] = field(default_factory=list)
    timing: Timing = field(default_factory=Timing)

    @property
    def first(self) -> list[Message]:
        """What stood before any call."""
        return self.messages[:2]

    def offered(self) -> list[Tool]:
        """The tools that may be called next, their dates held to those that were said.

        What was read is not read again; a thing's number is known after something was read.
        """
        called = {step.call.name for step in self.steps}
        known = bool(self.steps) or re.search(r"\d", self.request) is not None
        return [
            replace(tool, parameters=narrowed(tool.parameters, self.said))
            for tool in self.tools
            if (known or not needs_number(tool))
            and not (tool.effect is Effect.READS and tool.name in called)
        ]

    def pruned(self, call: Call) -> Call:
        told = "\n".join(m["content"] for m in self.messages if m["role"] != "system")
        return pruned(self.tool(call), call, told)

    def hear(self, reply: str) -> None:
        """The user says more."""
        self.request += f"\n{reply}"
        self.said = self.said.then(Moments.of(reply, self.context.now))

    def takes(self, call: Call) -> bool:
        """Whether it is a new call of a tool that the request may be about."""
        known = call.name in {tool.name for tool in self.tools}
        return known and call not in [step.call for step in self.steps]

    @property
    def has_read(self) -> bool:
        """Whether the model has seen anything but the user's words."""
        return any(message["role"] == "tool" for message in self.messages)

    def tool(self, call: Call) -> Tool:
        return next(tool for tool in self.tools if tool.name == call.name)

    def wrote(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": text})

    def add(self, call: Call) -> _Step:
        self.steps.append(_Step(len(self.steps), call))
        return self.steps[-1]

    def may_go_on(self, steps: Sequence[_Step]) -> bool:
        """Only what was read can ask for another step; what was written is done."""
        read = [self.tool(s.call).effect is Effect.READS and s.outcome.ok for s in steps]
        return any(read)

    def grounded(self, call: Call) -> bool:
        """Whether every text of the call is in the user's own words."""
        said = _plain(self.request)
        return all(_plain(text) in said for text in _texts(call.arguments))


@dataclass
class _Waiting:
    """A question that was asked: what it was about, and how a reply goes on."""

    turn: _Turn
    go_on: Callable[[str], Iterator[Event]]


def _picked(reply: str, choices: Sequence[str]) -> str:
    """The choice that a reply names best, by its words or its place; else the reply itself."""
    said = set(names.words(reply))
    shared = [len(said & set(names.words(choice))) for choice in choices]
    if shared.count(max(shared)) == 1:
        return choices[shared.index(max(shared))]
    place = next((at for word, at in _PLACES.items() if word in said or word in reply), None)
    if place is not None and place < len(choices):
        return choices[place]
    return reply


_PLACES = {"1": 0, "first": 0, "2": 1, "second": 1, "3": 2, "third": 2, "last": -1}
_PLACES |= {"第一": 0, "第二": 1, "第三": 2, "最后": -1}


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w@]+", " ", text.casefold()).split())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
