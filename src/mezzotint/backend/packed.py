"""Packed weights: the layout the native core computes on, and its cache on disk.

A cache file lies beside the model, named by what it holds: the digest of the source
files, the weight format and the layout's version. It is written to a temporary name,
flushed and renamed, so a reader sees a whole file or none; its own digest is checked on
every load, and a damaged one is packed anew.

    magic 8 bytes · header length uint64 · header JSON · padding · tensors at 64-byte steps
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.memory import split_weights
from mezzotint.checkpoint.shape import Shape, Weights
from mezzotint.errors import DamagedModel

MAGIC = b"MZPACK\x00\x01"  # the last byte is the layout's version
TILE = 32
READ_WHOLE = 1 << 30  # bytes; larger files are memory-mapped. What is read lies in huge pages,
# which a mapped file cannot: a pass of one token takes 6% less (docs/LOG.md).
Bytes = npt.NDArray[np.uint8]
Progress = Callable[[int, int], None]


class Source(Protocol):
    """What is packed: a checkpoint."""

    @property
    def shape(self) -> Shape: ...
    @property
    def weights(self) -> Weights: ...
    @property
    def files(self) -> tuple[Path, ...]: ...


@dataclass(frozen=True, slots=True)
class Formats:
    """Formats of the linear layers, of embedding and head, and whether KV is bf16.

    The strings are those of `mezzotint._core.Format`: F32, BF16, Q8, Q6, Q4.
    """

    linear: str
    head: str
    bf16_kv: bool

    @classmethod
    def of(cls, weights: str) -> Self:
        """From "int4", "int8/bf16", …; see `split_weights`, which raises UsageError."""
        linear, head = split_weights(weights)
        return cls(_CODES[linear], _CODES[head], linear != "fp32")


_CODES = {"int4": "Q4", "int8": "Q8", "int6": "Q6", "bf16": "BF16", "fp32": "F32"}


@dataclass(frozen=True, slots=True)
class Packed:
    """All tensors in one buffer; `layout` gives each one's offset in bytes.

    digest: of the tensors, in hex.
    """

    data: Bytes
    layout: dict[str, int]
    digest: str


def packed(
    source: Source,
    weights: str,
    pack: Callable[[FloatArray, str], Bytes],
    progress: Progress | None = None,
    cache: bool = True,
) -> Packed:
    """The packed weights of `source`, from the cache if it holds them.

    `pack(matrix, format)` packs one (out, in) matrix. `progress(done, total)` counts
    tensors. Without room or permission for a cache file the result is in memory.
    """
    formats = Formats.of(weights)
    if not cache:
        return _in_memory(source, formats, pack, progress)
    file = _cache_file(source.files, weights)
    if (found := _open(file)) is not None:
        return found
    try:
        _write(file, source, formats, pack, progress)
    except OSError:  # read-only folder or full disk: the model still runs
        return _in_memory(source, formats, pack, progress)
    if (written := _open(file)) is None:
        raise DamagedModel(f"{file.name} was damaged as it was written", "Check the disk.")
    return written


def _tensors(source: Source, formats: Formats) -> Iterator[tuple[str, FloatArray, str]]:
    """(name, array, format) as the core wants them: q/k/v in one matrix, gate and up by
    turns of a tile, so that one thread has both halves of the product silu(gate)·up."""
    shape, w = source.shape, source.weights
    yield "embed", w["embed"], formats.head
    if not shape.tied:
        yield "head", w["head"], formats.head
    yield "norm", w["norm"], ""
    for i in range(shape.layers):
        at = f"layers.{i}."
        yield at + "attn_norm", w[at + "attn_norm"], ""
        yield at + "qkv", np.concatenate([w[at + n] for n in "qkv"]), formats.linear
        if shape.qkv_bias:
            yield at + "qkv_bias", np.concatenate([w[at + f"{n}_bias"] for n in "qkv"]), ""
        for name in ("q_norm", "k_norm") if shape.qk_norm else ():
            yield at + name, w[at + name], ""
        yield at + "o", w[at + "o"], formats.linear
        yield at + "ffn_norm", w[at + "ffn_norm"], ""
        halves = [w[at + n].reshape(-1, TILE, shape.hidden) for n in ("gate", "up")]
        yield at + "gate_up", np.stack(halves, 1).reshape(-1, shape.hidden), formats.linear
        yield at + "down", w[at + "down"], formats.linear


def _pack_to(
    file: IO[bytes],
    source: Source,
    formats: Formats,
    pack: Callable[[FloatArray, str], Bytes],
    progress: Progress | None,
) -> tuple[dict[str, int], str]:
    """Writes every tensor at a 64-byte step from where `file` stands; (layout, digest)."""
    layout: dict[str, int] = {}
    digest, offset = hashlib.blake2b(digest_size=16), 0
    total = 3 + 7 * source.shape.layers
    for name, array, form in _tensors(source, formats):
        blob = pack(array, form) if form else np.ascontiguousarray(array).view(np.uint8)
        layout[name] = offset
        padded = blob.tobytes() + bytes(-blob.nbytes % 64)
        file.write(padded)
        digest.update(padded)
        offset += len(padded)
        if progress:
            progress(min(len(layout), total), total)
    if source.shape.tied:
        layout["head"] = layout["embed"]
    return layout, digest.hexdigest()


def _write(
    file: Path,
    source: Source,
    formats: Formats,
    pack: Callable[[FloatArray, str], Bytes],
    progress: Progress | None,
) -> None:
    file.parent.mkdir(exist_ok=True)
    room = 4096 + 256 * source.shape.layers * 16
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".tmp", delete=False) as out:
        try:
            out.write(bytes(room))
            layout, digest = _pack_to(out, source, formats, pack, progress)
            header = json.dumps({"layout": layout, "digest": digest}).encode()
            out.seek(0)
            out.write(MAGIC + np.uint64(room).tobytes() + header)
            out.flush()
            os.fsync(out.fileno())
            os.replace(out.name, file)
        except BaseException:  # Ctrl-C included: nothing half-written stays
            Path(out.name).unlink(missing_ok=True)
            raise


def _in_memory(
    source: Source,
    formats: Formats,
    pack: Callable[[FloatArray, str], Bytes],
    progress: Progress | None,
) -> Packed:
    with tempfile.TemporaryFile() as out:
        layout, digest = _pack_to(out, source, formats, pack, progress)
        size = out.tell()
        out.seek(0)
        return Packed(_read(out, size), layout, digest)


def _read(file: IO[bytes], size: int) -> Bytes:
    """The next `size` bytes, from a 64-byte boundary on: no vector crosses a cache line."""
    space = np.empty(size + 64, np.uint8)
    start = -space.ctypes.data % 64
    data = space[start : start + size]
    if file.readinto(data.data) != size:  # type: ignore[attr-defined]
        raise ValueError(f"the file ends before {size} bytes")
    return data


def _open(file: Path) -> Packed | None:
    """The cache file's tensors; None if there is none or it is damaged."""
    try:
        with file.open("rb") as f:
            if f.read(8) != MAGIC:
                return None
            room = int(np.frombuffer(f.read(8), np.uint64)[0])
            header: dict[str, Any] = json.loads(f.read(room - 16).rstrip(b"\x00"))
            size = file.stat().st_size - room
            data = np.memmap(f, np.uint8, "r", room) if size > READ_WHOLE else _read(f, size)
        if hashlib.blake2b(data.data, digest_size=16).hexdigest() != header["digest"]:
            return None
        return Packed(data, header["layout"], header["digest"])
    except (OSError, ValueError, KeyError, IndexError, OverflowError):
        return None


def _cache_file(files: tuple[Path, ...], weights: str) -> Path:
    folder = files[0].parent / ".mezzotint"
    key = hashlib.sha256(b"".join(_digest(f, folder) for f in files) + MAGIC).hexdigest()[:24]
    return folder / f"{key}.{'-'.join(split_weights(weights))}.pack"


def _digest(file: Path, folder: Path) -> bytes:
    """sha256 of a file; remembered by its size and time of change, for large models."""
    stat = file.stat()
    place = hashlib.sha256(str(file.absolute()).encode()).hexdigest()[:12]
    note = folder / f"{file.name}.{place}.sha256"  # two adapters may have one name
    stamp = f"{stat.st_size} {stat.st_mtime_ns}"
    try:
        known, _, digest = note.read_text().rpartition(" ")
        if known == stamp:
            return bytes.fromhex(digest)
    except (OSError, ValueError):
        pass
    with file.open("rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".tmp", delete=False) as out:
            out.write(f"{stamp} {digest}")
        os.replace(out.name, note)
    except OSError:
        pass
    return bytes.fromhex(digest)
