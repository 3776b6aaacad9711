"""Whether an answer makes the right calls: exact match after canonicalisation.

Calls are compared as a set where their order cannot matter to the device, arguments without
regard to their order, numbers by value (5 and 5.0 and "5" alike), texts without case, outer
spaces, outer quotes or a closing full stop. Nothing else is forgiven. Prose is right when
the wanted answer is the same prose, canonicalised likewise.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mezzotint import toolcall


@dataclass(frozen=True)
class Grade:
    """readable: the answer parses. tool: the right names. exact: the right calls, or prose."""

    readable: bool
    tool: bool
    exact: bool


def grade(answer: str, wanted: str) -> Grade:
    """How `answer` compares with the text `wanted`, which must itself be well formed."""
    gold = toolcall.parse(wanted)
    try:
        made = toolcall.parse(answer)
    except ValueError:
        return Grade(False, False, False)
    names = Counter(c.name for c in made) == Counter(c.name for c in gold)
    if not gold:
        return Grade(True, names, names and canonical(answer) == canonical(wanted))
    return Grade(True, names, canonical_calls(made) == canonical_calls(gold))


def canonical_calls(calls: Sequence[toolcall.Call]) -> Counter[str]:
    return Counter(
        json.dumps([call.name, canonical(call.arguments)], ensure_ascii=False, sort_keys=True)
        for call in calls
    )


def canonical(value: Any) -> Any:
    """A JSON value such that equal meanings are equal values."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", " ".join(value.split())).casefold()
        text = text.strip("\"'“”‘’ ").rstrip(".。")
        try:
            return _number(float(text))
        except ValueError:
            return text
    if isinstance(value, Mapping):
        return {key: canonical(item) for key, item in value.items()}
    return [canonical(item) for item in value]


def _number(value: float) -> str:
    try:
        return f"{value:.6g}"
    except OverflowError:  # a whole number that no float holds
        return str(hash(value))
