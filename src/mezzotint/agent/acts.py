"""Making one step: check, ask, call; and mending it when it fails.

What the user must say is asked; what a name of the user's means, nobody else decides; anything
else is shown to the model once. A change to a step goes to the lines of its plan that depend on
it, and to no other. This file knows one turn's plan; what comes before and after it is the
loop's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mezzotint import toolcall
from mezzotint.agent import guard, reply, revise
from mezzotint.agent.events import Asked, Did, Event, Refused, Revised, Said, Timing
from mezzotint.agent.fill import held
from mezzotint.agent.ground import MOMENTS, content_of, narrowed
from mezzotint.agent.rules import Rules
from mezzotint.agent.tool import Context, Effect, Outcome, Preview, Tool
from mezzotint.agent.turn import Message, Step, Turn
from mezzotint.agent.writer import Line, calls_in
from mezzotint.toolcall import Call

Consent = Callable[[Call, Tool], bool]


class Writes(Protocol):
    """What the agent needs of a `Writer`."""

    def write(
        self, messages: Sequence[Message], tools: Sequence[Tool], lines: Sequence[Line] = ()
    ) -> tuple[str, Timing]: ...


@dataclass(frozen=True)
class Acts:
    """How steps are made: see `loop.Agent` for the fields."""

    writer: Writes
    consent: Consent
    rules: Rules
    rehearse: bool

    def make(self, turn: Turn, step: Step) -> Iterator[Event]:
        """Check the call, ask where that is needed, make it."""
        tool, began = turn.tool(step.call), time.perf_counter()
        found = self._checked(turn, step, tool)
        if not isinstance(found, Outcome):
            step.refused = self._barred(turn, step, tool, found)
            if not step.refused and self._asks(turn, step, tool):
                strange = guard.strange(step.call, turn.request)
                yield Asked(step.number, step.call, found, strange, step.unknown)
                step.refused = "" if self.consent(step.call, tool) else "not allowed"
            if step.refused:
                yield Refused(step.number, step.call, step.refused)
                return
            made, found = found, tool.run(step.call.arguments, turn.context)
            if made and found.ok and tool.effect is Effect.IRREVERSIBLE:
                turn.sent.append(made)
        step.outcome, step.made, step.unknown = found, True, False
        yield Did(step.number, step.call, found, time.perf_counter() - began)

    def _checked(self, turn: Turn, step: Step, tool: Tool) -> Outcome | Preview | None:
        """Why the call cannot be made, or lacks what the user did not say; else its preview."""
        if name := turn.lacking(step):
            return self._lacks(turn, step, name)
        if tool.effect is not Effect.READS and (question := turn.several(step)):
            return question
        found = tool.checked(step.call.arguments, turn.context)
        if isinstance(found, Outcome) or tool.effect is not Effect.IRREVERSIBLE:
            return found
        name = guard.stranger(step.call, found, turn.request, turn.found(step))
        return self._lacks(turn, step, name) if name else found

    def _lacks(self, turn: Turn, step: Step, argument: str) -> Outcome:
        step.lacks = True
        return guard.unknown(turn.tool(step.call), argument, turn.context)

    def _barred(self, turn: Turn, step: Step, tool: Tool, preview: Preview | None) -> str:
        """Why the call must not be made, or ""."""
        if turn.has_read and step.want is None and not turn.chooser.certain(tool, turn.request):
            return "the request does not speak of it"
        if self.rehearse and tool.effect is not Effect.READS:
            return "rehearsal"
        if tool.name in self.rules.never:
            return "the rules forbid it"
        if guard.again(tool, preview, turn.sent, turn.acts(step)):
            return "it went to them already"
        return ""

    def _asks(self, turn: Turn, step: Step, tool: Tool) -> bool:
        """Whether the user must allow it: not what the rules allow in the user's own words."""
        own = not guard.strange(step.call, turn.request)
        asks = self.rules.asks(tool) and not (self.rules.allows(tool) and own)
        return asks or (step.unknown and tool.effect is not Effect.READS)

    def mend(self, turn: Turn, step: Step) -> Iterator[Event]:
        """A call that failed: what the user must say is asked, anything else is shown to the
        model once. What a name of the user's means, nobody else decides."""
        outcome, tool = step.outcome, turn.tool(step.call)
        if outcome.ok or step.refused or turn.asked:
            return
        properties = tool.parameters["properties"]
        argument = outcome.argument if outcome.argument in properties else ""
        labels = outcome.labels or outcome.choices
        if outcome.choices and argument:
            at = reply.singled_out(turn.request, labels)
            if at is not None and not step.mended:
                step.mended = True
                yield from self._set(turn, step, argument, outcome.choices[at])
            else:
                yield self._question(turn, step, _which(turn.context, labels))
        elif step.lacks or (argument and argument not in step.call.arguments):
            yield self._question(turn, step, guard.unknown(tool, argument, turn.context).error)
        elif properties.get(argument, {}).get("format") in MOMENTS:
            yield self._question(turn, step, _when(turn.context, outcome.error))
        elif argument and not step.mended and self._spare(tool, argument):
            step.mended = True
            yield from self._set(turn, step, argument, None)
        elif step.mended or (argument and argument not in guard.strange(step.call, turn.request)):
            if argument:
                likely = _spoken_of(turn.request, outcome) or outcome.closest
                choices = (likely,) if likely else ()
                step.outcome = replace(outcome, closest=likely, choices=choices)
                yield self._question(turn, step, _meant(turn.context, step.outcome))
        elif name := _spoken_of(turn.request, outcome):
            step.mended = True
            yield from self._set(turn, step, argument, name)
        elif len(fitting := reply.spoken_of(turn.request, outcome.known)) > 1:
            step.outcome = replace(outcome, choices=tuple(fitting), labels=())
            yield self._question(turn, step, _which(turn.context, fitting))
        else:
            step.mended, before = True, step.call
            yield from self._rewrite(turn, revise.dependents(turn.batch, step, argument))
            if step.call == before:
                yield from self.mend(turn, step)

    def _spare(self, tool: Tool, argument: str) -> bool:
        """Whether a value that names nothing may just be left out."""
        optional = argument not in tool.parameters.get("required", ())
        return optional and tool.effect is not Effect.IRREVERSIBLE

    def _rewrite(self, turn: Turn, masked: list[Step]) -> Iterator[Event]:
        """Mask these lines of the plan and have them written again, each by the same tool."""
        told = json.dumps(masked[0].outcome.told(), ensure_ascii=False)
        messages = [
            *turn.first,
            {"role": "assistant", "content": toolcall.write([step.call for step in masked])},
            {"role": "tool", "content": told},
        ]
        tools = [turn.tool(step.call) for step in masked]
        yield from self.remake(turn, self.rewritten(turn, masked, messages, tools))

    def rewritten(
        self, turn: Turn, masked: list[Step], messages: list[Message], tools: Sequence[Tool]
    ) -> Revised:
        """The plan of the turn's batch with these lines written again; all others are given."""
        before = [step.call for step in turn.batch]
        canvas = revise.lines(turn.batch, masked, [[tool] for tool in tools])
        text, timing = self.writer.write(messages, tools, canvas)
        turn.timing += timing
        calls = [call for call in calls_in(text) if call not in before]
        for step in masked:
            same = (call for call in calls if call.name == step.call.name)
            if (call := next(same, None)) is not None:
                calls.remove(call)
                step.call = turn.pruned(call)
        return Revised(revise.spans(turn.batch, before, masked), timing)

    def remake(self, turn: Turn, revised: Revised) -> Iterator[Event]:
        """Make the steps whose lines have changed, if they were made in vain."""
        changed = [turn.steps[s.step] for s in revised.rewritten if s.before != s.after]
        if not changed:
            return
        yield revised
        for step in changed:
            if step.made and not step.outcome.ok:
                step.made = step.lacks = False
                yield from self.make(turn, step)
                yield from self.mend(turn, step)

    def _set(self, turn: Turn, step: Step, argument: str, value: Any) -> Iterator[Event]:
        """Put a value where it was wrong, there and in the lines that depend on it; None takes
        the argument out."""
        before, old = [s.call for s in turn.batch], step.call.arguments.get(argument)
        alone = value is None or step.lacks
        masked = [step] if alone else revise.dependents(turn.batch, step, argument)
        for one in masked:
            if value is None:
                kept = {n: v for n, v in one.call.arguments.items() if n != argument}
                one.call = replace(one.call, arguments=kept)
            else:
                kind = turn.tool(one.call).parameters["properties"].get(argument, {}).get("type")
                new = int(value) if kind == "integer" and str(value).isdigit() else value
                one.call = revise.substituted(one.call, None if alone else old, argument, new)
        yield from self.remake(turn, Revised(revise.spans(turn.batch, before, masked), Timing()))

    def heard(self, turn: Turn, step: Step, said: str) -> Iterator[Event]:
        """What the user says of a step that could not be made."""
        outcome, tool = step.outcome, turn.tool(step.call)
        argument = outcome.argument
        schema = tool.parameters["properties"].get(argument, {})
        at = reply.picked(said, outcome.labels or outcome.choices) if outcome.choices else None
        if at is not None:
            step.settled = True
            yield from self._set(turn, step, argument, outcome.choices[at])
            return
        if reply.refuses(said):
            step.refused, step.made = "not wanted", False
            yield Refused(step.number, step.call, step.refused)
            return
        text = argument == content_of(tool)
        some = reply.values(argument, schema, text, said, turn.context)
        if not some:
            argument, some = reply.instead(tool, step.call, said) or (argument, [])
        if len(some) == 1:
            yield from self._set(turn, step, argument, some[0])
            return
        given = {n: [v] for n, v in step.call.arguments.items() if n != argument}
        again = held(replace(tool, parameters=narrowed(tool.parameters, turn.said)), given)
        if some:
            again = held(again, {argument: some})
        told = [{"role": "assistant", "content": outcome.error}, {"role": "user", "content": said}]
        messages = [*turn.first, *told]
        yield from self.remake(turn, self.rewritten(turn, [step], messages, [again]))

    def _question(self, turn: Turn, step: Step, text: str) -> Said:
        turn.asked = step
        return Said(text, question=True, timing=turn.timing)


def _spoken_of(request: str, outcome: Outcome) -> str:
    """The one thing that there is of which the user's own words speak."""
    at = reply.singled_out(request, outcome.known) if outcome.known else None
    return "" if at is None else outcome.known[at]


def _which(context: Context, labels: Sequence[str]) -> str:
    listed = context.say(", ", "、").join(labels)
    return context.say(f"Which one: {listed}?", f"是哪一个：{listed}？")


def _when(context: Context, error: str) -> str:
    asked = guard.moment_question(context)
    return context.say(f"{error[:1].upper()}{error[1:]}. {asked}", f"{error}。{asked}")


def _meant(context: Context, outcome: Outcome) -> str:
    """What went wrong, and what the user could mean."""
    error = f"{outcome.error[:1].upper()}{outcome.error[1:]}"
    if not outcome.closest:
        return context.say(f"{error}. Which one do you mean?", f"{error}。您指的是哪一个？")
    return context.say(
        f"{error}. Did you mean {outcome.closest}?", f"{error}。您是说“{outcome.closest}”吗？"
    )
