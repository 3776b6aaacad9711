"""Which lines of a plan depend on a change: they alone are masked and written again.

A plan is text, a call a line. What a call brought, or what the user says later, changes a value;
the lines that hold that value, and are not made yet, go with it. All others stay where they are
on the canvas. This file knows calls; the writing is the writer's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mezzotint import toolcall
from mezzotint.agent import names
from mezzotint.agent.choose import Chooser
from mezzotint.agent.events import Span
from mezzotint.agent.ground import MOMENTS, Moments
from mezzotint.agent.tool import Tool
from mezzotint.agent.turn import Step
from mezzotint.agent.writer import Line
from mezzotint.toolcall import Call


def dependents(batch: Sequence[Step], step: Step, argument: str) -> list[Step]:
    """The step and those not made yet that have the same value as its `argument`."""
    value = step.call.arguments.get(argument)
    if value is None or isinstance(value, bool | int):
        return [step]
    return [s for s in batch if s is step or (not s.tried and value in s.call.arguments.values())]


def substituted(call: Call, old: object, argument: str, new: object) -> Call:
    """The call with a value replaced wherever it stands, and `argument` set if it is nowhere."""
    arguments = {n: new if old is not None and v == old else v for n, v in call.arguments.items()}
    if old is None:
        arguments[argument] = new
    return replace(call, arguments=arguments)


def affected(
    steps: Sequence[Step], tools: Sequence[Tool], correction: str, said: Moments, chooser: Chooser
) -> list[Step]:
    """The steps that a user's correction is about: those whose kind or whose names it speaks
    of; else those with a moment, if it says one; else all."""
    by_name = {tool.name: tool for tool in tools}
    words = set(names.words(correction))

    def named(step: Step) -> bool:
        texts = (v for v in step.call.arguments.values() if isinstance(v, str))
        known = {w for text in texts for w in names.words(text) if not w.isdigit()}
        return chooser.evident(by_name[step.call.name], correction) or bool(words & known)

    def dated(step: Step) -> bool:
        properties = by_name[step.call.name].parameters["properties"]
        return any(properties.get(n, {}).get("format") in MOMENTS for n in step.call.arguments)

    about = [step for step in steps if named(step)]
    if said:  # what it changes is a moment
        about = [step for step in about if dated(step)] or [s for s in steps if dated(s)] or about
    return about or list(steps)


def lines(
    steps: Sequence[Step], masked: Collection[Step], tools: Sequence[Sequence[Tool]]
) -> list[Line]:
    """The plan as a canvas: the lines that stay, and for each masked one what may be called."""
    again = iter(tools)
    return [next(again) if s in masked else toolcall.write([s.call]) for s in steps]


def spans(
    steps: Sequence[Step], before: Sequence[Call], masked: Collection[Step]
) -> tuple[Span, ...]:
    """The trace of a revision; the steps hold their new calls already."""
    pairs = zip(steps, before, strict=True)
    return tuple(Span(step.number, old, step.call, step in masked) for step, old in pairs)
