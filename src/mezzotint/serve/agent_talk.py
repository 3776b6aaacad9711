"""Talks with the agent: the latest few, each with its memory, all on today's demo workspace.

A talk takes one request at a time; another process, or another talk, writes between its calls.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mezzotint.agent.acts import Writes
from mezzotint.agent.demo import open_demo
from mezzotint.agent.loop import Agent
from mezzotint.agent.rules import Rules
from mezzotint.agent.stores import open_stores
from mezzotint.agent.tool import Tool
from mezzotint.agent.transcript import Transcript
from mezzotint.agent.when import local_now
from mezzotint.agent.workspace import Workspace
from mezzotint.serve.agent_turn import Turn
from mezzotint.serve.agent_writer import Tell
from mezzotint.serve.problems import Problem
from mezzotint.toolcall import Call

KEPT = 8  # talks

MakeWriter = Callable[[Tell], Writes]


@dataclass
class Talk:
    """turn: the one that runs, its thread included."""

    id: str
    place: Workspace
    agent: Agent
    turn: Turn | None = None

    def ask(self, request: str) -> Turn:
        """Begin a turn. Raises Problem while another one runs."""
        if self.turn:
            raise Problem(409, "this session is busy with its last request", code="busy")
        self.turn = turn = Turn()
        events = self.agent.ask(request)
        turn.run(Transcript(self.place).follow(request, self.agent.now(), events), self._ended)
        return turn

    def _ended(self) -> None:
        self.turn = None


@dataclass
class Talks:
    """The latest talks, all on one workspace."""

    writer: MakeWriter
    kept: OrderedDict[str, Talk] = field(default_factory=OrderedDict)

    def find(self, name: str) -> Talk:
        """Raises Problem for one that is not, or no longer, kept."""
        if name not in self.kept:
            raise Problem(404, "no such session; ask without one", code="session_not_found")
        self.kept.move_to_end(name)
        return self.kept[name]

    def begin(self) -> Talk:
        """A new talk, not kept yet; it opens files."""
        place = today()
        stores = open_stores(place)
        stores.journal.recover()
        rules = Rules.of(place.settings("agent"), {tool.name for tool in stores.tools})
        talk: Talk

        def tell(kind: str, data: dict[str, Any]) -> None:
            if talk.turn:
                talk.turn.tell(kind, data)

        def consent(call: Call, tool: Tool) -> bool:
            return talk.turn is not None and talk.turn.consent(call, tool)

        agent = Agent(self.writer(tell), stores.tools, stores.journal, consent=consent, rules=rules)
        talk = Talk(secrets.token_hex(8), place, agent)
        return talk

    def keep(self, talk: Talk) -> None:
        """Keep it, and let go of the oldest. Raises Problem if all are busy."""
        idle = [name for name, one in self.kept.items() if one.turn is None]
        if len(self.kept) >= KEPT:
            if not idle:
                after = {"Retry-After": "5"}
                what = f"{KEPT} sessions are busy"
                raise Problem(429, what, "rate_limit_error", code="busy", headers=after)
            del self.kept[idle[0]]
        self.kept[talk.id] = talk

    @property
    def busy(self) -> bool:
        return any(talk.turn for talk in self.kept.values())


def today() -> Workspace:
    """The demo workspace, made if there is none of this day."""
    return open_demo(local_now())
