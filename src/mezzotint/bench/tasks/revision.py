"""One fact of a text is changed: what depends on it must follow, the rest must stay.

The cases are our own (revision.toml, which says what its fields mean). Two faults are told
apart, because they cost differently: a consequence that was missed, and text that changed
without a reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from mezzotint.bench.tasks.task import Edit, Grade, Suite, Task, whole_turn

LONGEST = 256  # tokens; the longest right text has 105


def suites() -> list[Suite]:
    source, needs = "the project's own texts", "in the package"
    return [Suite("revision", "Text revision", source, "Apache-2.0", needs, 37, 37, _load)]


def _load(data: Path) -> list[Task]:
    text = (files("mezzotint.bench.tasks") / "revision.toml").read_text("utf-8")
    return [_task(case) for case in tomllib.loads(text)["case"]]


def _task(case: Mapping[str, Any]) -> Task:
    text, old, new = case["text"], case["edit"]["old"], case["edit"]["new"]
    start = text.index(old)
    edited = text[:start] + new + text[start + len(old) :]
    follow: Sequence[Mapping[str, Any]] = case.get("must_change", ())
    gold = edited
    for change in follow:
        gold = gold.replace(change["old"], change["new"][0], 1)
    ask = (
        f'In this text, change the first "{old}" to "{new}". Then change what no longer'
        f" fits, and nothing else. Answer with the new text alone.\n\n{text}"
    )
    exact = "" if follow else edited
    grade = partial(_graded, follow, case.get("must_stay", ()), new, exact)
    return Task(
        f"revision/{case['id']}", "revision", "consequences" if follow else "no consequence",
        ({"role": "user", "content": ask},), (), gold, LONGEST, whole_turn, grade,
        edit=Edit(text, start, start + len(old), new),
    )  # fmt: skip


def _graded(
    follow: Sequence[Mapping[str, Any]], stay: Sequence[str], new: str, exact: str, text: str
) -> Grade:
    """exact: the whole text, where the edit has no consequence; outer spaces do not count."""
    missed = [one["old"] for one in follow if one["old"] in text]
    missed += [one["new"][0] for one in follow if not any(way in text for way in one["new"])]
    lost = [piece for piece in stay if piece not in text]
    if exact and text.strip() != exact.strip():
        lost.append("the rest")
    valid = new in text
    if not valid:
        return Grade(False, False, "the edit itself is missing")
    faults = [f"missed {missed[0]!r}"] if missed else []
    faults += [f"changed {lost[0]!r}"] if lost else []
    return Grade(not faults, True, ", ".join(faults))
