"""Whole states of a canvas, for clients that ask: what is settled, drafted and still masked."""

from __future__ import annotations

from typing import Any

import numpy as np

from mezzotint.canvas import DRAFT, MASKED, Canvas
from mezzotint.family import Regime
from mezzotint.generate import Model, Options, Step
from mezzotint.policy import MODES
from mezzotint.serve.deltas import Letters


def state(number: int, step: Step, settled: int, shown: list[dict[str, Any]]) -> dict[str, Any]:
    """The event of pass `number`. settled: the first of `shown` that never change."""
    return {
        "pass": number,
        "ms": round(1e3 * step.seconds, 3),
        "rows": step.rows,
        "settled": settled,
        "cells": shown,
    }


def cells(model: Model, canvas: Canvas, start: int, options: Options) -> list[dict[str, Any]]:
    """The answer's positions up to the last that is not masked, and the window's masks.

    A character of several tokens is shown at the last of them.
    """
    stop = min(len(canvas), start + options.max_tokens)
    open_ = np.flatnonzero(canvas.state[:stop] != MASKED)
    last = int(open_[-1]) + 1 if len(open_) else start
    shown: list[dict[str, Any]] = []
    letters = Letters(model.tokenizer.decode)
    for at in range(start, max(last, min(stop, canvas.settled + _window(model, options)))):
        if canvas.state[at] == MASKED:
            _finish(shown, letters.end())
            shown.append({"text": "", "state": "masked", "confidence": 0.0})
            continue
        kind = "draft" if canvas.state[at] == DRAFT else "written"
        text = letters.push([int(canvas.tokens[at])])
        sure = round(float(canvas.confidence[at]), 3)
        shown.append({"text": text, "state": kind, "confidence": sure})
    _finish(shown, letters.end())
    return shown


def _window(model: Model, options: Options) -> int:
    """Positions after the settled ones that a pass may write."""
    policy = options.policy or model.family.policy
    name = MODES.get(policy, policy).replace("_", "-")
    if model.family.regime is Regime.CAUSAL or name == "left-to-right":
        return 1
    return options.block or model.family.block or model.context


def _finish(shown: list[dict[str, Any]], rest: str) -> None:
    """Give a character that never came whole to the last cell."""
    if rest:
        shown[-1]["text"] += rest
