"""A request, whichever endpoint it came by, as what the worker takes and the answer needs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mezzotint.conversation import chat_ids
from mezzotint.family import Regime
from mezzotint.generate import Grammar, Model, Options
from mezzotint.options import policy_for
from mezzotint.policy import MODES, parse
from mezzotint.serve.job import Task
from mezzotint.serve.problems import Problem, bad
from mezzotint.serve.settings import Settings
from mezzotint.serve.wire import Sampling

Parts = tuple[tuple[int, ...] | int | None, ...]

MOST = 1024  # tokens of an answer, where a request says nothing


@dataclass(frozen=True, slots=True)
class Asked:
    """tasks: one a candidate. stops: strings that end prose. calls: whether the answer may be
    calls. formatted: it keeps to a format, so it is whole even where it has no more room.
    mode: how it is decoded, by its short name if it has one."""

    model: str
    tasks: tuple[Task, ...]
    mode: str
    stops: tuple[str, ...] = ()
    calls: bool = False
    formatted: bool = False
    canvas: bool = False

    @property
    def prompt_tokens(self) -> int:
        """Tokens given, those after a hole too."""
        task = self.tasks[0]
        given = [task.prompt] if task.parts is None else task.parts
        return sum(len(part) for part in given if isinstance(part, tuple))

    def head(self, prefix: str, kind: str) -> dict[str, Any]:
        """What a response begins with. prefix: of its id."""
        made = {"id": f"{prefix}-{secrets.token_hex(12)}", "object": kind}
        return {**made, "created": int(time.time()), "model": self.model}


def options_of(
    request: Sampling, model: Model, prompt: int, max_tokens: int | None, seed: int | None
) -> Options:
    """How to decode. prompt: its tokens. Raises Problem if it leaves no room, UsageError for a
    policy that the model cannot follow."""
    room = model.context - prompt
    most = max_tokens or min(128 if model.family.regime is Regime.FULL else MOST, room)
    if prompt + max(most, 1) > model.context:
        what = f"{prompt} tokens of prompt and {max(most, 1)} of answer do not fit"
        raise bad(f"{what} into {model.context}", "messages", "context_length_exceeded")
    drawn = secrets.randbits(32) if seed is None else seed % 2**63
    return Options(
        max_tokens=most,
        policy=request.mezzotint.policy,
        temperature=request.temperature,
        top_p=request.top_p,
        seed=drawn,
    )


def tasks_of(
    prompt: Sequence[int],
    options: Options,
    grammar: Grammar | None,
    count: int,
    client: str,
    settings: Settings,
    parts: Parts | None = None,
) -> tuple[Task, ...]:
    """A task for each candidate: the seed, the seed + 1, … parts: of a text with a hole."""
    if count > settings.candidates:
        raise bad(f"n is {count}; at most {settings.candidates}", "n")
    seeds = (options.seed + i for i in range(count))
    each = (replace(options, seed=seed) for seed in seeds)
    ids = tuple(prompt)
    return tuple(Task(ids, one, grammar, parts, settings.deadline, client) for one in each)


def mode_of(model: Model, options: Options, infill: bool = False, held: bool = False) -> str:
    """The name of the way to decode. Raises UsageError if the family cannot follow it."""
    policy = policy_for(model.family, options, infill, held)
    spelt = options.policy or model.family.policy
    if parse(spelt).drafts != policy.drafts:  # it cannot do this, and was exchanged
        return "threshold:0.9"
    return next((name for name, full in MODES.items() if full == spelt), spelt)


def check(request: Sampling, settings: Settings) -> None:
    """Raises Problem for another model than the one that is here, and for what only a stream
    can have."""
    if request.model != settings.name:
        what = f"no model {request.model!r:.80} here; there is {settings.name!r}"
        raise Problem(404, what, param="model", code="model_not_found")
    if request.stream:
        return
    if getattr(request, "stream_options", None):
        raise bad("stream_options goes with stream", "stream_options")
    if request.mezzotint.canvas:
        raise bad("mezzotint.canvas goes with stream", "mezzotint.canvas")


def stops_of(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """The stop strings; an empty one stops nothing."""
    return tuple(filter(None, [stop] if isinstance(stop, str) else stop or ()))


def prompt_of(model: Model, messages: list[dict[str, str]]) -> list[int]:
    return chat_ids(model.tokenizer, messages)
