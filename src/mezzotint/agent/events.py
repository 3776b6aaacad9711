"""What an agent tells while it works: one stream for the terminal, traces and tests."""

from __future__ import annotations

from dataclasses import dataclass

from mezzotint.agent.tool import Outcome, Preview
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
    """The tools that the request may be about. run: what its calls are journalled under; "" in
    a rehearsal."""

    tools: tuple[str, ...]
    run: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """Steps the model wrote together; they do not depend on each other. first: their number."""

    first: int
    calls: tuple[Call, ...]
    timing: Timing


@dataclass(frozen=True, slots=True)
class Span:
    """A line of a plan that was revised: kept as it was, or masked and written again."""

    step: int
    before: Call
    after: Call
    masked: bool


@dataclass(frozen=True, slots=True)
class Revised:
    """A plan after what a call brought or the user said changed a part of it. spans: all its
    lines, of which only those that depend on the change were written again."""

    spans: tuple[Span, ...]
    timing: Timing

    @property
    def rewritten(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.masked)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run that was cut off goes on. done: numbers of the steps that are not made again.
    unknown: those of which nobody knows whether they took place."""

    run: str
    done: tuple[int, ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The user is about to be asked whether to do what cannot be undone. preview: what it comes
    to, if the tool can say. strange: arguments whose words are not the user's. unknown: it may
    have been done already, by a run that was cut off."""

    step: int
    call: Call
    preview: Preview | None
    strange: tuple[str, ...] = ()
    unknown: bool = False


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


Event = Chosen | Planned | Revised | Resumed | Asked | Did | Refused | Said
