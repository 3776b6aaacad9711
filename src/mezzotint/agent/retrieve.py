"""Which tools a request speaks of, learnt from requests: a linear model over words.

`mezzotint adapt tools` makes retrieve.npz beside this file from training samples. It knows the
built-in tools alone; of others it says nothing, and their own words decide (see choose).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

FILE = "retrieve.npz"
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[㐀-鿿]")
_STEM = 5  # letters that words of a kind share: "reschedule", "rescheduling"


@dataclass(frozen=True, eq=False)
class Retriever:
    """names (T,): tools. index: feature → its row. weights (F, T) int8, times scale (T,)."""

    names: tuple[str, ...]
    index: Mapping[str, int]
    weights: npt.NDArray[np.int8]
    scale: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]

    @classmethod
    def read(cls, file: Path) -> Retriever:
        with np.load(file) as held:
            index = {word: i for i, word in enumerate(held["features"].tolist())}
            return cls(
                tuple(held["names"].tolist()), index, held["weights"], held["scale"], held["bias"]
            )

    def odds(self, request: str) -> dict[str, float]:
        """ln p/(1 − p) of each tool being needed."""
        rows = [self.index[f] for f in features(request) if f in self.index]
        total = self.weights[rows].sum(axis=0, dtype=np.float32) * self.scale + self.bias
        return dict(zip(self.names, total.tolist(), strict=True))


def features(text: str) -> list[str]:
    """Words (Chinese: characters), stems of long words, and pairs of neighbours; each once."""
    words = ["#" if word.isdigit() else word for word in _WORD.findall(text.lower())]
    stems = [f"{word[:_STEM]}~" for word in words if len(word) > _STEM]
    pairs = [" ".join(pair) for pair in pairwise(words)]
    return list(dict.fromkeys([*words, *stems, *pairs]))


@cache
def builtin() -> Retriever:
    """The one that ships."""
    return Retriever.read(Path(str(files(__package__) / FILE)))
