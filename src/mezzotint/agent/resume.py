"""A run that was cut off: what it had done, and what was open.

The transcript says what was planned and told, the journal what was done. Where they differ, the
journal is right: a step that it holds as done is done, even if nobody was told; one that it took
back is not. Only an act outside the workspace that was announced, and whose end nobody noted, is
unknown: a mail that may have been sent. This file reads both; going on is the agent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mezzotint.agent.events import Said
from mezzotint.agent.journal import Done, Journal
from mezzotint.agent.tool import Outcome
from mezzotint.agent.transcript import Transcript
from mezzotint.toolcall import Call


@dataclass
class Left:
    """A step as it was left. outcome: None if it is open. unknown: nobody knows if it is done."""

    call: Call
    outcome: Outcome | None = None
    refused: str = ""
    unknown: bool = False


@dataclass(frozen=True)
class Unfinished:
    """id: of the transcript's request. batches: steps that were planned together."""

    id: int
    request: str
    run: str
    batches: list[list[Left]] = field(default_factory=list)

    @property
    def done(self) -> list[str]:
        """What was done, in sentences."""
        ended = [one for one in self._steps if one.outcome is not None and one.outcome.ok]
        return [one.outcome.said or str(one.call.name) for one in ended if one.outcome]

    @property
    def open(self) -> list[Call]:
        return [one.call for one in self._steps if one.outcome is None and not one.refused]

    @property
    def unknown(self) -> list[Call]:
        return [one.call for one in self._steps if one.unknown]

    def dropped(self) -> Said:
        """What ends it, if the user does not want the rest."""
        return Said(f"Left as it is: {' '.join(self.done)}".rstrip(": "))

    @property
    def _steps(self) -> list[Left]:
        return [one for batch in self.batches for one in batch]


def unfinished(transcript: Transcript, journal: Journal) -> Unfinished | None:
    """The last request, if its run was cut off and no process is at it now."""
    rows = transcript.last_exchange()
    if not rows or transcript.busy(rows[-1].id):
        return None
    events = [event for row in rows for event in row.events]
    run = next((content.get("run", "") for kind, content in events if kind == "chosen"), "")
    if not run or (rows[-1].events and rows[-1].events[-1][0] == "said"):
        return None
    journal.recover()
    left = Unfinished(rows[-1].id, "\n".join(row.text for row in rows), run, _batches(events))
    past = next((past.calls for past in journal.past() if past.run == run), ())
    _settle([one for batch in left.batches for one in batch], past)
    return left


def _batches(events: Iterable[tuple[str, Mapping[str, Any]]]) -> list[list[Left]]:
    """The steps as the transcript tells them."""
    batches: list[list[Left]] = []
    for kind, content in events:
        steps = [one for batch in batches for one in batch]
        match kind:
            case "planned":
                batches.append([Left(_call(call)) for call in content["calls"]])
            case "revised":
                for span in content["spans"]:
                    if span["masked"]:
                        steps[span["step"]].call = _call(span["after"])
                        steps[span["step"]].outcome = None
            case "did":
                steps[content["step"]].outcome = _outcome(content["outcome"])
                steps[content["step"]].refused = ""
            case "refused":
                steps[content["step"]].refused = content["why"]
    return batches


def _settle(steps: Iterable[Left], past: Iterable[Done]) -> None:
    """What the journal knows better. Each of its calls speaks for one step."""
    calls = list(past)
    for one in steps:
        mine = [
            c
            for c in calls
            if (c.tool, dict(c.arguments)) == (one.call.name, dict(one.call.arguments))
        ]
        ended = next((c for c in mine if c.state == "done"), None)
        if ended is not None:
            calls.remove(ended)
            one.outcome = one.outcome or Outcome(said=ended.said)
        elif one.outcome is None and any(c.state == "rolled back" and c.outside for c in mine):
            one.unknown = True


def _call(content: Mapping[str, Any]) -> Call:
    return Call(content["name"], content["arguments"])


def _outcome(content: Mapping[str, Any]) -> Outcome:
    lists = {key: tuple(content.get(key, ())) for key in ("choices", "labels")}
    return Outcome(**{**content, **lists})
