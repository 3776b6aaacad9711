"""What the rows say: one summary for each arm, cold and warm, against two yardsticks.

The baseline is the llama.cpp arm that is fastest to a valid action by the median, whatever it
is called; the surest is the llama.cpp arm with the most right answers, and an arm is `equal` if
it is at most a point below that one. own_ar is our engine's AR arm without schemas. Comparisons
are paired: on the tasks that both arms answered. An answer that never was a valid action counts
with the time to its end; an arm that failed counts as not right, and has no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from mezzotint.bench.results import Results, Row
from mezzotint.bench.stats import mcnemar, share, speedup, spread

STATES = ("warm", "cold")
POINTS = 1.0  # of success, that an arm may be below the surest and still be called equal
SIZES = (16, 32, 64)  # of an answer, in tokens: up to each, and above the last
Rows = Mapping[str, Row]
"""By task."""


def summary(results: Results) -> dict[str, Any]:
    """By state: `baseline`, `surest` and `own_ar` (names, or "") and `arms`, in their order."""
    found = {}
    for state in STATES:
        arms: dict[str, dict[str, Row]] = {name: {} for name in results.arms}
        for row in results.rows:
            if row.warm == (state == "warm"):
                arms[row.arm][row.task] = row
        found[state] = _state({n: rows for n, rows in arms.items() if rows}, results)
    return found


def _state(arms: Mapping[str, Rows], results: Results) -> dict[str, Any]:
    specs = {spec["name"]: spec for spec in results.run.arms}
    theirs = [n for n in arms if specs[n]["kind"] == "llama" and _timed(arms[n].values())]
    base = min(theirs, key=lambda n: median(r.wait for r in _timed(arms[n].values())), default="")
    surest = max(theirs, key=lambda n: _rate(arms[n]), default="")
    own = [n for n in arms if specs[n].get("policy") == "ar" and not specs[n]["structure"]]
    ar = "ar" if "ar" in own else "".join(own[:1])
    entries = []
    for name, rows in arms.items():
        entry = {"arm": name, "ours": specs[name]["kind"] == "ours", **_arm(rows)}
        entry["against_baseline"] = compared(rows, arms.get(base, {}))
        entry["against_own_ar"] = compared(rows, arms.get(ar, {}))
        sure = compared(rows, arms.get(surest, {}))
        entry["against_surest"] = sure and sure["success"]
        entry["equal"] = sure is not None and sure["success"]["points"] >= -POINTS
        entry |= _by(rows, arms.get(base, {}))
        entries.append(entry)
    return {"baseline": base, "surest": surest, "own_ar": ar, "arms": entries}


def _rate(rows: Rows) -> float:
    return sum(row.right for row in rows.values()) / len(rows)


def _timed(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if not row.error]


def _arm(rows: Rows) -> dict[str, Any]:
    every, timed = list(rows.values()), _timed(rows.values())
    seconds = sum(row.end for row in timed)
    passes = sum(row.passes for row in timed)
    return {
        "success": share([row.right for row in every]),
        "valid": share([row.valid for row in every]),
        "errors": len(every) - len(timed),
        "cut_off": sum(row.stop == "length" for row in timed),
        "wait": spread([row.wait for row in timed]),
        "end": spread([row.end for row in timed]),
        "prefill": spread([row.prefill for row in timed])["p50"],
        "model": spread([row.model for row in timed])["p50"],
        "other": spread([max(row.end - row.prefill - row.model, 0.0) for row in timed])["p50"],
        "passes": passes / max(len(timed), 1),
        "tokens_per_pass": sum(row.tokens for row in timed) / max(passes, 1),
        "forced": sum(row.forced for row in timed) / max(sum(row.tokens for row in timed), 1),
        "useful_per_second": sum(r.useful for r in timed if r.right) / seconds if seconds else 0.0,
        "cpu": _mean([row.cpu for row in timed]),
        "joules": _mean([row.joules for row in timed]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _by(rows: Rows, base: Rows) -> dict[str, Any]:
    return {
        "by_suite": _parts(rows, base, lambda row: row.suite),
        "by_group": _parts(rows, base, lambda row: f"{row.suite}: {row.group}"),
        "by_size": _parts(rows, base, _size),
    }


def compared(rows: Rows, base: Rows) -> dict[str, Any] | None:
    """Success and time against another arm's, on the tasks of both; None if there are none."""
    both = [(rows[task], base[task]) for task in rows if task in base]
    timed = [(ours, theirs) for ours, theirs in both if not ours.error and not theirs.error]
    if not timed:
        return None
    return {
        "success": mcnemar([a.right for a, _ in both], [b.right for _, b in both]),
        "time": speedup([b.wait for _, b in timed], [a.wait for a, _ in timed]),
    }


def _parts(rows: Rows, base: Rows, of: Callable[[Row], str]) -> dict[str, Any]:
    parts: dict[str, dict[str, Row]] = {}
    for task, row in rows.items():
        parts.setdefault(of(row), {})[task] = row
    return {
        part: {
            "success": share([row.right for row in some.values()]),
            "wait": spread([row.wait for row in _timed(some.values())]),
            "against_baseline": compared(some, base),
        }
        for part, some in sorted(parts.items())
    }


def _size(row: Row) -> str:
    low = 1
    for high in SIZES:
        if row.useful <= high:
            return f"{low:03}–{high:03} tokens"
        low = high + 1
    return f"{low:03} tokens and more"
