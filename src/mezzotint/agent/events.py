"""What an agent tells while it works: one stream for the terminal, traces and tests."""

from __future__ import annotations

from dataclasses import dataclass

from mezzotint.agent.tool import Outcome
from mezzotint.toolcall import Call


@dataclass(frozen=True, slots=True)
class Timing:
    """What a stretch of writing took. seconds: of the model, prefill included."""

    seconds: float = 0.0
    passes: int = 0
    tokens: int = 0
    forced: int = 0

    def __add__(self, other: Timing) -> Timing:
        return Timing(
            self.seconds + other.seconds,
            self.passes + other.passes,
            self.tokens + other.tokens,
            self.forced + other.forced,
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """The tools that the request may be about."""

    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """Steps the model wrote together; they do not depend on each other. first: their number."""

    first: int
    calls: tuple[Call, ...]
    timing: Timing


@dataclass(frozen=True, slots=True)
class Revised:
    """One step written anew after what its call brought; all others stay as they are."""

    step: int
    before: Call
    after: Call
    timing: Timing


@dataclass(frozen=True, slots=True)
class Did:
    """A call and what came of it; `seconds` of the tool."""

    step: int
    call: Call
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that was not made, and why: the user said no, or it was only a rehearsal."""

    step: int
    call: Call
    why: str


@dataclass(frozen=True, slots=True)
class Said:
    """The answer to the user. question: the agent waits for a reply to it."""

    text: str
    question: bool = False
    timing: Timing = Timing()


Event = Chosen | Planned | Revised | Did | Refused | Said
