"""One list of tools in one small life, and the messages and samples that begin with it.

The one place that knows how agent/loop.py lays out a turn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from mezzotint import toolcall
from mezzotint.adapt.data.episodes import FAILED
from mezzotint.adapt.data.requests import Sample
from mezzotint.adapt.data.worlds import World
from mezzotint.agent.ground import Moments
from mezzotint.agent.tool import Outcome, Tool
from mezzotint.agent.writer import schema, system
from mezzotint.toolcall import Call

Message = dict[str, str]
SHORT = {"en": 100, "zh": 50}  # characters of a result that is told in an answer


class Menu:
    """The tools that a request is shown, in a world."""

    def __init__(self, world: World, tools: Sequence[Tool]) -> None:
        self.world, self.tools, self.scene = world, tools, world.scene
        self.names = [tool.name for tool in tools]

    def sample(self, kind: str, messages: Sequence[Message], target: str) -> Sample:
        """A turn after these messages, the system's before them."""
        whole = [system(self.tools, self.world.context.now), *messages]
        shown = [schema(tool) for tool in self.tools]
        return Sample(kind, self.scene.language, whole, shown, target)

    def heard(self, *texts: str) -> Moments:
        """What the agent hears of days and times; what is said later goes before."""
        moments = Moments()
        for text in texts:
            moments = moments.then(Moments.of(text, self.world.context.now))
        return moments


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def told(*outcomes: Outcome) -> Message:
    lines = [json.dumps(outcome.told(), ensure_ascii=False) for outcome in outcomes]
    return {"role": "tool", "content": "\n".join(lines)}


def answered(
    menu: Menu, kind: str, text: str, calls: Sequence[Call], outcome: Outcome
) -> list[Sample]:
    """The answer after a result, if it is short."""
    language = menu.scene.language
    answer = outcome.said if outcome.ok else FAILED[language].format(outcome.error)
    if not answer or len(answer) > SHORT[language] or "\n" in answer:
        return []
    turns = [user(text), assistant(toolcall.write(calls)), told(outcome)]
    return [menu.sample(kind, turns, answer)]
