"""Which ways of decoding a hybrid there are, and what each reaches on validation prompts.

The result stands in the adapter's mezzotint.json; `mezzotint.auto` weighs it against the
device's costs. Validation and test prompts are different ones: a threshold chosen on the
tests would flatter them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mezzotint.adapt.save import write_json
from mezzotint.adapt.score import score, summary
from mezzotint.auto import Way
from mezzotint.checkpoint.adapter import ABOUT
from mezzotint.model import Model
from mezzotint.progress import Report

BLOCKS = (4, 6, 8, 12, 16, 24)
OTHERS = 6  # the window that other policies are tried with
VERIFY = "verify:0.4"
KEEPS = (0.5, 0.3, 0.1, 0.03)
THETAS = (0.7, 0.9)


def try_ways(
    model: Model, prompts: Sequence[tuple[str, Mapping[str, Any]]], report: Report
) -> list[Way]:
    """AR first, then drafts with verification by window length; with less of it, and without, by
    threshold."""
    arms = {0: ["left-to-right"], **{block: [VERIFY] for block in BLOCKS}}
    arms[OTHERS] += [f"refine:0.4,keep={keep}" for keep in KEEPS]
    arms[OTHERS] += [f"leading:{theta}" for theta in THETAS]
    found, done = [], 0
    prompts = [("validation", row) for _, row in prompts]
    for block, policies in arms.items():
        for policy in policies:
            answers = score(model, prompts, [policy], block or None, lambda n, _: None)
            found += [_way(policy, block, row) for row in summary(list(answers))]
            done += 1
            report(done, sum(map(len, arms.values())))
    return found


def _way(policy: str, block: int, row: Mapping[str, Any]) -> Way:
    reached = (row["tokens_per_pass"], row["rows_per_pass"], row["exact"])
    return Way(policy, block, *(round(value, 3) for value in reached))


def note(folder: Path, found: Sequence[Way]) -> None:
    """Write the ways into the adapter's mezzotint.json."""
    about = json.loads((folder / ABOUT).read_text("utf-8"))
    write_json(folder / ABOUT, about | {"ways": [asdict(way) for way in found]})


def table(found: Sequence[Way]) -> str:
    lines = [f"{'policy':16} {'window':>6} {'tok/pass':>8} {'rows/pass':>9} {'right':>6}"]
    lines += [
        f"{w.policy:16} {w.block or '-':>6} {w.tokens:8.2f} {w.rows:9.1f} {w.right:6.1%}"
        for w in found
    ]
    return "\n".join(lines)
