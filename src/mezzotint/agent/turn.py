"""One request on its way: what it wants, what the model has seen of it, and its steps.

What may be called next is decided here, from the request's words and from what was read: an
order that certain tools can do is a line of its own in the next plan, held to what the words
say; where the words decide nothing, the model chooses among the tools it is shown. This file
makes no call and asks nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mezzotint import toolcall
from mezzotint.agent import guard
from mezzotint.agent.choose import SHOWN, Chooser
from mezzotint.agent.events import Timing
from mezzotint.agent.fill import filled, grounded
from mezzotint.agent.found import Found
from mezzotint.agent.ground import (
    Moments,
    asks,
    content_of,
    needs_number,
    recopied,
)
from mezzotint.agent.handed import content
from mezzotint.agent.reply import singled_out
from mezzotint.agent.tool import Context, Effect, Outcome, Preview, Tool
from mezzotint.agent.unsaid import pruned
from mezzotint.agent.wants import Want, looked_up, wants
from mezzotint.agent.writer import system
from mezzotint.toolcall import Call

Message = dict[str, str]


@dataclass(eq=False)
class Step:
    """One call of a turn, as it stands, and what came of it. lacks: it needs what the user did not
    say. settled: the user said which thing it is for. unknown: a run that was cut off
    may have made it."""

    number: int
    call: Call
    outcome: Outcome = field(default_factory=Outcome)
    made: bool = False
    refused: str = ""
    mended: bool = False
    lacks: bool = False
    settled: bool = False
    unknown: bool = False
    want: Want | None = None

    @property
    def tried(self) -> bool:
        return self.made or bool(self.refused)

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


def _plain(message: Message) -> str:
    """The words of a message; of what a tool told its texts, as they were before JSON."""
    if message["role"] != "tool":
        return message["content"]
    told = (json.loads(line) for line in message["content"].splitlines())
    return "\n".join(text for one in told for text in toolcall.texts_in(one))


@dataclass
class Turn:
    """tools: that the model is shown. said: when, in the request's words. wants: its orders;
    whole: nothing else is in it. batch: the steps that were written last, together. sent: what
    went out and cannot be undone. asked: the step that the user was asked about."""

    request: str
    chooser: Chooser
    tools: list[Tool]
    context: Context
    messages: list[Message]
    said: Moments
    wants: list[Want] = field(default_factory=list)
    whole: bool = False
    steps: list[Step] = field(default_factory=list)
    batch: list[Step] = field(default_factory=list)
    sent: list[Preview] = field(default_factory=list)
    asked: Step | None = None
    timing: Timing = field(default_factory=Timing)
    rounds: int = 0

    @classmethod
    def of(cls, request: str, chooser: Chooser, context: Context) -> Turn:
        """A question is shown what reads; an order, what its parts speak of; if each of its parts
        is an order for certain tools, those alone."""
        question = asks(request)
        if question:
            found = looked_up(request, chooser)
            whole = bool(found)
        else:
            found, whole = wants(request, chooser)
        likely = chooser.choose(request, among=(Effect.READS,)) if question else []
        if question and not likely:  # ways to look at what it speaks of at all
            likely = chooser.siblings(chooser.choose(request))[:SHOWN]
        likely = likely or chooser.choose(request)
        needed = {tool.name: tool for want in found for tool in (*want.feeds, *want.tools)}
        shown = list(needed.values())
        if not whole:  # else nothing is left to choose: what is not shown need not be read
            room = SHOWN - sum(tool not in likely for tool in shown)
            spare = [t for t in likely if t.name not in needed][: max(room - len(needed), 0)]
            beside = [t for t in likely if t.name in needed or t in spare]
            shown = beside + [tool for tool in shown if tool not in beside]
        messages = [system(shown, context.now), {"role": "user", "content": request}]
        said = Moments.of(request, context.now)
        return cls(request, chooser, shown, context, messages, said, found, whole)

    @property
    def first(self) -> list[Message]:
        """What stood before any call."""
        return self.messages[:2]

    @property
    def has_read(self) -> bool:
        """Whether the model has seen anything but the user's words."""
        return any(message["role"] == "tool" for message in self.messages)

    @property
    def more(self) -> bool:
        """Whether another plan is needed: an order waits, or what was read may lead to one."""
        if any(want.next for want in self.wants):
            return True
        read = [self.tool(s.call).effect is Effect.READS and s.outcome.ok for s in self.batch]
        if not any(read) or self.whole or asks(self.request):
            return False
        called = {step.call.name for step in self.steps}
        others = (tool for tool in self.tools if tool.name not in called)
        return any(self.chooser.certain(tool, self.request) for tool in others)

    def lines(self) -> list[list[Tool]]:
        """A line for each order that is ready, with the tools that it may call; none, if the
        request first leaves the model a choice."""
        if not (self.whole or self.steps):
            return []
        ready = [want for want in self.wants if want.next]
        return [[self.filled(tool, want) for tool in want.next] for want in ready]

    def filled(self, tool: Tool, want: Want) -> Tool:
        return filled(tool, want.clause, self.moments(want), want.found, self.context, self.request)

    def moments(self, want: Want) -> Moments:
        """The moments that an order is held to: its own; else those of the whole request. A
        time of day alone may be of the day that another order speaks of, or be the next."""
        own = Moments.of(want.clause.text, self.context.now)
        if own.clocks and not own.days and self.said.days:
            return Moments(self.said.days, own.clocks, loose=len(self.wants) > 1)
        return own or self.said

    def offered(self) -> list[Tool]:
        """The tools that may be called next, their dates held to those that were said.

        What was read is not read again; a thing's number is known after something was read.
        """
        called = {step.call.name for step in self.steps}
        known = bool(self.steps) or re.search(r"\d", self.request) is not None
        return [
            grounded(tool, self.request, self.said, self.context)
            for tool in self.tools
            if (known or not needs_number(tool))
            and not (tool.effect is Effect.READS and tool.name in called)
        ]

    def tool(self, call: Call) -> Tool:
        return next(tool for tool in self.tools if tool.name == call.name)

    def takes(self, call: Call) -> bool:
        """Whether it is a new call of a tool that the request may be about."""
        known = call.name in {tool.name for tool in self.tools}
        return known and call not in [step.call for step in self.steps]

    def plan(self, text: str, calls: Sequence[Call]) -> list[Step]:
        """Note the next steps, as they were written, each with the order that it is for."""
        self.messages.append({"role": "assistant", "content": text})
        self.batch = [self._step(call) for call in calls]
        return self.batch

    def _step(self, call: Call) -> Step:
        step = Step(len(self.steps), call)
        step.want = next((want for want in self.wants if want.takes(call.name, step)), None)
        step.call = self.pruned(call, step.want)
        self.steps.append(step)
        return step

    def pruned(self, call: Call, want: Want | None = None) -> Call:
        """The call without what the model made up: it knows the order's words, and what was
        read."""
        users = [want.clause.text] if want else []
        roles = ("tool",) if want else ("user", "assistant", "tool")
        told = [*users, *(m["content"] for m in self.messages if m["role"] in roles)]
        tool = self.tool(call)
        every = [_plain(m) for m in self.messages if m["role"] in ("user", "tool")]
        every += [want.found.words()] if want else []
        return pruned(tool, recopied(tool, call, "\n".join(every)), "\n".join(told))

    def read(self) -> None:
        """Show the model what came of the last steps."""
        told = [json.dumps(step.outcome.told(), ensure_ascii=False) for step in self.batch]
        self.messages.append({"role": "tool", "content": "\n".join(told)})

    def hear(self, reply: str) -> None:
        """The user says more."""
        self.request += f"\n{reply}"
        self.said = self.said.then(Moments.of(reply, self.context.now))

    def found(self, step: Step) -> Found:
        """What the calls brought that a step may speak of."""
        return step.want.found if step.want and step.want.fed is not step else Found()

    def lacking(self, step: Step) -> str:
        """An argument of a step that nobody said."""
        tool = self.tool(step.call)
        text, want = content_of(tool), step.want
        if tool.effect is Effect.IRREVERSIBLE and text in step.call.arguments and want:
            handed = want.clause.back and not content(want.clause.text)
            if handed and step.call.arguments[text] != want.found.words():
                return text  # several things were found, or none that has words
        return guard.lacking(tool, step.call, self.request, self.said, self.found(step))

    def several(self, step: Step) -> Outcome | None:
        """A question, if several things were found and neither the request nor the user says
        which of them the step is for; if the request does, the step is for that."""
        labels = self.found(step).labels()
        name = next((n for n in ("id", "message") if n in step.call.arguments), "")
        if step.settled or len(labels) < 2 or step.call.arguments.get(name) not in labels:
            return None
        at = singled_out(self.request, [*labels.values()])
        if at is None:
            which = self.context.say("which one", "是哪一个")
            return Outcome(
                error=which, choices=tuple(map(str, labels)), labels=tuple(labels.values()),
                argument=name,
            )  # fmt: skip
        step.call = replace(step.call, arguments={**step.call.arguments, name: [*labels][at]})
        return None

    def acts(self, step: Step) -> int:
        """How many acts of a step's kind the request orders."""
        return max(1, sum(step.call.name in {t.name for t in w.tools} for w in self.wants))
