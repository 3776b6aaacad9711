"""The tasks of `mezzotint bench`: what is asked, in suites, each graded by program.

    for task in load(["held-out-en"], shared, limit=60):
        task.messages        # the prompt, byte-identical for every arm
        task.grade(text)     # Grade(right, valid, note)

A suite is read from what it `needs`: this package, another package, or the shared folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mezzotint.bench.tasks.task import Edit, Grade, Message, Suite, Task, spread
from mezzotint.errors import UsageError

__all__ = ["Edit", "Grade", "Message", "Suite", "Task", "load", "picked", "suites"]


def suites() -> dict[str, Suite]:
    """Every suite by its name, in the order of the report. Reads no data."""
    from mezzotint.bench.tasks import bfcl, code, hammer, ours, revision

    parts = (ours, bfcl, hammer, code, revision)
    return {suite.name: suite for part in parts for suite in part.suites()}


def picked(names: Sequence[str]) -> list[Suite]:
    """The suites of these names; all for none. Raises UsageError for an unknown one."""
    known = suites()
    for name in names:
        if name not in known:
            raise UsageError(f"no suite {name!r}", f"The suites are {', '.join(known)}.")
    return [known[name] for name in names or known]


def load(names: Sequence[str], data: Path, limit: int | None = None) -> list[Task]:
    """The tasks of the suites `names` (all for none), interleaved in proportion.

    data: the shared folder (its train/ and eval/). limit: tasks of each suite, evenly spread;
    None is all, 0 is as many as each suite holds enough for a look. The order depends on
    these arguments alone. Raises UsageError for an unknown suite or an absent source.
    """
    placed = []
    for rank, suite in enumerate(picked(names)):
        tasks = spread(suite.load(data), suite.quick if limit == 0 else limit or 0)
        placed += [((n + 0.5) / len(tasks), rank, task) for n, task in enumerate(tasks)]
    placed.sort(key=lambda one: one[:2])
    return [task for _, _, task in placed]
