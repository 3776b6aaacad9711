"""Logits of known confidence, for traces worked out by hand."""

from collections.abc import Callable

import numpy as np

from mezzotint.backend.toy import ToySession
from mezzotint.canvas import Canvas
from mezzotint.decode import decode
from mezzotint.plan import Plan
from mezzotint.policy import Policy

MASK = 4  # vocabulary: tokens 0…3 and the mask
Row = tuple[int, float]  # the likeliest token, and its probability


def spread(token: int, p: float) -> np.ndarray:
    """Logits (5,): `token` has probability p, the other three share the rest equally."""
    return _logs([p if t == token else (1 - p) / 3 for t in range(4)])


def pair(token: int, p: float) -> np.ndarray:
    """Logits (5,): `token` has probability p, the next one all the rest."""
    return _logs([p if t == token else (1 - p) * (t == (token + 1) % 4) for t in range(4)])


def _logs(p: list[float]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array([*p, 0.0])).astype(np.float32)


def session(rows: dict[int, np.ndarray]) -> ToySession:
    """A session whose row at position p always has the logits rows[p]."""
    blank = np.zeros(5, np.float32)
    return ToySession(5, logits=lambda p: rows.get(p, blank))


def trace(
    rows: dict[int, np.ndarray],
    canvas: Canvas,
    plan: Plan,
    policy: Policy,
    make: Callable[[dict[int, np.ndarray]], ToySession] = session,
) -> list[list[tuple[int, int]]]:
    """Per pass, the (position, token) pairs it wrote, by position."""
    return [
        sorted(zip(s.edit.positions.tolist(), s.edit.tokens.tolist(), strict=True))
        for s in decode(make(rows), canvas, plan, policy)
    ]
