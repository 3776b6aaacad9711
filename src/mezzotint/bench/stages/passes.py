"""What a pass over M rows costs, ours against llama.cpp's, beside the roofline.

The floor of our pass is the larger of two: every packed weight is read once, and multiplied M
times; both at the ceilings that were measured on this machine.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from mezzotint.backend.native import NativeModel, measure_peaks
from mezzotint.bench.arms import LlamaSpec, OursSpec
from mezzotint.bench.engine import Case, Ours, alternate, elements, some_tokens
from mezzotint.bench.llama import LlamaCpp
from mezzotint.bench.run import Stand

ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
CACHED = 256


def passes(stand: Stand, turns: int) -> dict[str, Any] | None:
    """Milliseconds by rows; None without one arm of ours and one of llama.cpp."""
    ours = next((spec for spec in stand.specs if isinstance(spec, OursSpec)), None)
    theirs = next((spec for spec in stand.specs if isinstance(spec, LlamaSpec)), None)
    if ours is None or theirs is None:
        return None
    model = stand.opener.model(ours.model).engine
    assert isinstance(model, NativeModel)
    tokens = some_tokens(model.shape.vocab, CACHED + max(ROWS))
    baseline = LlamaCpp(stand.opener.file(theirs), tokens, len(tokens), model.threads)
    cases = [Case(rows, CACHED, None) for rows in ROWS]
    try:
        times = alternate(Ours(model.session(), tokens), baseline, cases, turns, quiet=True)
    finally:
        baseline.close()
    peaks, weights = measure_peaks(stand.plan.threads), sum(elements(model.shape))
    return {
        "rows": ROWS,
        "cached": CACHED,
        "ours": [median(times[case][0]) for case in cases],
        "llama": [median(times[case][1]) for case in cases],
        "ours_format": model.weights,
        "llama_format": theirs.types[0],
        "reading": 1e3 * model.packed_bytes / peaks["bandwidth"],
        "multiplying": [1e3 * 2 * weights * rows / peaks["int8_ops"] for rows in ROWS],
        "peaks": peaks,
    }
