"""What a Hugging Face folder means: its config as a `Shape`, its tensors by canonical name.

Two ways of naming tensors cover every dense family: Llama's (also Qwen's, Dream's,
SDAR's, …) and LLaDA's. A tensor that neither knows is refused rather than ignored: it
would be a part of the model left out. Python files in a folder are never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.safetensors import Tensor, open_safetensors, read_json
from mezzotint.checkpoint.shape import Rope, Shape, Weights
from mezzotint.checkpoint.weights import AGAIN, LazyWeights, check_tensors
from mezzotint.errors import DamagedModel, ModelError, UnknownFamily

_LLAMA_TOP = {"embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}
_LLAMA_LAYER = {
    "attn_norm": "input_layernorm.weight", "ffn_norm": "post_attention_layernorm.weight",
    "q": "self_attn.q_proj.weight", "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight", "o": "self_attn.o_proj.weight",
    "q_bias": "self_attn.q_proj.bias", "k_bias": "self_attn.k_proj.bias",
    "v_bias": "self_attn.v_proj.bias",
    "q_norm": "self_attn.q_norm.weight", "k_norm": "self_attn.k_norm.weight",
    "gate": "mlp.gate_proj.weight", "up": "mlp.up_proj.weight", "down": "mlp.down_proj.weight",
}  # fmt: skip
# In LLaDA, `ff_proj` is the gate, and `ff_out` is the MLP's down projection in a block
# but the output head at the top.
_LLADA_TOP = {"embed": "wte", "norm": "ln_f", "head": "ff_out"}
_LLADA_LAYER = {
    "attn_norm": "attn_norm.weight", "ffn_norm": "ff_norm.weight",
    "q": "q_proj.weight", "k": "k_proj.weight", "v": "v_proj.weight", "o": "attn_out.weight",
    "q_bias": "q_proj.bias", "k_bias": "k_proj.bias", "v_bias": "v_proj.bias",
    "gate": "ff_proj.weight", "up": "up_proj.weight", "down": "ff_out.weight",
}  # fmt: skip
# Canonical size -> the config keys that may hold it (LLaDA keeps OLMo's spelling).
_SIZES = {
    "hidden": ("hidden_size", "d_model"),
    "layers": ("num_hidden_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_heads"),
    "ffn": ("intermediate_size", "mlp_hidden_size"),
    "context": ("max_position_embeddings", "max_sequence_length"),
}


@dataclass(frozen=True)
class Folder:
    """An open Hugging Face folder. `generation` is generation_config.json, or empty."""

    path: Path
    config: dict[str, Any]
    generation: dict[str, Any]
    shape: Shape
    weights: Weights
    files: tuple[Path, ...]


def open_folder(path: Path, config: dict[str, Any]) -> Folder:
    """Open a dense checkpoint folder whose config.json is `config`.

    Raises DamagedModel for broken files and missing or misshapen tensors, ModelError or
    UnknownFamily for what is not a dense Llama-shaped body.
    """
    tensors, files = open_safetensors(path)
    _refuse_other_bodies(path, config)
    layers = _size(path, config, "layers")
    names = _llada_names(layers) if "d_model" in config else llama_names(layers)
    found = {n: tensors[t].shape for n, t in names.items() if t in tensors}
    _refuse_leftovers(path, tensors, names)
    shape = _shape(path, config, found)
    shapes = check_tensors(path, shape, found)

    def read(name: str) -> FloatArray:
        return tensors[names[name]].read()

    weights = LazyWeights(path, shapes, read)
    generation = path / "generation_config.json"
    extra = read_json(generation) if generation.is_file() else {}
    return Folder(path, config, extra, shape, weights, files)


def llama_names(layers: int) -> dict[str, str]:
    names = {n: f"{t}.weight" for n, t in _LLAMA_TOP.items()}
    for i in range(layers):
        names |= {f"layers.{i}.{n}": f"model.layers.{i}.{t}" for n, t in _LLAMA_LAYER.items()}
    return names


def _llada_names(layers: int) -> dict[str, str]:
    root = "model.transformer"
    names = {n: f"{root}.{t}.weight" for n, t in _LLADA_TOP.items()}
    for i in range(layers):
        names |= {f"layers.{i}.{n}": f"{root}.blocks.{i}.{t}" for n, t in _LLADA_LAYER.items()}
    return names


def _refuse_other_bodies(path: Path, config: dict[str, Any]) -> None:
    for key in ("quantization_config", "quantization"):
        if config.get(key):
            raise ModelError(
                f"{path.name} holds weights quantised by another tool ({key})",
                "Use the unquantised checkpoint, or a GGUF of it.",
            )
    activation = config.get("hidden_act") or config.get("activation_type") or "silu"
    if activation not in ("silu", "swiglu"):
        raise UnknownFamily(f"{path.name}: activation {activation!r} is not SwiGLU")
    if config.get("use_sliding_window"):
        raise UnknownFamily(f"{path.name} uses sliding-window attention, which is not decoded here")


def _refuse_leftovers(path: Path, tensors: Mapping[str, Tensor], names: dict[str, str]) -> None:
    leftovers = sorted(set(tensors) - set(names.values()))
    unknown = [name for name in leftovers if not name.endswith("rotary_emb.inv_freq")]
    if unknown:
        raise UnknownFamily(
            f"{path.name}: tensor {unknown[0]} is no part of a dense Llama-shaped body"
            f" of {len(names)} names ({len(unknown)} such tensors)"
        )


def _size(path: Path, config: dict[str, Any], name: str) -> int:
    for key in _SIZES[name]:
        value = config.get(key)
        if isinstance(value, int) and value > 0:
            return value
    raise DamagedModel(f"{path.name}: config.json has no {' or '.join(_SIZES[name])}", AGAIN)


def _shape(path: Path, config: dict[str, Any], found: Mapping[str, tuple[int, ...]]) -> Shape:
    sizes = {name: _size(path, config, name) for name in _SIZES}
    heads = sizes["heads"]
    kv_heads = config.get("num_key_value_heads") or config.get("n_kv_heads") or heads
    vocab = config.get("embedding_size") or config.get("vocab_size")
    if not isinstance(vocab, int):
        raise DamagedModel(f"{path.name}: config.json has no vocab_size", AGAIN)
    leaves = {name.rpartition(".")[2] for name in found}
    tied = config.get("tie_word_embeddings", config.get("weight_tying"))
    return Shape(
        vocab=vocab,
        kv_heads=int(kv_heads),
        head_dim=int(config.get("head_dim") or sizes["hidden"] // heads),
        rms_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope=_rope(path, config, sizes["context"]),
        qkv_bias="q_bias" in leaves,
        qk_norm="q_norm" in leaves,
        tied="head" not in found if tied is None else bool(tied),
        **sizes,
    )


def _rope(path: Path, config: dict[str, Any], context: int) -> Rope:
    """RoPE from `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = float(scaling.get("rope_theta") or config.get("rope_theta") or 10000.0)
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    partial = scaling.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    odd = {"mscale", "mscale_all_dim"} & set(scaling) or scaling.get("truncate") is False
    if kind not in ("default", "linear", "llama3", "yarn") or partial != 1.0 or odd:
        raise UnknownFamily(f"{path.name}: RoPE {scaling or partial!r} is not known here")
    if kind == "default":
        return Rope(theta)
    factor = scaling.get("factor")
    if not isinstance(factor, int | float) or factor < 1:
        raise DamagedModel(f"{path.name}: RoPE {kind} has factor {factor!r}, not 1 or more", AGAIN)
    if kind == "linear":
        return Rope(theta, kind, float(factor))
    return Rope(
        theta,
        kind,
        float(factor),
        original_context=int(scaling.get("original_max_position_embeddings") or context),
        low_freq_factor=float(scaling.get("low_freq_factor", 1.0)),
        high_freq_factor=float(scaling.get("high_freq_factor", 4.0)),
        beta_fast=float(scaling.get("beta_fast") or 32.0),
        beta_slow=float(scaling.get("beta_slow") or 1.0),
        attention_factor=scaling.get("attention_factor"),
    )
