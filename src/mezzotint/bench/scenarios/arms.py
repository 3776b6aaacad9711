"""The suite under several ways of decoding, side by side.

Every arm plays a scenario before the next scenario comes, each on stores of its own, so that a
slow moment of the machine meets them all. The first arm is what the others are compared with.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mezzotint.agent.writer import Writer
from mezzotint.bench.scenarios.grade import Grade, grade
from mezzotint.bench.scenarios.play import Played, play
from mezzotint.bench.scenarios.snapshot import snapshot
from mezzotint.bench.scenarios.stage import Stage
from mezzotint.bench.scenarios.suite import Scenario
from mezzotint.errors import UsageError
from mezzotint.progress import Report

ARMS = ("ar=hybrid:ar:free", "hybrid=hybrid")


@dataclass(frozen=True, slots=True)
class Arm:
    """policy: None is the model's own choice. structure: calls are held to the schemas."""

    name: str
    model: str
    policy: str | None = None
    structure: bool = True

    @classmethod
    def of(cls, text: str) -> Arm:
        """Read NAME=MODEL:POLICY:free, of which only MODEL must be there.

        Raises UsageError if it is not.
        """
        named = "=" in text.partition(":")[0]  # a policy has such signs, too
        name, _, spec = text.partition("=") if named else (text, "", text)
        spec, free, rest = spec.partition(":free")
        model, _, policy = spec.partition(":")
        if not model or not name or rest:
            raise UsageError(f"no arm: {text!r}", "say NAME=MODEL:POLICY:free, or less of it")
        return cls(name, model, policy or None, not free)


@dataclass(frozen=True, slots=True)
class Result:
    """What one arm made of one scenario."""

    scenario: Scenario
    arm: str
    played: Played
    grade: Grade


def run(
    some: Sequence[Scenario], arms: Sequence[Arm], writer: Callable[[Arm], Writer], report: Report
) -> Iterator[Result]:
    """Results scenario by scenario, arm by arm. writer: makes one for each scenario."""
    with tempfile.TemporaryDirectory(prefix="mezzotint-") as folder:
        stage = Stage(Path(folder))
        for number, scenario in enumerate(some):
            target = stage.target(scenario)
            for at, arm in enumerate(arms):
                report(number * len(arms) + at, len(some) * len(arms))
                with stage.fresh(scenario) as stores:
                    played = play(scenario, stores, writer(arm))
                    after = snapshot(stores.journal.workspace)
                yield Result(scenario, arm.name, played, grade(scenario, target, after, played))
