"""The agent: plan, call, verify, answer.

The user's request alone decides which tools can be called. The model sees those few tools and
writes the steps; each is checked before it is made and asked for where it cannot be undone.
What a call brings is data: it can fill a value of a later call, and can neither bring in a
tool that the request does not speak of, nor let an act that cannot be undone go unasked if
its values are not the user's. A step that fails is shown to the model once, with why; only that
step, and those that hold what was wrong with it, are written anew. Then the user is asked.
Answers are composed from what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

from mezzotint import toolcall
from mezzotint.agent import revise, when
from mezzotint.agent.acts import Acts, Consent, Writes
from mezzotint.agent.choose import Chooser
from mezzotint.agent.events import Chosen, Event, Planned, Resumed, Said
from mezzotint.agent.ground import Moments, corrects, hours, narrowed
from mezzotint.agent.journal import Journal
from mezzotint.agent.resume import Unfinished
from mezzotint.agent.rules import Rules
from mezzotint.agent.tool import Context, Effect, Outcome, Tool, language_of
from mezzotint.agent.turn import Step, Turn
from mezzotint.agent.writer import calls_in, system
from mezzotint.toolcall import Call

ROUNDS = 4  # of steps that depend on the ones before


def never(call: Call, tool: Tool) -> bool:
    return False


@dataclass
class Agent:
    """now: gives the time, aware. consent: asked before a call that the rules want asked; the
    event `Asked` came just before. rehearse: calls are planned and checked, none that writes is
    made."""

    writer: Writes
    tools: Sequence[Tool]
    journal: Journal
    now: Callable[[], datetime] = when.local_now
    consent: Consent = never
    rules: Rules = field(default_factory=Rules)
    rehearse: bool = False
    _waiting: Turn | None = None
    _last: Turn | None = None
    _chooser: Chooser = field(init=False)
    _acts: Acts = field(init=False)

    def __post_init__(self) -> None:
        self._chooser = Chooser.of(self.tools)
        self._acts = Acts(self.writer, self.consent, self.rules, self.rehearse)

    def ask(self, request: str) -> Iterator[Event]:
        """Do what is asked, answer the question that the last `ask` ended with, or change what
        it did, if the request corrects that."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            yield from self._reply(waiting, request)
            return
        if self._last and (about := self._corrected(self._last, request)):
            yield from self._correct(self._last, request, about)
            return
        turn = self._turn(request)
        yield self._chosen(turn)
        yield from self._write(turn)

    def resume(self, left: Unfinished) -> Iterator[Event]:
        """Go on with a run that was cut off: what was done is not done again, and what may have
        been done without a trace is asked for."""
        turn = self._turn(left.request, left.run)
        for batch in left.batches:
            steps = turn.plan(
                toolcall.write([one.call for one in batch]), [one.call for one in batch]
            )
            for step, one in zip(steps, batch, strict=True):
                step.call, step.outcome = one.call, one.outcome or Outcome()
                step.made, step.refused, step.unknown = (
                    one.outcome is not None,
                    one.refused,
                    one.unknown,
                )
            turn.rounds += 1
            if batch is not left.batches[-1]:
                turn.read()
        done = tuple(step.number for step in turn.steps if step.made and step.outcome.ok)
        unknown = tuple(step.number for step in turn.steps if step.unknown)
        yield Resumed(left.run, done, unknown)
        yield from self._go_on(turn) if turn.steps else self._write(turn)

    def _reply(self, turn: Turn, said: str) -> Iterator[Event]:
        """Go on with what a question was about."""
        step, turn.asked = turn.asked, None
        turn.hear(said)
        if step is None:  # the model asked
            turn.messages.append({"role": "user", "content": said})
            yield from self._write(turn)
            return
        yield from self._acts.heard(turn, step, said)
        yield from self._go_on(turn)

    def _turn(self, request: str, run: str = "") -> Turn:
        context = Context(self.now(), language_of(request))
        if not self.rehearse:
            context = replace(context, run=self.journal.run(request, run))
        return Turn.of(request, self._chooser, context)

    def _chosen(self, turn: Turn) -> Chosen:
        run = turn.context.run.id if turn.context.run else ""
        return Chosen(tuple(tool.name for tool in turn.tools), run)

    def _write(self, turn: Turn) -> Iterator[Event]:
        """The next steps, as the model writes them; or its words, if it writes none."""
        turn.rounds += 1
        text = ""
        if turn.rounds <= ROUNDS:
            text, timing = self.writer.write(turn.messages, turn.offered(), turn.lines())
            turn.timing += timing
        calls = [call for call in calls_in(text) if turn.takes(call)]
        if not calls:
            yield from self._answer(turn, text)
            return
        steps = turn.plan(text, calls)
        yield Planned(steps[0].number, tuple(step.call for step in steps), timing)
        yield from self._go_on(turn)

    def _go_on(self, turn: Turn) -> Iterator[Event]:
        """Make the steps that are not made; then plan those that follow from them, or answer."""
        yield from self._carry_out(turn, [step for step in turn.batch if not step.tried])
        if turn.asked:
            self._waiting = turn
            return
        turn.read()
        yield from self._write(turn) if turn.more else self._answer(turn, "")

    def _carry_out(self, turn: Turn, steps: Sequence[Step]) -> Iterator[Event]:
        """Make the calls: those that only read at the same time, the others one by one."""
        tools = [turn.tool(step.call) for step in steps]
        reading = [
            step
            for step, tool in zip(steps, tools, strict=True)
            if tool.effect is Effect.READS and not self.rules.asks(tool)
        ]
        with ThreadPoolExecutor(max(len(reading), 1)) as pool:
            done = list(pool.map(lambda step: list(self._acts.make(turn, step)), reading))
        for step, events in zip(reading, done, strict=True):
            yield from events
            yield from self._acts.mend(turn, step)
        for step in steps:
            if step not in reading and not step.tried and not turn.asked:
                yield from self._acts.make(turn, step)
                yield from self._acts.mend(turn, step)

    def _corrected(self, last: Turn, request: str) -> list[Step]:
        """The steps of the last turn that a request corrects; none if it is one of its own."""
        if not last.steps or not corrects(request):
            return []
        new = Turn.of(request, self._chooser, last.context)
        called = {step.call.name for step in last.steps}
        if new.whole and any(not called & {t.name for t in want.tools} for want in new.wants):
            return []
        said = _moments(request, last, self.now())
        tried = (step for step in last.steps if not step.refused)
        made = [step for step in tried if self._again(last, step, request)]
        return revise.affected(made, last.tools, request, said, self._chooser) if made else []

    def _again(self, last: Turn, step: Step, request: str) -> bool:
        """Whether a step may be made again: what cannot be undone, only if it is spoken of."""
        tool = last.tool(step.call)
        return tool.effect is not Effect.IRREVERSIBLE or self._chooser.evident(tool, request)

    def _correct(self, last: Turn, request: str, about: list[Step]) -> Iterator[Event]:
        """Take back the steps that a correction is about, and write them again; the others stay.

        The correction is all that is new: what it says of days and times goes before what was
        said first.
        """
        run = last.context.run.id if last.context.run else ""
        turn = self._turn(f"{last.request}\n{request}", run)
        called = {step.call.name for step in last.steps}
        turn.tools = [tool for tool in last.tools if tool.name in called]
        turn.said = last.said.then(_moments(request, last, turn.context.now))
        turn.wants, turn.whole, turn.steps, turn.batch = [], True, last.steps, last.steps
        told = [
            {"role": "assistant", "content": toolcall.write([step.call for step in last.steps])},
            {"role": "user", "content": request},
        ]
        turn.messages = [system(turn.tools, turn.context.now), last.messages[1], *told]
        yield self._chosen(turn)
        tools = [turn.tool(step.call) for step in about]
        dated = [replace(t, parameters=narrowed(t.parameters, turn.said)) for t in tools]
        revised = self._acts.rewritten(turn, about, turn.messages, dated)
        if any(span.before != span.after for span in revised.rewritten):
            self._take_back(last, [span.before for span in revised.rewritten])
            for step in about:
                step.outcome, step.made = Outcome(error="taken back"), True
            yield from self._acts.remake(turn, revised)
        self._waiting = turn if turn.asked else None
        if not turn.asked:
            yield from self._answer(turn, "")

    def _take_back(self, last: Turn, calls: Sequence[Call]) -> None:
        """Undo what calls of a turn wrote, if the turn's run was the last to write."""
        past, run = self.journal.past(), last.context.run
        if run and past and past[-1].run == run.id:
            self.journal.undo_calls(run.id, [(c.name, c.arguments) for c in calls])

    def _answer(self, turn: Turn, prose: str) -> Iterator[Event]:
        """What was done, else what the model says; a question of its waits for a reply."""
        self._last = turn
        told = [step.told(turn.context) for step in turn.steps]
        if told:
            yield Said(" ".join(told), timing=turn.timing)
            return
        asks = prose.rstrip().endswith(("?", "？"))
        if asks:
            turn.messages.append({"role": "assistant", "content": prose})
            self._waiting = turn
        yield Said(prose, question=asks, timing=turn.timing)


def _moments(correction: str, last: Turn, now: datetime) -> Moments:
    """When a correction says, if it says that."""
    return Moments.of(correction, now) or hours(correction, last.said)
