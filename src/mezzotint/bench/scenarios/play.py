"""One scenario with one agent: the requests are made, its questions are answered as the
scenario says, and what happened is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from mezzotint.agent.events import Chosen, Did, Event, Refused, Said, Timing
from mezzotint.agent.loop import Agent
from mezzotint.agent.stores import Stores
from mezzotint.agent.tool import Tool
from mezzotint.agent.writer import Writer
from mezzotint.bench.scenarios.suite import NOW, Scenario
from mezzotint.toolcall import Call


@dataclass
class Played:
    """calls: what was tried, with how it ended. requests: what the model took for each, its
    questions included. shown: tools that it could choose from. consulted: acts that it asked
    consent for. error: why it broke off, if it did."""

    calls: list[tuple[Call, str]] = field(default_factory=list)
    answer: str = ""
    questions: int = 0
    consulted: int = 0
    requests: list[Timing] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    error: str = ""

    def see(self, event: Event) -> None:
        match event:
            case Chosen(tools):
                self.shown |= set(tools)
            case Did(_, call, outcome, _):
                self.calls.append((call, outcome.error and f"failed: {outcome.error}"))
            case Refused(_, call, why):
                self.calls.append((call, f"refused: {why}"))
            case Said(text, question, timing):
                self.answer = text
                self.questions += question
                self.requests[-1] = timing  # a turn's timing grows over its questions


def play(scenario: Scenario, stores: Stores, writer: Writer) -> Played:
    """All requests of a scenario, one after the other. Never raises."""
    played = Played()

    def consent(call: Call, tool: Tool) -> bool:
        played.consulted += 1
        return scenario.consent

    agent = Agent(writer, stores.tools, stores.journal, now=lambda: NOW, consent=consent)
    replies, waits = list(scenario.reply), False
    try:
        for request in scenario.say:
            if not waits:
                played.requests.append(Timing())
            waits = _ask(agent, request, played)
            while waits and replies:
                waits = _ask(agent, replies.pop(0), played)
    except Exception as e:  # what breaks one scenario must not end a suite; it is reported
        played.error = f"{type(e).__name__}: {e}"
    return played


def _ask(agent: Agent, text: str, played: Played) -> bool:
    """Whether the agent waits for a reply now."""
    waits = False
    for event in agent.ask(text):
        played.see(event)
        waits = isinstance(event, Said) and event.question
    return waits
