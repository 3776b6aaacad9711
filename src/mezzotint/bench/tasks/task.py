"""What every arm is asked, and how its answer is graded: the values the suites are made of.

A task is one prompt and one answer. It knows nothing of models, arms or clocks; its grader
sees the answer's text alone, so that no arm can be graded otherwise than another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mezzotint.errors import UsageError
from mezzotint.toolcall import Schema

Message = dict[str, str]  # role and content


@dataclass(frozen=True, slots=True)
class Grade:
    """right: the task is done. valid: the answer has the form asked for (calls that parse and
    meet their schemas, code that compiles). note: in a few words what is wrong with it."""

    right: bool
    valid: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters [start, end) of `text` become `new`."""

    text: str
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt and its grader.

    id: stable, "held-out-en/0012". group: a row of the report. messages: whole; the system
    message shows the tools already. tools: what the answer may call; empty asks for prose or
    code. gold: an answer that is right. done: whether the text so far is a whole valid first
    action; never true of prose or code, which last to the end of the turn. parts: for arms
    that fill holes, to be given instead of `messages`: text, and None for the hole; their
    answer is what goes into it. edit: likewise, for arms that revise a text; their answer is
    the new text.
    """

    id: str
    suite: str
    group: str
    messages: tuple[Message, ...]
    tools: tuple[Schema, ...]
    gold: str
    max_tokens: int
    done: Callable[[str], bool]
    grade: Callable[[str], Grade]
    parts: tuple[str | None, ...] | None = None
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """A set of tasks from one source.

    size: how many tasks there are. quick: how many are enough for a look. needs: where they
    come from. load: reads them, given the shared data folder; raises UsageError with what to
    install or where to point if the source is absent.
    """

    name: str
    title: str
    source: str
    licence: str
    needs: str
    size: int
    quick: int
    load: Callable[[Path], list[Task]]


def spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """`count` of the tasks, evenly spread; all of them if there are no more, or for 0."""
    if not count or count >= len(tasks):
        return list(tasks)
    return [tasks[i * len(tasks) // count] for i in range(count)]


def whole_turn(text: str) -> bool:
    """For prose and code: there is no action before the end of the turn."""
    return False


def shared(data: Path, name: str) -> Path:
    """A file of the shared data folder. Raises UsageError if it is not there."""
    file = data / name
    if not file.exists():
        hint = "Give the shared data folder with --shared or MEZZOTINT_SHARED."
        raise UsageError(f"{file} is not there", hint)
    return file
