"""Time to a valid action against the length of the prompt.

A real task is made longer by showing tools of other tasks beside its own, until the prompt has
the length; every arm answers it, cold and warm. What the answer's own length does is read off
the rows of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mezzotint import toolcall
from mezzotint.bench.arms import LlamaSpec, Spec
from mezzotint.bench.energy import Meter
from mezzotint.bench.run import Stand
from mezzotint.bench.stats import spread
from mezzotint.bench.tasks import Message, Task
from mezzotint.bench.turn import Prompt, prompt_of, turn

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
TASKS = 3
ROOM = 1024  # positions beside the prompt


def lengths(stand: Stand) -> list[dict[str, Any]]:
    """By length and arm: medians of the wait, of prefill, and of the prompt's tokens."""
    spell = stand.spell
    tasks = [p.task for p in stand.prompts if p.task.tools and len(p.ids) <= 2 * LENGTHS[0]]
    others = list(_lines(tasks))
    found = []
    for spec in map(_roomy, stand.specs):
        arm, meter = stand.opener.open(spec), Meter()
        for length in LENGTHS:
            some = [longer(task, length, others, spell) for task in tasks[:TASKS]]
            for warm in (False, True):
                rows = [turn(p, spec.name, arm, warm, stand.count, meter) for p in some]
                timed = [row for row in rows if not row.error]
                found.append(
                    {
                        "arm": spec.name,
                        "length": length,
                        "warm": warm,
                        "tokens": spread([row.prompt_tokens for row in rows])["p50"],
                        "wait": spread([row.wait for row in timed])["p50"],
                        "prefill": spread([row.prefill for row in timed])["p50"],
                        "right": sum(row.right for row in rows),
                        "of": len(rows),
                    }
                )
        arm.close()
    return found


def _roomy(spec: Spec) -> Spec:
    if isinstance(spec, LlamaSpec):
        return spec.model_copy(update={"context": LENGTHS[-1] + ROOM})
    return spec


def _lines(tasks: Sequence[Task]) -> Iterator[str]:
    """Each tool of the tasks once, as the prompt shows it."""
    seen = set()
    for task in tasks:
        for tool in task.tools:
            name = toolcall.function(tool)["name"]
            if name not in seen:
                seen.add(name)
                yield toolcall.signature(tool)


def longer(
    task: Task, length: int, lines: Sequence[str], spell: Callable[[Sequence[Message]], list[int]]
) -> Prompt:
    """The task with as many more tools as bring its prompt nearest below `length` tokens."""
    first, *rest = task.messages
    head, _, own = first["content"].partition("\n")
    extra = [line for line in lines if line not in own]

    def shown(count: int) -> tuple[Message, ...]:
        content = "\n".join([head, *extra[:count], own])
        return ({**first, "content": content}, *rest)

    low, high = 0, len(extra)
    while low < high:
        middle = (low + high + 1) // 2
        if len(spell(shown(middle))) <= length:
            low = middle
        else:
            high = middle - 1
    return prompt_of(replace(task, messages=shown(low)), spell)
