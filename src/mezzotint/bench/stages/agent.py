"""The agent's scenarios (see `bench.scenarios`) as a part of a run, graded by final state."""

from __future__ import annotations

from typing import Any

from mezzotint.agent.writer import Writer
from mezzotint.bench.run import Stand
from mezzotint.bench.scenarios.arms import ARMS, Arm, run
from mezzotint.bench.scenarios.report import summary
from mezzotint.bench.scenarios.suite import SETS, scenarios


def agent(stand: Stand) -> dict[str, Any]:
    """The summaries that `mezzotint bench agent` prints, of each set, by default arms."""

    def writer(arm: Arm) -> Writer:
        return Writer(stand.opener.model(arm.model), arm.policy, arm.structure)

    arms = [Arm.of(text) for text in ARMS]
    return {
        which: summary(list(run(scenarios(which), arms, writer, lambda done, total: None)))
        for which in SETS
    }
