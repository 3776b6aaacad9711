"""Shares with intervals, and comparisons of arms on the same tasks. Knows numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Z = 1.96  # 95%, two-sided
DRAWS = 2000


def share(hits: Sequence[bool]) -> dict[str, float]:
    """A share with its 95% interval, after E. B. Wilson (1927): it holds for few and for all."""
    n, z = len(hits), Z
    p = sum(hits) / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return {"of": n, "share": p, "low": max(middle - half, 0.0), "high": min(middle + half, 1.0)}


def mcnemar(ours: Sequence[bool], theirs: Sequence[bool]) -> dict[str, float]:
    """Q. McNemar's test (1947) of two arms on the same tasks, exact and two-sided.

    won, lost: tasks that only the one or only the other did. p: the chance of a split as
    uneven, were both alike. points: the difference of their shares, in percentage points.
    """
    won = sum(a and not b for a, b in zip(ours, theirs, strict=True))
    lost = sum(b and not a for a, b in zip(ours, theirs, strict=True))
    n, least = won + lost, min(won, lost)
    tail = sum(math.comb(n, k) for k in range(least + 1)) / 2**n
    points = 100 * (won - lost) / max(len(ours), 1)
    return {"won": won, "lost": lost, "points": points, "p": min(2 * tail, 1.0)}


def speedup(theirs: Sequence[float], ours: Sequence[float], seed: int = 0) -> dict[str, float]:
    """The median over tasks of their time to ours, with its 95% interval by bootstrap over
    tasks (percentiles of DRAWS resamples); of_medians is the ratio of the two medians."""
    a, b = np.asarray(theirs, float), np.asarray(ours, float)
    ratios = a / b
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (DRAWS, len(ratios)))
    low, high = np.percentile(np.median(ratios[drawn], axis=1), [2.5, 97.5])
    return {
        "of": len(ratios),
        "median": float(np.median(ratios)),
        "low": float(low),
        "high": float(high),
        "of_medians": float(np.median(a) / np.median(b)),
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile; NaN for none."""
    if not len(values):
        return {"p50": math.nan, "p95": math.nan}
    low, high = np.percentile(np.asarray(values, float), [50, 95])
    return {"p50": float(low), "p95": float(high)}
