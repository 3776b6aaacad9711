"""How many positions a step reveals: schedules shared by decoding and training.

A masked diffusion process has a mask rate t that falls from 1 to 0. Decoding reads from
it how many holes a step fills; training draws t and masks that share of the text. Pure
numbers: no tokens, no logits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def even(total: int, steps: int) -> list[int]:
    """Holes to fill at each of `steps` steps: total // steps, the remainder to the first ones.

    steps = 0 means one hole a step. (LLaDA, `get_num_transfer_tokens`.)

    >>> even(7, 3)
    [3, 2, 2]
    """
    steps = steps or max(total, 1)
    base, extra = divmod(total, steps)
    return [base + (i < extra) for i in range(steps)]


def times(steps: int, eps: float = 1e-3) -> npt.NDArray[np.float64]:
    """Mask rates t (steps + 1,) from 1 down to eps (Dream)."""
    return np.linspace(1.0, eps, steps + 1)


def reveal(step: int, steps: int, eps: float = 1e-3) -> float:
    """Share of the masked positions to reveal at `step`: 1 − s/t, and all at the last (Dream)."""
    if step >= steps - 1:
        return 1.0
    t = times(steps, eps)
    return float(1.0 - t[step + 1] / t[step])


def mask_rate(t: float, eps: float = 1e-3) -> float:
    """Training mask rate p = (1 − eps)·t + eps for t uniform in (0, 1) (LLaDA)."""
    return (1.0 - eps) * t + eps
