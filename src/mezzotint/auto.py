"""Which way of decoding is fastest here: the model's acceptance against the device's costs.

An adapter says what each way reaches on validation prompts (tokens and rows a pass, answers
right); `costs` says what a pass of so many rows takes. The quotient is a time for a token.
Ways that answer worse than AR by more than a point do not stand for choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mezzotint.costs import Costs, cost
from mezzotint.family import Family

MARGIN = 0.01  # of answers, that a way may be worse than AR by


@dataclass(frozen=True, slots=True)
class Way:
    """A policy with a window length, and what they reached on validation prompts.

    right: share of answers that are exactly right. rows, tokens: of a pass, means.
    """

    policy: str
    block: int
    tokens: float
    rows: float
    right: float

    def time(self, curve: Costs) -> float:
        """Milliseconds for a token on the device of `curve`."""
        return cost(curve, self.rows) / self.tokens


def ways(curve: Sequence[Mapping[str, Any]]) -> list[Way]:
    """The ways that an adapter's mezzotint.json lists under "ways"; AR comes first."""
    return [Way(**way) for way in curve]


def choose(some: Sequence[Way], curve: Costs) -> Way:
    """The fastest of them that answers as well as the first, which is AR."""
    good = [way for way in some if way.right >= some[0].right - MARGIN]
    return min(good, key=lambda way: way.time(curve))


def settled(family: Family, way: Way) -> Family:
    """`family`, decoded that way unless it is asked otherwise."""
    return replace(family, policy=way.policy, block=way.block or family.block)
