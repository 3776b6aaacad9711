"""What a run measures beside the tasks; each stage is a function of the opened bench."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mezzotint.bench.run import Stand
from mezzotint.bench.stages.agent import agent
from mezzotint.bench.stages.lengths import lengths
from mezzotint.bench.stages.memory import memory
from mezzotint.bench.stages.passes import passes
from mezzotint.bench.stages.sweep import LEADING, LENIENT, sweep

Stage = Callable[[Stand], Any]

QUICK: dict[str, Stage] = {
    "memory": memory,
    "passes": partial(passes, turns=3),
    "sweep": partial(sweep, policies=(*LEADING[1::2], *LENIENT[1::2]), tasks=8),
}
FULL: dict[str, Stage] = {
    "memory": memory,
    "passes": partial(passes, turns=12),
    "sweep": sweep,
    "lengths": lengths,
    "agent": agent,
}
