"""The C++ CPU core as a backend: packed weights in, logits out, batch invariant to the bit.

It knows threads, kernels and weight formats; the arithmetic is in csrc/.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from mezzotint import _core
from mezzotint.backend import Pass
from mezzotint.backend.packed import Bytes, Formats, Packed, Progress, Source, packed
from mezzotint.canvas import FloatArray, IntArray
from mezzotint.checkpoint.shape import Shape, rope_table
from mezzotint.errors import DamagedModel, TooLarge, UsageError

_CAUSAL, _FULL, _MATRIX = 0, 1, 2


def physical_cores() -> int:
    """Physical cores this process may run on (hyper-threads share one vector unit)."""
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
    cores = set()
    for cpu in allowed:
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            names = ("physical_package_id", "core_id")
            cores.add(tuple((topology / name).read_text() for name in names))
        except OSError:
            return len(allowed)
    return max(len(cores), 1)


@cache
def _pool(threads: int) -> _core.Pool:
    """One pool for each count: engines of one process take turns and never deadlock."""
    return _core.Pool(threads)


def pool(threads: int = 0) -> _core.Pool:
    """The thread pool; 0 means one thread a physical core. Raises UsageError outside 0..256."""
    if not 0 <= threads <= 256:
        raise UsageError(f"threads must be 0 (one a core) to 256, got {threads}")
    return _pool(threads or physical_cores())


@dataclass(frozen=True)
class NativeModel:
    """Weights packed for the core. `session()` opens a KV cache over them."""

    shape: Shape
    weights: str
    kernels: str
    threads: int
    packed_bytes: int
    digest: str
    _model: _core.Model

    @classmethod
    def load(
        cls,
        source: Source,
        weights: str = "int4",
        threads: int = 0,
        kernels: str = "",
        cache: bool = True,
        progress: Progress | None = None,
    ) -> Self:
        """Pack (or map the cached) weights of a checkpoint.

        weights: "int4" (int8 embedding and head), "int6", "int8", "bf16" or "fp32"; "int8/bf16"
            names embedding and head apart. Integers are in groups of 32.
        kernels: an instruction set of `kernel_names()`; "" takes the best.
        Raises UsageError for an unknown choice, DamagedModel for sizes the core cannot
        take, TooLarge when memory runs out.
        """
        Formats.of(weights)
        if kernels and kernels not in kernel_names():
            raise UsageError(
                f"kernels {kernels!r}: this processor runs {', '.join(kernel_names())}"
            )
        _check_sizes(source.shape)
        workers = pool(threads)

        def pack(matrix: FloatArray, form: str) -> Bytes:
            return _core.pack(np.ascontiguousarray(matrix), _core.Format[form], workers)

        try:
            found = packed(source, weights, pack, progress, cache)
            model = _build(source.shape, found, weights, kernels, workers)
        except MemoryError:
            raise TooLarge("not enough memory to load the model") from None
        name = kernels or kernel_names()[0]
        return cls(
            source.shape, weights, name, workers.threads, found.data.nbytes, found.digest, model
        )

    def session(self) -> NativeSession:
        return NativeSession(_core.Session(self._model), self.shape)

    def score_many(
        self,
        sessions: Sequence[NativeSession],
        passes: Sequence[Pass],
        wants: Sequence[IntArray],
    ) -> list[FloatArray]:
        """See the function of that name."""
        return score_many(sessions, passes, wants)

    @property
    def identity(self) -> dict[str, Any]:
        """What the time of a pass depends on, besides the machine."""
        return {
            "weights": self.weights,
            "kernels": self.kernels,
            "threads": self.threads,
            "bytes": self.packed_bytes,
            "layers": self.shape.layers,
        }

    @property
    def kv_bytes_per_token(self) -> int:
        each = 2 if Formats.of(self.weights).bf16_kv else 4
        return 2 * each * self.shape.layers * self.shape.kv_heads * self.shape.head_dim


def _check_sizes(shape: Shape) -> None:
    sizes = {"hidden": shape.hidden, "ffn": shape.ffn, "head_dim": shape.head_dim}
    for name, size in sizes.items():
        if size <= 0 or size % 32:
            raise DamagedModel(
                f"{name} is {size}: the native engine takes multiples of 32",
                "Run it with --backend reference (needs the torch extra).",
            )


def _build(
    shape: Shape, found: Packed, weights: str, kernels: str, workers: _core.Pool
) -> _core.Model:
    formats = Formats.of(weights)
    inverse_frequency, factor = rope_table(shape.rope, shape.head_dim)
    spec = {
        name: getattr(shape, name)
        for name in ("vocab", "hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "rms_eps")
    }
    spec |= {
        "rope_factor": factor,
        "bf16_kv": formats.bf16_kv,
        "kernels": kernels,
        "format": _core.Format[formats.linear].value,
        "head_format": _core.Format[formats.head].value,
    }
    return _core.build(found.data, found.layout, spec, inverse_frequency, workers)


class NativeSession:
    """`mezzotint.backend.Session` on the core: KV in pages that forks share."""

    def __init__(self, core: _core.Session, shape: Shape) -> None:
        self._core = core
        self._shape = shape
        self._positions: IntArray = np.empty(0, np.int32)

    @property
    def length(self) -> int:
        return self._core.length

    @property
    def vocab(self) -> int:
        return self._shape.vocab

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        """See `Session.score`. Raises UsageError for a bad row, TooLarge without memory."""
        return score_many([self], [rows], [want])[0]

    def keep(self, count: int) -> None:
        expected = np.arange(self.length, self.length + count)
        if not np.array_equal(self._positions[:count], expected):
            raise UsageError(f"keep({count}): the last pass had no such rows from {self.length} on")
        try:
            self._core.keep(count)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._positions = np.empty(0, np.int32)

    def truncate(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise UsageError(f"truncate({length}): must be 0 to {self.length}")
        self._core.truncate(length)
        self._positions = np.empty(0, np.int32)

    def save(self) -> Bytes:
        """The cached rows as bytes, for `restore` in a session of the same packed model."""
        return self._core.save()

    def restore(self, data: Bytes, length: int) -> None:
        """Hold the `length` rows that `save` gave. Raises UsageError if their size is not right."""
        try:
            self._core.restore(np.ascontiguousarray(data, np.uint8), length)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._positions = np.empty(0, np.int32)

    def fork(self) -> NativeSession:
        return NativeSession(self._core.fork(), self._shape)


def score_many(
    sessions: Sequence[NativeSession], passes: Sequence[Pass], wants: Sequence[IntArray]
) -> list[FloatArray]:
    """One pass for different sessions of one model: the logits (W, V) of each, to the bit what
    its own `score` gives. Raises as that does, and for a session that is there twice."""
    asked = [_asked(rows, want) for rows, want in zip(passes, wants, strict=True)]
    try:
        logits = _core.score([session._core for session in sessions], asked)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except MemoryError:
        rows = sum(len(a[0]) for a in asked)
        raise TooLarge(f"no memory for a pass of {rows} rows") from None
    for session, a in zip(sessions, asked, strict=True):
        session._positions = a[1]
    ends = np.cumsum([len(want) for want in wants])
    return [logits[end - len(want) : end] for end, want in zip(ends, wants, strict=True)]


def _asked(rows: Pass, want: IntArray) -> _core.Asked:
    kind, matrix = _CAUSAL, None
    if not isinstance(rows.visible, str):
        kind, matrix = _MATRIX, np.ascontiguousarray(rows.visible, np.bool_)
    elif rows.visible == "full":
        kind = _FULL
    tokens = np.ascontiguousarray(rows.tokens, np.int32)
    positions = np.ascontiguousarray(rows.positions, np.int32)
    return tokens, positions, kind, matrix, *rows.hide, np.ascontiguousarray(want, np.int32)


def kernel_names() -> list[str]:
    """Instruction sets of this build that this processor runs, best first."""
    return _core.kernels()


def machine(threads: int = 0) -> dict[str, Any]:
    """What the core runs on: architecture, kernels in use and available, threads."""
    names = kernel_names()
    return {
        "machine": platform.machine(),
        "kernels": names[0],
        "available": names,
        "threads": pool(threads).threads,
    }


def measure_peaks(threads: int = 0, repeats: int = 5) -> dict[str, float]:
    """Measured ceilings, best of `repeats`: int4 products from the first cache (operations a
    second, a multiply and an add each) and reading 256 MiB (bytes a second)."""
    workers = pool(threads)
    block = np.ones(256 << 20, np.uint8)
    name = kernel_names()[0]
    return {
        "int8_ops": max(_core.peak_rate(workers, name) for _ in range(repeats)),
        "bandwidth": max(_core.read_rate(workers, block) for _ in range(repeats)),
    }
