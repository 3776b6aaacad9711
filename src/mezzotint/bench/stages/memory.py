"""Peak memory and load time of each arm, on the longest prompt of the run."""

from __future__ import annotations

from typing import Any

from mezzotint.bench.arms import Asked, OpenaiSpec
from mezzotint.bench.arms.alone import alone
from mezzotint.bench.run import Stand


def memory(stand: Stand) -> dict[str, Any]:
    """By arm, what `arms.alone` tells; nothing of a server."""
    longest = max(stand.prompts, key=lambda prompt: len(prompt.ids))
    asked = Asked(longest.task, longest.ids)
    found = {
        spec.name: alone(spec, asked, stand.plan.threads)
        for spec in stand.specs
        if not isinstance(spec, OpenaiSpec)
    }
    return {"arms": found, "prompt_tokens": len(longest.ids)}
