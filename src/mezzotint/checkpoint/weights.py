"""Tensors read one at a time, checked as they are read.

Presence and shapes are checked when a checkpoint is opened, from headers alone; values
are checked here, since only reading them can tell. It knows nothing of file formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.shape import Shape, tensor_shapes
from mezzotint.errors import DamagedModel

AGAIN = "Download the model again: the file is damaged or of another model."


@dataclass(frozen=True, slots=True)
class LazyWeights:
    """The `Weights` of a file: `read(name)` gives the array of a canonical name.

    Reading raises DamagedModel for NaN, infinity, or a shape other than `shapes[name]`.
    """

    path: Path
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], FloatArray]

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self.shapes:
            raise KeyError(name)
        array = np.ascontiguousarray(self.read(name), np.float32)
        if array.shape != self.shapes[name]:
            raise wrong_shape(self.path, name, array.shape, self.shapes[name])
        if not (np.isfinite(array.min()) and np.isfinite(array.max())):
            raise DamagedModel(f"{self.path.name}: tensor {name} holds NaN or infinity", AGAIN)
        return array

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)


def check_tensors(
    path: Path, shape: Shape, found: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The shapes `shape` asks for, if every tensor is in `found` with that shape.

    Raises DamagedModel naming the first tensor that is missing or of another shape.
    """
    if shape.heads % shape.kv_heads or shape.head_dim % 2:
        raise DamagedModel(
            f"{path.name}: {shape.heads} heads over {shape.kv_heads} KV heads of"
            f" {shape.head_dim} dimensions is no attention known here",
            AGAIN,
        )
    expected = tensor_shapes(shape)
    for name, size in expected.items():
        if name not in found:
            raise DamagedModel(f"{path.name}: tensor {name} {size} is missing", AGAIN)
        if found[name] != size:
            raise wrong_shape(path, name, found[name], size)
    return expected


def wrong_shape(
    path: Path, name: str, got: tuple[int, ...], expected: tuple[int, ...]
) -> DamagedModel:
    return DamagedModel(f"{path.name}: tensor {name} has shape {got}, expected {expected}", AGAIN)
