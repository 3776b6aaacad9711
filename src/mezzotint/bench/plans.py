"""What `bench run` runs by default: suites, arms, and what is measured beside the tasks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mezzotint.bench.arms import Spec, read
from mezzotint.bench.run import Plan
from mezzotint.bench.stages import FULL, QUICK
from mezzotint.bench.tasks import Task, load, suites
from mezzotint.errors import UsageError

ARMS = (
    "llama", "llama-lookup", "llama-grammar", "twin", "ar", "ar-schema", "exact", "exact-schema",
    "fast", "fast-schema", "auto", "auto-schema",
)  # fmt: skip
QUICK_ARMS = (
    "llama", "llama-lookup", "llama-grammar", "ar", "exact", "exact-schema", "auto-schema",
)  # fmt: skip
QUICK_TASKS = 24  # in all
QUICK_SUITES = ("held-out-en", "held-out-zh")


def plan(
    names: Sequence[str], arms: Sequence[str], quick: bool, limit: int | None, data: Path,
    threads: int = 0, tasks_only: bool = False,
) -> Plan:  # fmt: skip
    """Raises UsageError for an unknown suite or arm, or if none of the suites is there."""
    specs: tuple[Spec, ...] = tuple(read(arm) for arm in arms or (QUICK_ARMS if quick else ARMS))
    names = names or (QUICK_SUITES if quick else ())
    limit = limit or (-(-QUICK_TASKS // max(len(names), 1)) if quick else None)
    tasks = load(names, data, limit) if names else _all(data, limit)
    stages = () if tasks_only else tuple((QUICK if quick else FULL).items())
    return Plan(tasks, specs, threads, limit, quick, stages)


def _all(data: Path, limit: int | None) -> list[Task]:
    """The tasks of every suite whose source is there; what is left out is told."""
    present = []
    for name in suites():
        try:
            load([name], data, 1)
            present.append(name)
        except UsageError as error:
            print(f"left out: {name}: {error} ({error.hint})", file=sys.stderr)
    if not present:
        raise UsageError("no suite's source is there", "name one with --suite to see why")
    return load(present, data, limit)
