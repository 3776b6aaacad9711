"""The shape of a dense decoder body, and the RoPE table every backend shares.

One description covers Llama, Qwen2 and Qwen3 bodies; what differs is data. Readers
(safetensors, GGUF) fill it in; backends read it and nothing else of a config.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mezzotint.canvas import FloatArray


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embedding, rotate-half form: theta, and how long contexts rescale it.

    kind: "default", "linear", "llama3" or "yarn"; the other fields are read only by
    the kinds that name them (Hugging Face `rope_scaling`).
    """

    theta: float = 10000.0
    kind: str = "default"
    factor: float = 1.0
    original_context: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the body. A linear weight is (out, in); `ffn` is the gate's out."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    context: int
    rms_eps: float
    rope: Rope
    qkv_bias: bool = False
    qk_norm: bool = False
    tied: bool = False


class Weights(Protocol):
    """Tensors by canonical name, read one at a time (float32, C order).

    embed (V, H) · norm (H,) · head (V, H, absent when tied) · layers.{i}.
    {attn_norm, ffn_norm} (H,) · {q, k, v, o, gate, up, down} (out, in) ·
    {q_bias, k_bias, v_bias} (out,) · {q_norm, k_norm} (head_dim,)
    """

    def __getitem__(self, name: str) -> FloatArray: ...
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...


def tensor_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Canonical name → the shape that tensor must have."""
    h, d = shape.hidden, shape.head_dim
    q, kv = shape.heads * d, shape.kv_heads * d
    out: dict[str, tuple[int, ...]] = {"embed": (shape.vocab, h), "norm": (h,)}
    if not shape.tied:
        out["head"] = (shape.vocab, h)
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (h,), "q": (q, h), "k": (kv, h), "v": (kv, h), "o": (h, q),
        "ffn_norm": (h,), "gate": (shape.ffn, h), "up": (shape.ffn, h), "down": (h, shape.ffn),
    }  # fmt: skip
    if shape.qkv_bias:
        layer |= {"q_bias": (q,), "k_bias": (kv,), "v_bias": (kv,)}
    if shape.qk_norm:
        layer |= {"q_norm": (d,), "k_norm": (d,)}
    for i in range(shape.layers):
        out |= {f"layers.{i}.{name}": size for name, size in layer.items()}
    return out


def rope_table(rope: Rope, head_dim: int) -> tuple[FloatArray, float]:
    """Inverse frequencies (head_dim / 2,) and the factor on cos and sin.

    llama3: Llama 3.1's wavelength-dependent factor. yarn: arXiv 2309.00071, NTK by
    parts, with the attention factor 0.1·ln(factor) + 1.
    """
    half = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
    inverse = rope.theta**-half
    factor = 1.0
    if rope.kind == "linear":
        inverse = inverse / rope.factor
    elif rope.kind == "llama3":
        inverse = _llama3(inverse, rope)
    elif rope.kind == "yarn":
        inverse = _yarn(inverse, rope, head_dim)
        factor = rope.attention_factor or 0.1 * float(np.log(rope.factor)) + 1.0
    return inverse.astype(np.float32), factor


def _llama3(inverse: np.ndarray, rope: Rope) -> np.ndarray:
    turns = rope.original_context * inverse / (2 * np.pi)  # full rotations in the old context
    span = rope.high_freq_factor - rope.low_freq_factor
    smooth = np.clip((turns - rope.low_freq_factor) / span, 0.0, 1.0)
    return (1 - smooth) * inverse / rope.factor + smooth * inverse  # type: ignore[no-any-return]


def _yarn(inverse: np.ndarray, rope: Rope, head_dim: int) -> np.ndarray:
    def dimension(rotations: float) -> float:
        ratio = rope.original_context / (rotations * 2 * np.pi)
        return head_dim * float(np.log(ratio)) / (2 * float(np.log(rope.theta)))

    low = max(np.floor(dimension(rope.beta_fast)), 0)
    high = min(np.ceil(dimension(rope.beta_slow)), head_dim - 1)
    ramp = np.clip((np.arange(head_dim // 2) - low) / max(high - low, 0.001), 0.0, 1.0)
    return inverse / rope.factor * ramp + inverse * (1 - ramp)  # type: ignore[no-any-return]
