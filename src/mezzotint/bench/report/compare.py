"""Two runs, ratio by ratio: whether the second says again what the first said."""

from __future__ import annotations

from typing import Any

from mezzotint.bench.measures import STATES, summary
from mezzotint.bench.results import Results

WITHIN = 0.10


def compared(first: Results, second: Results) -> dict[str, Any]:
    """ratios: of each arm and state, its speed-up over the first run's baseline in both runs.
    alike: of the two runs, what should be the same and whether it is."""
    one, two = summary(first), summary(second)
    rows = []
    for state in STATES:
        after = {entry["arm"]: entry for entry in two[state]["arms"]}
        for entry in one[state]["arms"]:
            other = after.get(entry["arm"], {"against_baseline": None})
            ratios = [e["against_baseline"] for e in (entry, other)]
            if None in ratios:
                continue
            a, b = (ratio["time"]["median"] for ratio in ratios)
            rows.append(
                {
                    "arm": entry["arm"],
                    "state": state,
                    "first": a,
                    "second": b,
                    "again": b / a,
                    "within": abs(b / a - 1) <= WITHIN,
                    "success": [e["success"]["share"] for e in (entry, other)],
                }
            )
    alike = _alike(first, second)
    alike |= {f"{s} baseline": one[s]["baseline"] == two[s]["baseline"] for s in STATES}
    return {"alike": alike, "ratios": rows}


def _alike(first: Results, second: Results) -> dict[str, bool]:
    a, b = first.run, second.run
    return {
        "prompts": a.prompts == b.prompts,
        "weights": all(b.weights.get(name) == w for name, w in a.weights.items()),
        "packages": a.machine.get("packages") == b.machine.get("packages"),
        "processor": a.machine.get("processor") == b.machine.get("processor"),
    }


def table(found: dict[str, Any]) -> str:
    alike = ", ".join(
        f"{n} {'the same' if same else 'DIFFER'}" for n, same in found["alike"].items()
    )
    lines = [alike, "", f"{'arm':15} {'':5} {'first':>7} {'second':>7} {'again':>6}  success"]
    for row in found["ratios"]:
        success = " → ".join(f"{share:.1%}" for share in row["success"])
        lines.append(
            f"{row['arm']:15.15} {row['state']:5} {row['first']:7.2f} {row['second']:7.2f}"
            f" {row['again']:6.2f}  {success}{'' if row['within'] else '   NOT within 10%'}"
        )
    kept = sum(row["within"] for row in found["ratios"])
    return "\n".join([*lines, "", f"{kept} of {len(found['ratios'])} ratios within {WITHIN:.0%}"])
