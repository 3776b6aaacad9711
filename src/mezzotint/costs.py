"""What a pass costs on this device: milliseconds against the rows M it computes.

Measured once for a model, its weights and this machine, in about half a second, and kept in
the store's folder. The shape of the curve, not its height, decides how to decode: where it is
flat, drafting is free, and where it rises with M, plain AR is as good.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Mapping
from statistics import median
from typing import Any, Protocol

import numpy as np

from mezzotint.atomic import replacing
from mezzotint.backend import Pass, Session, extend
from mezzotint.store import home

ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48)
PROMPT = 160  # cached rows before the pass: a short tool prompt
REPEATS = 7
Costs = Mapping[int, float]
"""Milliseconds of a pass by its rows."""


class Engine(Protocol):
    def session(self) -> Session: ...


def costs(engine: Engine, identity: Mapping[str, Any]) -> Costs:
    """The curve of `engine`, from the store if it was measured for this `identity`."""
    key = json.dumps({**identity, "machine": platform.machine(), "rows": ROWS}, sort_keys=True)
    file = home() / "costs" / (hashlib.sha256(key.encode()).hexdigest()[:16] + ".json")
    try:
        return {int(rows): ms for rows, ms in json.loads(file.read_text("utf-8")).items()}
    except (OSError, ValueError):
        found = measure(engine.session())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as partial:
            partial.write_text(json.dumps(found), "utf-8")
    except OSError:  # it is only measured anew next time
        pass
    return found


def measure(session: Session) -> Costs:
    """Medians of passes after a short prompt, all logits wanted, sizes in turns."""
    extend(session, np.arange(PROMPT, dtype=np.int32) % session.vocab)
    times: dict[int, list[float]] = {rows: [] for rows in ROWS}
    for turn in range(REPEATS + 1):  # the first warms up
        for rows in ROWS:
            at = np.arange(rows, dtype=np.int32)
            some = Pass(at % session.vocab, at + session.length)
            began = time.perf_counter()
            session.score(some, at)
            if turn:
                times[rows].append(1e3 * (time.perf_counter() - began))
    return {rows: median(some) for rows, some in times.items()}


def cost(curve: Costs, rows: float) -> float:
    """Milliseconds of a pass of that many rows, between the measured ones by a line."""
    at = sorted(curve)
    return float(np.interp(rows, at, [curve[n] for n in at]))
