"""What the suites hold, whether their right answers are graded right, and who trains on them.

`mezzotint bench tasks --oracle` checks the graders: an arm that answers with each task's gold.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from mezzotint.adapt.data.overlap import SIZE, Evaluations, words
from mezzotint.bench.scenarios.suite import SETS, scenarios
from mezzotint.bench.tasks.task import Suite, Task, spread
from mezzotint.errors import UsageError
from mezzotint.progress import Report

Count = Callable[[Sequence[Mapping[str, str]]], int]  # tokens of messages


@dataclass(frozen=True, slots=True)
class Row:
    """One suite. groups: tasks of each. prompt: median and longest, in tokens.

    right, valid: of the gold answers, None if they were not graded; wrong: ids of the others.
    absent: why the suite cannot be read here, or empty.
    """

    suite: Suite
    groups: Mapping[str, int] = field(default_factory=dict)
    prompt: tuple[int, int] = (0, 0)
    right: int | None = None
    valid: int | None = None
    wrong: tuple[str, ...] = ()
    absent: str = ""

    @property
    def tasks(self) -> int:
        return sum(self.groups.values())

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        suite = self.suite
        return {
            "suite": suite.name, "title": suite.title, "source": suite.source,
            "licence": suite.licence, "needs": suite.needs, "tasks": self.tasks,
            "groups": dict(self.groups), "prompt_tokens": self.prompt, "right": self.right,
            "valid": self.valid, "wrong": self.wrong, "absent": self.absent,
        }  # fmt: skip


def survey(
    suites: Sequence[Suite], data: Path, count: Count, oracle: bool, limit: int, report: Report
) -> list[Row]:
    """A row for each suite. limit: tasks of each to look at, 0 for all."""
    rows = []
    for suite in suites:
        try:
            rows.append(_look(suite, spread(suite.load(data), limit), count, oracle, report))
        except UsageError as error:
            rows.append(Row(suite, absent=f"{error}. {error.hint}"))
    return rows


def _look(
    suite: Suite, tasks: Sequence[Task], count: Count, oracle: bool, report: Report
) -> Row:  # fmt: skip
    groups = Counter(task.group for task in tasks)
    lengths = [count(task.messages) for task in tasks]
    prompt = (round(median(lengths)), max(lengths))
    if not oracle:
        return Row(suite, groups, prompt)
    grades = []
    for number, task in enumerate(tasks):
        report(number, len(tasks))
        grades.append(task.grade(task.gold))
    wrong = tuple(t.id for t, g in zip(tasks, grades, strict=True) if not g.right)
    valid = sum(grade.valid for grade in grades)
    return Row(suite, groups, prompt, len(tasks) - len(wrong), valid, wrong)


def table(rows: Sequence[Row]) -> str:
    """The rows for a reader."""
    lines = [f"{'suite':12} {'tasks':>5} {'prompt tokens':>13} {'oracle':>7} {'valid':>6}  groups"]
    for row in rows:
        if row.absent:
            lines.append(f"{row.suite.name:12} absent: {row.absent}")
            continue
        share = ["" if n is None else f"{n / row.tasks:.1%}" for n in (row.right, row.valid)]
        groups = ", ".join(f"{name} {n}" for name, n in row.groups.items())
        length = f"{row.prompt[0]} to {row.prompt[1]}"
        lines.append(
            f"{row.suite.name:12} {row.tasks:5} {length:>13} {share[0]:>7} {share[1]:>6}  {groups}"
        )
        lines += [f"{'':12} not right: {', '.join(row.wrong)}"] if row.wrong else []
    return "\n".join(lines)


def texts(suites: Sequence[Suite], data: Path) -> dict[str, list[str]]:
    """What must not be trained on, by suite: requests, right answers, the agent's scenarios.

    A suite that cannot be read here is left out.
    """
    found: dict[str, list[str]] = {}
    for suite in suites:
        try:
            tasks = suite.load(data)
        except UsageError:
            continue
        said = [turn["content"] for t in tasks for turn in t.messages if turn["role"] == "user"]
        # A call is made of the request's own words; "None of my tools can do that" is nobody's.
        found[suite.name] = said + [t.gold for t in tasks if not t.tools]
    every = [one for which in SETS for one in scenarios(which)]
    found["scenarios"] = [text for s in every for text in (*s.say, *s.reply)]
    return found


def overlaps(file: Path, sets: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many rows of a training file share 13 words in a row, or a whole request, with a set.

    Raises UsageError if the file is not one of training samples with messages.
    """
    guard, hits = Evaluations(), Counter[str]()
    for name, some in sets.items():
        guard.add(name, some)
    try:
        with file.open(encoding="utf-8") as lines:
            hits.update(hit for line in lines if (hit := guard.overlap(*_said(json.loads(line)))))
    except (OSError, ValueError, LookupError) as error:
        raise UsageError(f"{file} holds no training samples: {error}") from None
    return dict(hits)


def _said(row: Mapping[str, Any]) -> list[str]:
    """The requests of a sample, and its answer if that is long enough to be anybody's."""
    said = [turn["content"] for turn in row["messages"] if turn["role"] == "user"]
    return said + [row["target"]] * (len(words(row["target"])) >= SIZE)
