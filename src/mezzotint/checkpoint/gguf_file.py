"""The GGUF container: metadata, and tensors read from a memory map.

It knows the byte layout (GGUF 2 and 3, little-endian) and checks every length against
the file's size before believing it; what keys and tensors mean is gguf.py's matter.
Quantised blocks are decoded by the `gguf` package.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.weights import AGAIN
from mezzotint.errors import DamagedModel, ModelError

# GGUF value type -> NumPy type; 8 is a string and 9 an array.
_NUMBERS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4",
    7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies. `shape` is in NumPy order; `kind` is a GGML type number."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int
    size: int


@dataclass(frozen=True)
class GgufFile:
    """Metadata by key (numbers, strings, lists, arrays) and tensors by name."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]
    data: mmap.mmap

    def read(self, name: str) -> FloatArray:
        """The tensor as float32, dequantised. Raises ModelError for a type not known."""
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        tensor = self.tensors[name]
        raw = np.frombuffer(self.data, np.uint8, tensor.size, tensor.offset)
        kind = GGMLQuantizationType(tensor.kind)
        try:
            values = dequantize(raw.reshape(*tensor.shape[:-1], -1), kind)
        except NotImplementedError:
            raise ModelError(
                f"{self.path.name}: tensor {name} is quantised as {kind.name}, not readable here",
                "Use F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K.",
            ) from None
        return np.asarray(values, np.float32)


class _Reader:
    """A cursor that never leaves the file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self.data, self.at = path, data, 0

    def damaged(self, what: str) -> DamagedModel:
        return DamagedModel(f"{self.path.name}: {what} (at byte {self.at})", AGAIN)

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise self.damaged(f"the header wants {count} bytes more than the file has")
        self.at += count
        return self.data[self.at - count : self.at]

    def u32(self) -> int:
        return int(struct.unpack("<I", self.take(4))[0])

    def u64(self) -> int:
        return int(struct.unpack("<Q", self.take(8))[0])

    def string(self) -> str:
        try:
            return self.take(self.u64()).decode()
        except UnicodeDecodeError:
            raise self.damaged("a string in the header is not UTF-8") from None

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array(self.u32(), self.u64())
        if kind not in _NUMBERS:
            raise self.damaged(f"unknown value type {kind}")
        return np.frombuffer(self.take(np.dtype(_NUMBERS[kind]).itemsize), _NUMBERS[kind])[0].item()

    def array(self, kind: int, count: int) -> Any:
        if kind in _NUMBERS:
            width = np.dtype(_NUMBERS[kind]).itemsize
            return np.frombuffer(self.take(width * count), _NUMBERS[kind])
        if kind != _STRING:
            raise self.damaged(f"arrays of value type {kind} are not known")
        return [self.string() for _ in range(count)]


def open_gguf_file(path: Path) -> GgufFile:
    """Read the header of a GGUF file; its tensors stay on disk until they are read.

    Raises DamagedModel for a truncated or inconsistent file.
    """
    with path.open("rb") as file:
        if path.stat().st_size < 24 or file.read(4) != b"GGUF":
            raise DamagedModel(f"{path.name} is not a GGUF file, or only its first bytes", AGAIN)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = _Reader(path, data)
    reader.at = 4
    version = reader.u32()
    if version not in (2, 3):
        raise reader.damaged(f"GGUF version {version} is not 2 or 3, or the file is big-endian")
    tensor_count, key_count = reader.u64(), reader.u64()
    metadata = {}
    for _ in range(key_count):
        key = reader.string()
        metadata[key] = reader.value(reader.u32())
    infos = [_tensor_info(reader) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise reader.damaged(f"alignment {alignment!r} is not a positive number")
    start = -(-reader.at // alignment) * alignment
    tensors = {info[0]: _place(reader, start, *info) for info in infos}
    return GgufFile(path, metadata, tensors, data)


def _tensor_info(reader: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    name = reader.string()
    count = reader.u32()
    if not 1 <= count <= 4:
        raise reader.damaged(f"tensor {name!r} has {count} dimensions, expected 1 to 4")
    shape = tuple(reader.u64() for _ in range(count))[::-1]
    return name, shape, reader.u32(), reader.u64()


def _place(
    reader: _Reader, start: int, name: str, shape: tuple[int, ...], kind: int, offset: int
) -> Tensor:
    from gguf import GGML_QUANT_SIZES

    sizes: dict[int, tuple[int, int]] = {int(k): v for k, v in GGML_QUANT_SIZES.items()}
    if kind not in sizes:
        raise reader.damaged(f"tensor {name!r} has unknown type {kind}")
    block, width = sizes[kind]
    if shape[-1] % block:
        raise reader.damaged(f"tensor {name!r} has rows of {shape[-1]}, not a multiple of {block}")
    size = int(np.prod([int(n) for n in shape], dtype=object)) // block * width
    if start + offset + size > len(reader.data):
        raise reader.damaged(f"tensor {name!r} ends past the end of the file: it is truncated")
    return Tensor(name, shape, kind, start + offset, size)
