"""The models that come with the package: an adapter over a base that is pulled.

`hybrid` is what commands use by default. What it is: docs/model-card.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT = "hybrid"


@dataclass(frozen=True, slots=True)
class Builtin:
    """base: a name that can be pulled. folder: where the adapter lies."""

    base: str
    folder: Path
    about: str
    licence: str = "Apache-2.0"


_ADAPTERS = Path(__file__).parent / "adapters"

BUILTIN = {
    "hybrid": Builtin(
        "smollm2-135m", _ADAPTERS / "hybrid", "SmolLM2-135M adapted to act, and to denoise"
    ),
    "twin": Builtin(
        "smollm2-135m", _ADAPTERS / "twin", "hybrid's control: the same samples, next token alone"
    ),
}
