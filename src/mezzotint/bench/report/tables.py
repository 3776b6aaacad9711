"""The numbers of a run as a table of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mezzotint.bench.measures import STATES, summary
from mezzotint.bench.report.words import SAID, cautions
from mezzotint.bench.results import Results

_HEAD = (
    f"{'arm':15} {'right':>18} {'points':>6} {'p':>5} {'ms':>7} {'p95 ms':>7} {'times as fast':>18}"
    f" {'of ar':>6} {'passes':>6} {'tok/pass':>8} {'prefill':>7} {'cpu ms':>6}"
)


def table(results: Results) -> str:
    """One table for warm and one for cold; times in milliseconds, to a valid action."""
    found = summary(results)
    run, machine = results.run, results.run.machine
    lines = [
        f"{run.tasks} tasks of {', '.join(run.suites)}; {machine['processor']},"
        f" {machine['engine']['threads']} threads",
        f"prompts {run.prompts[:16]}; energy {machine['energy']}",
        *cautions(results),
    ]
    for state in STATES:
        some = found[state]
        yardsticks = f"baseline {some['baseline'] or 'none'}, surest {some['surest'] or 'none'}"
        lines += ["", f"{state}, {SAID[state]}; {yardsticks}", _HEAD]
        lines += [_line(entry) for entry in some["arms"]]
    return "\n".join(lines)


def _line(entry: Mapping[str, Any]) -> str:
    success, wait, cpu = entry["success"], entry["wait"], entry["cpu"]
    base, own, sure = (entry[f"against_{one}"] for one in ("baseline", "own_ar", "surest"))
    right = f"{success['share']:.1%} ({success['low']:.0%}–{success['high']:.0%})"
    cells = (
        f"{entry['arm']:15.15}",
        f"{right:>18}",
        f"{sure['points']:+6.1f} {sure['p']:5.2f}" if sure else f"{'-':>6} {'-':>5}",
        f"{1e3 * wait['p50']:7.1f} {1e3 * wait['p95']:7.1f}",
        f"{_times(base['time']) if base else '-':>18}",
        f"{own['time']['median']:6.2f}" if own else f"{'-':>6}",
        f"{entry['passes']:6.1f} {entry['tokens_per_pass']:8.2f} {1e3 * entry['prefill']:7.1f}",
        "     -" if cpu is None else f"{1e3 * cpu:6.0f}",
    )
    return " ".join(cells)


def _times(time: Mapping[str, float]) -> str:
    return f"{time['median']:.2f} ({time['low']:.2f}–{time['high']:.2f})"
