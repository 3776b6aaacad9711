"""What a GGUF means: its keys as a `Shape`, its tensors under canonical names.

llama and llada files store q and k with RoPE's two halves interleaved (the converter
permutes them); they are put back into rotate-half order here, so that backends know
one RoPE. Which family a file is, is detect.py's matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.gguf_file import GgufFile, open_gguf_file
from mezzotint.checkpoint.shape import Rope, Shape, Weights, rope_table
from mezzotint.checkpoint.weights import AGAIN, LazyWeights, check_tensors
from mezzotint.errors import DamagedModel, UnknownFamily

ARCHITECTURES = ("llama", "qwen2", "qwen3", "dream", "llada")
INTERLEAVED = ("llama", "llada")
ROPE_FREQS = "rope_freqs.weight"
_TOP = {"embed": "token_embd.weight", "norm": "output_norm.weight", "head": "output.weight"}
_LAYER = {
    "attn_norm": "attn_norm.weight", "ffn_norm": "ffn_norm.weight",
    "q": "attn_q.weight", "k": "attn_k.weight", "v": "attn_v.weight", "o": "attn_output.weight",
    "q_bias": "attn_q.bias", "k_bias": "attn_k.bias", "v_bias": "attn_v.bias",
    "q_norm": "attn_q_norm.weight", "k_norm": "attn_k_norm.weight",
    "gate": "ffn_gate.weight", "up": "ffn_up.weight", "down": "ffn_down.weight",
}  # fmt: skip


@dataclass(frozen=True)
class Gguf:
    """An open GGUF model: metadata by key, shape, and lazily read weights."""

    path: Path
    metadata: dict[str, Any]
    shape: Shape
    weights: Weights


def open_gguf(path: Path) -> Gguf:
    """Open a dense GGUF model. Nothing but the header is read.

    Raises UnknownFamily for an architecture not in ARCHITECTURES, DamagedModel for a
    truncated file and for missing or misshapen tensors.
    """
    file = open_gguf_file(path)
    arch = file.metadata.get("general.architecture")
    if arch not in ARCHITECTURES:
        raise UnknownFamily(
            f"{path.name}: GGUF architecture {arch!r} is not decoded here",
            f"Known are {', '.join(ARCHITECTURES)}.",
        )
    shape = _shape(file, arch)
    names = tensor_names(shape.layers)
    found = {n: file.tensors[g].shape for n, g in names.items() if g in file.tensors}
    shapes = check_tensors(path, shape, found)
    unknown = sorted(set(file.tensors) - set(names.values()) - {ROPE_FREQS})
    if unknown:
        raise UnknownFamily(f"{path.name}: tensor {unknown[0]} is no part of a dense {arch} body")

    def read(name: str) -> FloatArray:
        array = file.read(names[name])
        role = name.rpartition(".")[2]
        if arch in INTERLEAVED and role in ("q", "k", "q_bias", "k_bias"):
            heads = shape.heads if role.startswith("q") else shape.kv_heads
            return rotate_half_rows(array, heads)
        return array

    return Gguf(path, file.metadata, shape, LazyWeights(path, shapes, read))


def rotate_half_rows(array: FloatArray, heads: int) -> FloatArray:
    """Undo the converter's permutation of rows: (…, d/2, 2) pairs become (…, 2, d/2)."""
    pairs = array.reshape(heads, array.shape[0] // heads // 2, 2, *array.shape[1:])
    return pairs.swapaxes(1, 2).reshape(array.shape)


def tensor_names(layers: int) -> dict[str, str]:
    names = dict(_TOP)
    for i in range(layers):
        names |= {f"layers.{i}.{n}": f"blk.{i}.{g}" for n, g in _LAYER.items()}
    return names


def _shape(file: GgufFile, arch: str) -> Shape:
    def need(key: str) -> int:
        value = file.metadata.get(f"{arch}.{key}")
        if not isinstance(value, int) or value < 1:
            raise DamagedModel(f"{file.path.name}: {arch}.{key} is {value!r}, not 1 or more", AGAIN)
        return value

    def maybe(key: str, default: Any) -> Any:
        return file.metadata.get(f"{arch}.{key}", default)

    if maybe("expert_count", 0):
        raise UnknownFamily(f"{file.path.name} is a mixture of experts, which is not decoded here")
    if "token_embd.weight" not in file.tensors:
        raise DamagedModel(f"{file.path.name}: tensor token_embd.weight is missing", AGAIN)
    hidden, heads = need("embedding_length"), need("attention.head_count")
    head_dim = int(maybe("attention.key_length", hidden // heads))
    rotary = maybe("rope.dimension_count", head_dim)
    if rotary != head_dim:
        raise UnknownFamily(f"{file.path.name}: RoPE on {rotary} of {head_dim} dimensions")
    return Shape(
        vocab=file.tensors["token_embd.weight"].shape[0],
        hidden=hidden,
        layers=need("block_count"),
        heads=heads,
        kv_heads=int(maybe("attention.head_count_kv", heads)),
        head_dim=head_dim,
        ffn=need("feed_forward_length"),
        context=need("context_length"),
        rms_eps=float(maybe("attention.layer_norm_rms_epsilon", 1e-5)),
        rope=_rope(file, arch, head_dim),
        qkv_bias="blk.0.attn_q.bias" in file.tensors,
        qk_norm="blk.0.attn_q_norm.weight" in file.tensors,
        tied="output.weight" not in file.tensors,
    )


def _rope(file: GgufFile, arch: str, head_dim: int) -> Rope:
    def key(name: str, default: Any) -> Any:
        return file.metadata.get(f"{arch}.rope.{name}", default)

    theta = float(key("freq_base", 10000.0))
    if ROPE_FREQS in file.tensors:
        return _llama3_rope(file, theta, head_dim)
    kind = key("scaling.type", "none")
    factor = float(key("scaling.factor", 1.0))
    if kind == "none" or factor == 1.0:
        return Rope(theta)
    if kind == "linear":
        return Rope(theta, "linear", factor)
    if kind != "yarn":
        raise UnknownFamily(f"{file.path.name}: RoPE scaling {kind!r} is not known here")
    return Rope(
        theta,
        "yarn",
        factor,
        original_context=int(key("scaling.original_context_length", 0)),
        beta_fast=float(key("scaling.yarn_beta_fast", 32.0)),
        beta_slow=float(key("scaling.yarn_beta_slow", 1.0)),
    )


def _llama3_rope(file: GgufFile, theta: float, head_dim: int) -> Rope:
    """Llama 3's rule, recovered from the divisors that a GGUF stores in its place.

    The files keep the divisors alone; the published rule is used only if it gives them.
    """
    divisors = file.read(ROPE_FREQS)
    rope = Rope(theta, "llama3", float(divisors.max()), original_context=8192)
    plain, _ = rope_table(Rope(theta), head_dim)
    scaled, _ = rope_table(rope, head_dim)
    if divisors.shape != plain.shape or not np.allclose(plain / divisors, scaled, rtol=1e-4):
        raise UnknownFamily(f"{file.path.name}: its rope_freqs are not those of Llama 3")
    return rope
