"""How much memory a model needs, and whether the machine has it, before loading."""

from __future__ import annotations

import os
import sys
from math import prod
from pathlib import Path

from mezzotint.checkpoint.shape import Shape, tensor_shapes
from mezzotint.errors import TooLarge, UsageError

# Bits per weight, scales included: integers in groups of 32 with a float16 scale
# (int4 also a zero point's worth), the larger of what backends pack.
BITS = {"fp32": 32.0, "bf16": 16.0, "int8": 8.5, "int6": 6.5, "int4": 5.0}


def split_weights(weights: str) -> tuple[str, str]:
    """Formats of the linear layers, and of embedding and head, from "BODY" or "BODY/HEAD".

    int4 alone keeps embedding and head in int8: they lose most by fewer bits. Raises
    UsageError for a format that is not in BITS.
    """
    linear, _, head = weights.partition("/")
    head = head or ("int8" if linear == "int4" else linear)
    for name in (linear, head):
        if name not in BITS:
            hint = "write BODY or BODY/HEAD, such as int4 or int4/int8"
            raise UsageError(f"weights {name!r}: must be one of {', '.join(BITS)}", hint)
    return linear, head


def weight_bytes(shape: Shape, weights: str = "fp32") -> int:
    """Bytes of the weights in a format of `split_weights`, vectors in float32."""
    linear, head = split_weights(weights)
    formats = {"linear": linear, "head": head}
    bits = 0.0
    for name, size in tensor_shapes(shape).items():
        kind = "head" if name in ("embed", "head") else "linear"
        bits += prod(size) * (BITS[formats[kind]] if len(size) == 2 else 32.0)
    return int(bits / 8)


def kv_bytes(shape: Shape, tokens: int, bits: int = 16) -> int:
    """Bytes of the keys and values of `tokens` cached rows."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * tokens * bits // 8


def available_memory() -> int | None:
    """Bytes that can be allocated now without swapping; None where it cannot be told.

    Linux: MemAvailable and, where smaller, what the control group still allows.
    """
    if sys.platform == "linux":
        lines = Path("/proc/meminfo").read_text().splitlines()
        known = [int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable")]
        group = Path("/sys/fs/cgroup")
        try:
            limit = (group / "memory.max").read_text().strip()
            used = int((group / "memory.current").read_text())
            known += [] if limit == "max" else [int(limit) - used]
        except (OSError, ValueError):
            pass
        return min(known) if known else None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_fits(needed: int, what: str, available: int | None = None) -> None:
    """Raise TooLarge, with the numbers, if `needed` bytes are more than there are.

    available: bytes to compare with; by default `available_memory()`.
    """
    free = available_memory() if available is None else available
    if free is not None and needed > free:
        raise TooLarge(
            f"{what} needs {needed / 2**30:.1f} GiB of memory; {free / 2**30:.1f} GiB are free",
            "Choose a smaller weight format (int4), a shorter context or a smaller model.",
        )
