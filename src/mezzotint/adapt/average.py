"""Two adapters of one ancestor, averaged: what each has learnt since, in one.

Weights that went on from the same ones lie in one basin, and their mean is often better than
either (model soups, arXiv 2203.05482). Means are of the low-rank factors themselves, which is no
mean of the merged weights; that they still fit is the ancestor's doing.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from mezzotint.adapt.save import write_json, write_tensors
from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.adapter import ABOUT, CONFIG, TENSORS
from mezzotint.errors import UsageError


def average(first: Path, second: Path, out: Path, share: float) -> None:
    """Write to `out` the adapter (1 − share) · first + share · second, and which they were.

    Raises UsageError if one cannot be read, or they are of other forms.
    """
    (one, about), (other, other_about) = _read(first), _read(second)
    shapes = [{name: x.shape for name, x in tensors.items()} for tensors in (one, other)]
    same = all(about.get(key) == other_about.get(key) for key in ("base", "mode", "mask_id"))
    if shapes[0] != shapes[1] or not same:
        raise UsageError(f"{first} and {second} are of other forms", "one must come from the other")
    mean = {n: (1 - share) * one[n] + share * other[n] for n in one}
    out.mkdir(parents=True, exist_ok=True)
    write_tensors(out / TENSORS, mean)
    if out.resolve() != second.resolve():
        shutil.copyfile(second / CONFIG, out / CONFIG)
    kept = {key: value for key, value in other_about.items() if key != "ways"}
    write_json(out / ABOUT, kept | {"average": {"with": about, "share": share}})


def _read(folder: Path) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    try:
        tensors = {n: x.astype(np.float32) for n, x in load_file(folder / TENSORS).items()}
        return tensors, json.loads((folder / ABOUT).read_text("utf-8"))
    except (OSError, ValueError, SafetensorError) as error:
        raise UsageError(f"{folder} holds no adapter: {error}") from None
