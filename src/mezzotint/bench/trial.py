"""Which file type, and how many drafts, are llama.cpp's fastest here: a short trial, stated.

Candidates answer the same few tasks, warm, one after the other; the least sum of seconds
wins, right or wrong. So the yardstick is the fastest there is, not the most convenient. The
type is found once for a model, by its first arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mezzotint.bench.arms import Arm, Asked, LlamaSpec, Spec
from mezzotint.bench.turn import Opener, Prompt

TASKS = 4  # the first of them unmeasured


def settle(
    spec: Spec, opener: Opener, prompts: Sequence[Prompt], earlier: Sequence[dict[str, Any]]
) -> tuple[Spec, dict[str, Any] | None]:
    """The spec with one type and one number of drafts, and what its trial found, if it took one.

    earlier: what trials of this run, or of the run that is resumed, have found.
    """
    if not isinstance(spec, LlamaSpec):
        return spec, None
    for one in earlier:
        if one["model"] == spec.model and one["taken"][0] in spec.types:
            spec = spec.model_copy(update={"types": (one["taken"][0],)})
        if one["arm"] == spec.name:
            return _with(spec, *one["taken"]), None
    some = [_with(spec, kind, n) for kind in spec.types for n in spec.lookup or (0,)]
    if len(some) == 1:
        return some[0], None
    tried = [(seconds(opener, one, prompts[:TASKS]), one) for one in some]
    best = min(tried, key=lambda pair: pair[0])[1]
    found = {
        "arm": spec.name,
        "model": spec.model,
        "taken": _what(best),
        "tried": [[*_what(one), took] for took, one in tried],
        "tasks": max(len(prompts[:TASKS]) - 1, 1),
    }
    return best, found


def seconds(opener: Opener, spec: Spec, prompts: Sequence[Prompt]) -> float:
    """To the end of the turns of all prompts but the first, if there are more."""
    arm: Arm = opener.open(spec)
    took = []
    for prompt in prompts:
        asked = Asked(prompt.task, prompt.ids, prompt.lasting)
        arm.ready(asked)
        took.append(arm.run(asked).end)
    arm.close()
    return sum(took[1:] or took)


def _with(spec: LlamaSpec, kind: str, drafts: int) -> LlamaSpec:
    return spec.model_copy(update={"types": (kind,), "lookup": (drafts,) if drafts else ()})


def _what(spec: LlamaSpec) -> tuple[str, int]:
    return spec.types[0], spec.lookup[0] if spec.lookup else 0
