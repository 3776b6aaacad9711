"""The safetensors container, one file or shards, read from memory maps.

The header is parsed here rather than by the `safetensors` package because NumPy has no
bfloat16. Every offset is checked against the file's size before it is believed; what
tensors mean is hf.py's matter.
"""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.weights import AGAIN
from mezzotint.errors import DamagedModel, ModelError

_WIDTH = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8}
_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies: bytes [start, stop) of `data`."""

    file: Path
    data: mmap.mmap
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    def read(self) -> FloatArray:
        """The tensor as float32."""
        if self.dtype not in _WIDTH:
            raise ModelError(
                f"{self.file.name} holds {self.dtype} tensors, not F32, F16, BF16 or F64",
                "Use the checkpoint's unquantised version, or a GGUF of it.",
            )
        count = (self.stop - self.start) // _WIDTH[self.dtype]
        if self.dtype == "BF16":  # the upper half of a float32
            half = np.frombuffer(self.data, "<u2", count, self.start)
            return (half.astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        kind = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[self.dtype]
        values = np.frombuffer(self.data, kind, count, self.start)
        return values.astype(np.float32).reshape(self.shape)


def open_safetensors(folder: Path) -> tuple[dict[str, Tensor], tuple[Path, ...]]:
    """All tensors of a folder by name, and the files they lie in.

    Raises DamagedModel for a missing shard or a file whose header and size disagree.
    """
    files = _files(folder)
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= _open_file(file)
    return tensors, files


def _files(folder: Path) -> tuple[Path, ...]:
    index = folder / _INDEX
    if index.is_file():
        shards = read_json(index).get("weight_map")
        if not isinstance(shards, dict) or not shards:
            raise DamagedModel(f"{index.name} has no weight_map", AGAIN)
        names = sorted({str(name) for name in shards.values()})
        if any(Path(name).name != name for name in names):
            raise DamagedModel(f"{index.name} names files outside its folder", AGAIN)
        files = tuple(folder / name for name in names)
    elif (folder / _SINGLE).is_file():
        files = (folder / _SINGLE,)
    else:
        raise DamagedModel(
            f"{folder} holds no {_SINGLE} and no {_INDEX}",
            "Only safetensors and GGUF weights are read; pickled .bin files are not.",
        )
    for file in files:
        if not file.is_file():
            raise DamagedModel(f"shard {file.name} is missing from {folder}", AGAIN)
    return files


def _open_file(file: Path) -> dict[str, Tensor]:
    size = file.stat().st_size
    with file.open("rb") as f:
        length = int.from_bytes(f.read(8), "little")
        if size < 8 or length > size - 8:
            raise DamagedModel(f"{file.name}: the header does not fit in {size} bytes", AGAIN)
        header = _parse(f.read(length), file.name)
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    header.pop("__metadata__", None)
    tensors = {name: _tensor(file, data, 8 + length, name, t) for name, t in header.items()}
    end = max((t.stop for t in tensors.values()), default=8 + length)
    if end != size:
        raise DamagedModel(f"{file.name} has {size} bytes, its header says {end}", AGAIN)
    return tensors


def _tensor(file: Path, data: mmap.mmap, base: int, name: str, entry: Any) -> Tensor:
    try:
        start, stop = (int(n) for n in entry["data_offsets"])
        shape = tuple(int(n) for n in entry["shape"])
        dtype = str(entry["dtype"])
    except (KeyError, TypeError, ValueError):
        raise DamagedModel(
            f"{file.name}: the header's entry of {name!r} is broken", AGAIN
        ) from None
    fits = dtype not in _WIDTH or stop - start == prod(shape) * _WIDTH[dtype]
    if not (0 <= start <= stop and fits and all(n >= 0 for n in shape)):
        raise DamagedModel(
            f"{file.name}: tensor {name!r} of shape {shape} lies in bytes {start} to {stop}", AGAIN
        )
    return Tensor(file, data, dtype, shape, base + start, base + stop)


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises DamagedModel if it is not one."""
    return _parse(file.read_bytes(), file.name)


def _parse(raw: bytes, name: str) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DamagedModel(f"{name} is not readable JSON: {error}", AGAIN) from None
    if not isinstance(value, dict):
        raise DamagedModel(f"{name} is not a JSON object", AGAIN)
    return value
