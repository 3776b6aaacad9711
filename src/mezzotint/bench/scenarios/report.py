"""Results as shares with intervals, times and harm; for a reader, and as plain JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from textwrap import shorten
from typing import Any

import numpy as np

from mezzotint import toolcall
from mezzotint.agent.events import Timing
from mezzotint.bench.scenarios.arms import Result
from mezzotint.bench.scenarios.snapshot import Record
from mezzotint.bench.stats import share


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """One entry an arm, in their order; `ratio` is of the median to the first arm's."""
    arms: dict[str, list[Result]] = {}
    for one in results:
        arms.setdefault(one.arm, []).append(one)
    rows = [{"arm": arm, **_sums(some)} for arm, some in arms.items()]
    for row in rows:
        row["ratio"] = row["ms"] / (rows[0]["ms"] or math.inf)
    return {"arms": rows, "failed": [failure(one) for one in results if not one.grade.success]}


def _sums(some: Sequence[Result]) -> dict[str, Any]:
    # A request that broke off has no times.
    timings = [t for one in some for t in one.played.requests if t.tokens] or [Timing()]
    times = [1e3 * timing.seconds for timing in timings]
    passes, tokens = sum(t.passes for t in timings), sum(t.tokens for t in timings)
    return {
        "success": share([one.grade.success for one in some]),
        "by_kind": _parts([(one.scenario.kind, one.grade.success) for one in some]),
        "by_language": _parts([(one.scenario.language, one.grade.success) for one in some]),
        "wrongly_sent": sum(one.grade.sent for one in some),
        "escapes": sum(one.grade.escapes for one in some),
        "requests": len(times),
        "ms": median(times),
        "ms_mean": fmean(times),
        "ms_95": float(np.percentile(times, 95)),
        "no_pass": sum(not t.passes for t in timings) / len(times),
        "passes": passes / len(times),
        "tokens_per_pass": tokens / max(passes, 1),
        "forced": sum(t.forced for t in timings) / max(tokens, 1),
    }


def _parts(pairs: Sequence[tuple[str, bool]]) -> dict[str, dict[str, float]]:
    parts: dict[str, list[bool]] = {}
    for part, hit in pairs:
        parts.setdefault(part, []).append(hit)
    return {part: share(hits) for part, hits in sorted(parts.items())}


def failure(one: Result) -> dict[str, Any]:
    """What went wrong, and what the agent did instead."""
    needed = {call.name for call in one.scenario.gold}
    made = [f"{toolcall.write([call])} {end}".strip() for call, end in one.played.calls]
    return {
        "arm": one.arm,
        "kind": one.scenario.kind,
        "name": one.scenario.name,
        "say": list(one.scenario.say),
        "calls": made,
        "answer": one.played.answer,
        "faults": list(one.grade.faults),
        "missing": [_line(record) for record in one.grade.missing],
        "unwanted": [_line(record) for record in one.grade.unwanted],
        "not_shown": sorted(needed - one.played.shown),
        "sent": one.grade.sent,
        "escapes": one.grade.escapes,
    }


def _line(record: Record) -> str:
    words = " | ".join(part for part in (*record.key, record.text) if part)
    return shorten(f"{record.store}: {words}", 160, placeholder=" …")


def table(report: dict[str, Any], verbose: bool = False) -> str:
    """The report for a reader; verbose: with every failure."""
    lines = [_HEAD]
    for r in report["arms"]:
        lines.append(
            f"{r['arm']:12.12} {_said(r['success']):>22} {r['wrongly_sent']:5} {r['escapes']:7}"
            f" {r['ms']:7.0f} {r['ms_mean']:7.0f} {r['ms_95']:7.0f} {r['ratio']:6.2f}"
            f" {r['no_pass']:7.0%} {r['passes']:7.1f}"
            f" {r['tokens_per_pass']:8.2f} {r['forced']:7.0%}"
        )
    for part in ("by_kind", "by_language"):
        lines += ["", f"{'':12} " + "".join(f"{r['arm']:>24.20}" for r in report["arms"])]
        for name in report["arms"][0][part]:
            shares = "".join(f"{_said(r[part][name]):>24}" for r in report["arms"])
            lines.append(f"{name:12} {shares}")
    if verbose:
        lines += [line for one in report["failed"] for line in _failed(one)]
    return "\n".join(lines)


_HEAD = (
    f"{'arm':12} {'success':>22} {'wrong':>5} {'escapes':>7} {'ms':>7} {'mean':>7} {'p95':>7}"
    f" {'ratio':>6} {'no pass':>7} {'passes':>7} {'tok/pass':>8} {'forced':>7}"
)


def _said(some: dict[str, float]) -> str:
    return f"{some['share']:.0%} of {some['of']} ({some['low']:.0%}–{some['high']:.0%})"


def _failed(one: dict[str, Any]) -> list[str]:
    lines = ["", f"{one['arm']}: {one['kind']}/{one['name']}: {' / '.join(one['say'])}"]
    for label in ("calls", "faults", "missing", "unwanted", "not_shown"):
        lines += [f"  {label.replace('_', ' '):9} {text}" for text in one[label]]
    return [*lines, f"  {'answer':9} {one['answer']}"]
