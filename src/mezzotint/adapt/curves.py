"""The curves of a run as a PNG, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mezzotint.atomic import replacing

PANELS = (
    ("loss in nats", ("ar", "masked")),
    ("held-out loss by mask rate", ("ar", "masked_0.3", "masked_0.6", "masked_0.999", "masked_1")),
    ("tokens", ("drafted", "tokens_per_pass")),
)


def draw(log: Sequence[dict[str, Any]], file: Path) -> None:
    """Write the picture of a log (see run.py); nothing without matplotlib or entries."""
    try:
        from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return
    figure = Figure(figsize=(14, 4), layout="constrained")
    for i, (title, names) in enumerate(PANELS):
        axes = figure.add_subplot(1, 3, i + 1, title=title, xlabel="thousand rows")
        for name in names:
            entries = [e for e in log if name in e and bool(e.get("eval")) == (i > 0)]
            if entries:
                x = [e["rows"] / 1e3 for e in entries]
                axes.plot(x, [e[name] for e in entries], label=name)
        if axes.lines:
            axes.legend()
    with replacing(file) as partial:
        figure.savefig(partial)
