"""Tokens a pass against success, as the thresholds and the window of drafting move.

Unverified drafts trade one for the other, and so do those kept though AR doubts them; verified
ones keep the text, and so the success, of AR whatever their window. Each point answers the same
tasks, warm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mezzotint.bench.arms import OursSpec, Spec
from mezzotint.bench.energy import Meter
from mezzotint.bench.run import Stand
from mezzotint.bench.stats import share, spread
from mezzotint.bench.turn import turn

LEADING = tuple(f"leading:{theta}" for theta in (0.5, 0.7, 0.9, 0.95))
LENIENT = tuple(f"refine:keep={keep}" for keep in (0.5, 0.3, 0.1, 0.03))
WINDOWS = (4, 8, 16)


def sweep(
    stand: Stand, policies: Sequence[str] = (*LEADING, *LENIENT), tasks: int = 60
) -> list[dict[str, Any]] | None:
    """One entry a point; None without a model that drafts."""
    named = (spec for spec in stand.specs if isinstance(spec, OursSpec))
    spec = next((s for s in named if stand.opener.model(s.model).family.diffusion), None)
    if spec is None:
        return None
    block = stand.opener.model(spec.model).family.block
    points: list[tuple[str, int | None, bool]] = [("ar", None, False)]
    points += [(policy, block, structure) for structure in (False, True) for policy in policies]
    points += [("exact", window, structure) for structure in (False, True) for window in WINDOWS]
    return [
        _point(stand, spec, policy, window, structure, tasks)
        for policy, window, structure in points
    ]


def _point(
    stand: Stand, like: OursSpec, policy: str, block: int | None, structure: bool, tasks: int
) -> dict[str, Any]:
    told = {"policy": policy, "block": block, "structure": structure, "infill": False}
    spec: Spec = like.model_copy(update=told)
    arm, meter = stand.opener.open(spec), Meter()
    step = max(len(stand.prompts) // tasks, 1)
    rows = [turn(p, policy, arm, True, stand.count, meter) for p in stand.prompts[::step][:tasks]]
    arm.close()
    passes = sum(row.passes for row in rows)
    return told | {
        "success": share([row.right for row in rows]),
        "tokens_per_pass": sum(row.tokens for row in rows) / max(passes, 1),
        "wait": spread([row.wait for row in rows if not row.error]),
    }
