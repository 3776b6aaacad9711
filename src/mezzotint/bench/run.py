"""A run of the benchmark: every arm answers a task before the next task comes.

Arms take turns in one process, in an order drawn anew for each task, so that a slow moment of
the machine meets them all and none always follows the same other. Each is asked cold and
warm. What is measured is in the journal before the next is measured, so a run can be stopped
at any time and goes on with the same command.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mezzotint.bench import results
from mezzotint.bench.arms import Arm, Asked, OpenaiSpec, Spec
from mezzotint.bench.energy import Meter
from mezzotint.bench.machine import machine
from mezzotint.bench.results import Journal, Results, Run
from mezzotint.bench.tasks import Message, Task
from mezzotint.bench.trial import settle
from mezzotint.bench.turn import Opener, Prompt, check_prompt, prompt_of, turn
from mezzotint.errors import BackendError, MezzotintError, UsageError
from mezzotint.progress import Report
from mezzotint.text import Tokenizer

WARMUP = 2  # tasks that every arm answers unmeasured, first of all
SEED = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. stages: what is measured after the tasks, in order, by name."""

    tasks: Sequence[Task]
    specs: tuple[Spec, ...]
    threads: int = 0
    limit: int | None = None
    quick: bool = False
    stages: tuple[tuple[str, Callable[[Stand], Any]], ...] = ()


@dataclass
class Stand:
    """An opened bench: the settled specs, and prompts by one tokenizer for all."""

    plan: Plan
    opener: Opener
    tokenizer: Tokenizer
    prompts: list[Prompt]
    specs: list[Spec] = field(default_factory=list)

    def spell(self, messages: Sequence[Message]) -> list[int]:
        return self.tokenizer.chat(messages)

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text))


def run(plan: Plan, opener: Opener, out: Path, report: Report) -> Results:
    """Run what the journal of `out` does not have yet; results.json is written at the end.

    report: called with turns done and turns in all. Raises UsageError if `out` holds another
    run, BackendError if arms would read different prompts.
    """
    journal = Journal(out)
    try:
        stand = _stand(plan, opener)
        _settle(stand, journal)
        arms = {spec.name: opener.open(spec) for spec in stand.specs}
        _begin(stand, journal, arms)
        _turns(stand, journal, arms, report)
        for arm in arms.values():
            arm.close()
        for name, stage in plan.stages:
            if journal.part(name) is None:
                journal.add(name, stage(stand))
        found = journal.results()
    finally:
        journal.close()
    results.write(found, out)
    return found


def _stand(plan: Plan, opener: Opener) -> Stand:
    names = [spec.name for spec in plan.specs]
    if not names or len({*names}) < len(names):
        raise UsageError(f"arms {', '.join(names)}: each needs a name of its own", "--arm NAME=…")
    if not plan.tasks:
        raise UsageError("no tasks", "name a suite with --suite")
    shown = [opener.tokenizer(spec) for spec in plan.specs if not isinstance(spec, OpenaiSpec)]
    if not shown or shown[0] is None:
        raise UsageError("no arm shows its prompts", "put one of ours beside the server's")
    spelling = shown[0]
    prompts = [prompt_of(task, spelling.chat) for task in plan.tasks]
    return Stand(plan, opener, spelling, prompts)


def _settle(stand: Stand, journal: Journal) -> None:
    for spec in stand.plan.specs:
        earlier = [value for part, value in journal.lines if part == "trial"]
        settled, found = settle(spec, stand.opener, stand.prompts, earlier)
        stand.specs.append(settled)
        if found is not None:
            journal.add("trial", found)


def _begin(stand: Stand, journal: Journal, arms: dict[str, Arm]) -> None:
    """Note what is run, or see that it is what was run here; then warm up."""
    for prompt in stand.prompts:
        for name, arm in arms.items():
            check_prompt(prompt, name, arm)
    begun, this = journal.part("run"), _header(stand)
    if begun is None:
        journal.add("run", this.model_dump(mode="json"))
    elif journal.results().run.same() != this.same():
        raise UsageError(f"{journal.folder} holds another run", "name another folder with --out")
    for prompt in stand.prompts[:WARMUP]:
        for arm in arms.values():
            _warm_up(prompt, arm)


def _warm_up(prompt: Prompt, arm: Arm) -> None:
    try:
        arm.ready(Asked(prompt.task, prompt.ids))
        arm.run(Asked(prompt.task, prompt.ids))
    except BackendError:
        raise
    except MezzotintError:  # of this task; a turn will say so
        pass


def _header(stand: Stand) -> Run:
    plan = stand.plan
    whole = hashlib.sha256("".join(p.sha256 for p in stand.prompts).encode()).hexdigest()
    return Run(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        suites=tuple(dict.fromkeys(task.suite for task in plan.tasks)),
        limit=plan.limit,
        quick=plan.quick,
        seed=SEED,
        threads=plan.threads,
        prompts=whole,
        tasks=len(plan.tasks),
        arms=tuple(spec.model_dump(mode="json") for spec in stand.specs),
        weights={spec.name: stand.opener.weights(spec) for spec in stand.specs},
        warmup=f"{min(WARMUP, len(plan.tasks))} tasks for each arm, unmeasured",
        machine=machine(plan.threads) | {"energy": Meter().source},
    )


def _turns(stand: Stand, journal: Journal, arms: dict[str, Arm], report: Report) -> None:
    done = {(v["task"], v["arm"], v["warm"]) for part, v in journal.lines if part == "row"}
    meter, total, at = Meter(), len(stand.prompts) * len(arms) * 2, 0
    for prompt in stand.prompts:
        order = [(name, warm) for name in arms for warm in (False, True)]
        random.Random(f"{SEED}/{prompt.task.id}").shuffle(order)
        for name, warm in order:
            at += 1
            if (prompt.task.id, name, warm) not in done:
                row = turn(prompt, name, arms[name], warm, stand.count, meter)
                journal.add("row", row.model_dump())
            report(at, total)
