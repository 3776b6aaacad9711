"""One turn: a task given to one arm, cold or warm, its answer graded.

Cold: the cache is empty when the clock starts. Warm: it holds what an application shows with
every request, the system message with the tools, up to the time it tells. An arm that can show the
tokens it reads must read the very same ones as all others.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mezzotint.backend import shared
from mezzotint.bench.arms import Arm, Asked, LlamaSpec, Spec
from mezzotint.bench.energy import Meter
from mezzotint.bench.results import Row
from mezzotint.bench.tasks import Message, Task
from mezzotint.errors import BackendError, MezzotintError
from mezzotint.model import Model
from mezzotint.text import Tokenizer
from mezzotint.toolcall import NOW

REST = 0.01  # seconds before a turn, for the other engine's threads to go to sleep


class Opener(Protocol):
    """What opens arms: `arms.Bench`."""

    def open(self, spec: Spec) -> Arm: ...
    def tokenizer(self, spec: Spec) -> Tokenizer | None: ...
    def weights(self, spec: Spec) -> dict[str, Any]: ...
    def model(self, name: str, weights: str | None = None) -> Model: ...
    def file(self, spec: LlamaSpec) -> Path: ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """A task with its ids (P,); the first `lasting` of them are there before the request."""

    task: Task
    ids: tuple[int, ...]
    lasting: int

    @property
    def sha256(self) -> str:
        return hashlib.sha256(np.array(self.ids, "<i4").tobytes()).hexdigest()


def prompt_of(task: Task, spell: Callable[[Sequence[Message]], Sequence[int]]) -> Prompt:
    """The prompt of a task; spell: the ids of messages, the assistant's turn begun."""
    ids = tuple(spell(task.messages))
    first, *rest = task.messages
    shown = first["content"].partition(f"\n{NOW}")[0]
    other = {"role": first["role"], "content": f"{shown}\n{NOW} -" if rest else "-"}
    beside = spell([other, *({**turn, "content": "-"} for turn in rest)])
    return Prompt(task, ids, shared(ids[:-1], beside))


def check_prompt(prompt: Prompt, name: str, arm: Arm) -> None:
    """Raises BackendError if the arm would read other tokens."""
    ids = arm.prompt(prompt.task.messages)
    if ids is not None and ids != prompt.ids:
        at = shared(ids, prompt.ids)
        what = f"arm {name} reads another prompt for {prompt.task.id}, from token {at} on"
        raise BackendError(what, "arms are compared on byte-identical prompts alone")


def turn(
    prompt: Prompt, name: str, arm: Arm, warm: bool, count: Callable[[str], int], meter: Meter
) -> Row:
    """Rest, get ready, run, grade. count: tokens of a text, by one vocabulary for all arms.

    An arm that fails has failed the task; the error is in its row.
    """
    task, asked = prompt.task, Asked(prompt.task, prompt.ids, prompt.lasting if warm else 0)
    about: dict[str, Any] = {
        "arm": name, "task": task.id, "suite": task.suite, "group": task.group, "warm": warm,
        "prompt": prompt.sha256[:16], "prompt_tokens": len(prompt.ids), "held": asked.held,
        "at": time.time(),
    }  # fmt: skip
    try:
        arm.ready(asked)
        time.sleep(REST)
        with meter:
            answer = arm.run(asked)
    except MezzotintError as error:
        return Row(**about, right=False, valid=False, note="failed", error=str(error))
    grade = task.grade(answer.text)
    return Row(
        **about, **asdict(answer), right=grade.right, valid=grade.valid, note=grade.note,
        joules=meter.joules, useful=count(answer.text),
    )  # fmt: skip
