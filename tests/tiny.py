"""Tiny random checkpoints, each in its family's exact layout: names, config, tokenizer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from mezzotint.checkpoint.shape import Rope, Shape, tensor_shapes
from mezzotint.text import byte_alphabet

VOCAB, EOS, PAD, TURN, MASK, BOS, EXPAND = 320, 288, 289, 290, 291, 292, 293
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN3 = Shape(
    vocab=VOCAB, hidden=96, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=160, context=512,
    rms_eps=1e-6, rope=Rope(1e6), qk_norm=True,
)  # fmt: skip
QWEN2 = replace(QWEN3, qk_norm=False, qkv_bias=True)
LLAMA = replace(QWEN3, qk_norm=False, rms_eps=1e-5, rope=Rope(10000.0))
LLADA = replace(LLAMA, hidden=128, kv_heads=4, rope=Rope(500000.0))  # no GQA


@dataclass(frozen=True)
class Tiny:
    """One family's layout. `config` is added to what the shape says."""

    folder: str
    shape: Shape
    config: dict[str, Any]
    mask_token: str = ""
    names: str = "llama"
    special: dict[str, int] = field(default_factory=dict)


def _remote(file: str, name: str) -> dict[str, Any]:
    return {"auto_map": {"AutoModel": f"{file}.{name}"}, "architectures": [name]}


def _plain(kind: str, name: str) -> dict[str, Any]:
    return {"model_type": kind, "architectures": [f"{name}ForCausalLM"]}


_DREAM = {
    "model_type": "Dream",
    "mask_token_id": MASK,
    **_remote("modeling_dream", "DreamModel"),
}
FAMILIES = {
    "llama": Tiny("tiny-llama", LLAMA, _plain("llama", "Llama")),
    "qwen2": Tiny("tiny-qwen2", replace(QWEN2, tied=True), _plain("qwen2", "Qwen2")),
    "qwen3": Tiny("tiny-qwen3", QWEN3, _plain("qwen3", "Qwen3")),
    "dream": Tiny("Dream-v0-Instruct-7B", QWEN2, _DREAM, "<|mask|>"),
    "dreamon": Tiny(
        "DreamOn-v0-7B", QWEN2, _DREAM, "<|mask|>", special={"<|expand|>": EXPAND}
    ),
    "dreamreasoner": Tiny(
        "DreamReasoner-8B",
        QWEN3,
        {**_DREAM, **_remote("modeling_dream", "DreamForCausalLM"), "block_size": 32},
        "<|MASK|>",
    ),
    "llada": Tiny(
        "LLaDA-8B-Instruct",
        LLADA,
        {"model_type": "llada", "mask_token_id": MASK, **_remote("m", "LLaDAModelLM")},
        "<|mdm_mask|>",
        "llada",
    ),
    "illada": Tiny(
        "iLLaDA-8B",
        replace(LLAMA, tied=True),
        {"model_type": "illada", **_remote("modeling_illada", "ILLaDAForCausalLM")},
        "<[MASK]>",
    ),
    "sdar": Tiny(
        "SDAR-1.7B-Chat",
        QWEN3,
        {"model_type": "sdar", **_remote("modeling_sdar", "SDARForCausalLM")},
        "<|MASK|>",
    ),
    "i-dlm": Tiny(
        "I-DLM-8B",
        QWEN3,
        {"model_type": "sdar", **_remote("modeling_sdar", "SDARForCausalLM")},
        "<|MASK|>",
    ),
    "fast-dllm-v2": Tiny(
        "Fast_dLLM_v2_1.5B",
        QWEN2,
        {
            "model_type": "Fast_dLLM_Qwen",
            "bd_size": 32,
            **_remote("modeling", "Fast_dLLM_QwenForCausalLM"),
        },
        "|<MASK>|",
    ),
    "wedlm": Tiny(
        "WeDLM-8B-Instruct",
        QWEN3,
        {"model_type": "wedlm", "mask_token_id": MASK, **_remote("m", "WeDLMForCausalLM")},
        "<|mask|>",
    ),
    "stable-diffcoder": Tiny(
        "Stable-DiffCoder-8B-Instruct",
        LLAMA,
        {
            **_plain("llama", "Llama"),
            "mask_token_id": MASK,
            "auto_map": {"AutoModelForCausalLM": "modeling_diffcoder.LlamaForCausalLM"},
        },
        "<[MASK]>",
    ),
    "a2d-mdlm": Tiny(
        "Qwen3-0.6B-diffusion-mdlm-v0.1",
        QWEN3,
        {"model_type": "a2d-qwen3", "architectures": ["A2DQwen3LMHeadModel"]},
        "<|mask|>",
    ),
    "a2d-bd3lm": Tiny(
        "Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1",
        replace(QWEN2, tied=True),
        {"model_type": "a2d-qwen2", "architectures": ["A2DQwen2LMHeadModel"]},
        "<|mask|>",
    ),
    "open-dcoder": Tiny(
        "open-dcoder-0.5B",
        replace(QWEN2, tied=True),
        {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]},
        "<M>",
    ),
}  # fmt: skip

_LLAMA_NAMES = {
    "embed": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight",
    "attn_norm": "input_layernorm.weight", "ffn_norm": "post_attention_layernorm.weight",
    **{n: f"self_attn.{n}_proj.weight" for n in "qkvo"},
    **{f"{n}_bias": f"self_attn.{n}_proj.bias" for n in "qkv"},
    **{f"{n}_norm": f"self_attn.{n}_norm.weight" for n in "qk"},
    **{n: f"mlp.{n}_proj.weight" for n in ("gate", "up", "down")},
}  # fmt: skip
_LLADA_NAMES = {
    "embed": "wte.weight", "norm": "ln_f.weight", "head": "ff_out.weight",
    "attn_norm": "attn_norm.weight", "ffn_norm": "ff_norm.weight",
    "q": "q_proj.weight", "k": "k_proj.weight", "v": "v_proj.weight", "o": "attn_out.weight",
    "gate": "ff_proj.weight", "up": "up_proj.weight", "down": "ff_out.weight",
}  # fmt: skip


def random_weights(shape: Shape, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights by canonical name, large enough that logits and attention are not flat."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, size in tensor_shapes(shape).items():
        x = rng.standard_normal(size).astype(np.float32)
        weights[name] = (
            1 + 0.2 * x if name.endswith("norm") else x * (0.12 if len(size) > 1 else 0.3)
        )
    return weights


def hf_name(name: str, names: str = "llama") -> str:
    """The tensor name of a canonical name in a Hugging Face file."""
    prefix, _, leaf = name.rpartition(".")
    if names == "llada":
        return ".".join(
            filter(
                None, ("model.transformer", prefix.replace("layers", "blocks"), _LLADA_NAMES[leaf])
            )
        )
    return ".".join(filter(None, (prefix and f"model.{prefix}", _LLAMA_NAMES[leaf])))


def write(
    root: Path,
    family: str,
    dtype: str = "F32",
    shards: int = 1,
    shape: Shape | None = None,
    config: dict[str, Any] | None = None,
) -> tuple[Path, dict[str, np.ndarray]]:
    """Write the family's tiny checkpoint under `root`; its folder and canonical weights."""
    tiny = FAMILIES[family]
    shape = shape or tiny.shape
    folder = root / tiny.folder
    folder.mkdir(parents=True)
    weights = random_weights(shape)
    if dtype == "BF16":
        weights = {n: (w.view(np.uint32) & 0xFFFF0000).view(np.float32) for n, w in weights.items()}
    if dtype == "F16":
        weights = {n: w.astype(np.float16).astype(np.float32) for n, w in weights.items()}
    write_weights(folder, {hf_name(n, tiny.names): w for n, w in weights.items()}, dtype, shards)
    spoken = _llada_config(shape) if tiny.names == "llada" else _hf_config(shape)
    (folder / "config.json").write_text(json.dumps({**spoken, **tiny.config, **(config or {})}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [TURN, EOS]}))
    write_tokenizer(folder, tiny)
    return folder, weights


def write_weights(folder: Path, tensors: dict[str, np.ndarray], dtype: str, shards: int) -> None:
    names, where = sorted(tensors), {}
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors" if shards > 1 else "model.safetensors"
        part = {n: np.ascontiguousarray(tensors[n]) for n in names[i::shards]}
        _save(part, folder / file, dtype)
        where |= dict.fromkeys(part, file)
    if shards > 1:
        index = {"metadata": {}, "weight_map": where}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _save(tensors: dict[str, np.ndarray], file: Path, dtype: str) -> None:
    if dtype == "BF16":  # NumPy has none; torch does
        import torch
        from safetensors.torch import save_file as save_torch

        save_torch({n: torch.from_numpy(t).to(torch.bfloat16) for n, t in tensors.items()}, file)
    else:
        kind = {"F32": np.float32, "F16": np.float16}[dtype]
        save_file({n: t.astype(kind) for n, t in tensors.items()}, file)


def _hf_config(shape: Shape) -> dict[str, Any]:
    return {
        "vocab_size": shape.vocab, "hidden_size": shape.hidden, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim, "intermediate_size": shape.ffn, "hidden_act": "silu",
        "max_position_embeddings": shape.context, "rms_norm_eps": shape.rms_eps,
        "rope_theta": shape.rope.theta, "tie_word_embeddings": shape.tied, "eos_token_id": EOS,
    }  # fmt: skip


def _llada_config(shape: Shape) -> dict[str, Any]:
    return {
        "vocab_size": shape.vocab, "embedding_size": shape.vocab, "d_model": shape.hidden,
        "n_layers": shape.layers, "n_heads": shape.heads, "n_kv_heads": shape.kv_heads,
        "mlp_hidden_size": shape.ffn, "max_sequence_length": shape.context,
        "rms_norm_eps": shape.rms_eps, "rope_theta": shape.rope.theta, "activation_type": "silu",
        "weight_tying": shape.tied, "include_bias": False, "eos_token_id": EOS,
    }  # fmt: skip


def bpe() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A byte-level vocabulary of 256 bytes and a few merges."""
    vocab = dict(byte_alphabet())
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w"), ("o", "r")]
    for left, right in merges:
        vocab[left + right] = len(vocab)
    return vocab, merges


def special_tokens(tiny: Tiny) -> dict[str, int]:
    named = {"<|endoftext|>": EOS, "<|pad|>": PAD, "<|im_end|>": TURN, "<|im_start|>": BOS}
    masks = {tiny.mask_token: MASK} if tiny.mask_token else {}
    return named | masks | tiny.special


def write_tokenizer(folder: Path, tiny: Tiny) -> None:
    vocab, merges = bpe()
    special = special_tokens(tiny)
    by_id = {i: t for t, i in special.items()}
    full = vocab | {by_id.get(i, f"<unused{i}>"): i for i in range(len(vocab), VOCAB)}
    tokenizer = Tokenizer(models.BPE(vocab=full, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = {"chat_template": CHATML, "eos_token": "<|endoftext|>"}
    if tiny.mask_token == "<M>":
        config["mask_token"] = {"content": "<M>", "special": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


_GGUF_NAMES = {
    "embed": "token_embd.weight", "norm": "output_norm.weight", "head": "output.weight",
    "attn_norm": "attn_norm.weight", "ffn_norm": "ffn_norm.weight", "o": "attn_output.weight",
    **{n: f"attn_{n}.weight" for n in "qkv"}, **{f"{n}_bias": f"attn_{n}.bias" for n in "qkv"},
    **{f"{n}_norm": f"attn_{n}_norm.weight" for n in "qk"},
    **{n: f"ffn_{n}.weight" for n in ("gate", "up", "down")},
}  # fmt: skip


def interleave(array: np.ndarray, heads: int) -> np.ndarray:
    """The converter's permutation: a head's row i goes to 2i, its row i + d/2 to 2i + 1."""
    rows = np.split(array, heads)
    half = len(rows[0]) // 2
    order = [i // 2 + half * (i % 2) for i in range(2 * half)]
    return np.concatenate([head[order] for head in rows])


def write_gguf(
    path: Path,
    arch: str,
    shape: Shape,
    weights: dict[str, np.ndarray],
    kind: str = "F32",
    extra: dict[str, Any] | None = None,
    tensors: dict[str, np.ndarray] | None = None,
) -> Path:
    """A GGUF of `arch` with matrices of type `kind`, as the llama.cpp converter lays it out."""
    import gguf

    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(path.stem)
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.rms_eps)
    writer.add_rope_freq_base(shape.rope.theta)
    tiny = Tiny("", shape, {}, "<|mask|>")
    vocab, merges = bpe()
    special = special_tokens(tiny)
    by_id = {i: t for t, i in (vocab | special).items()}
    ids = range(shape.vocab)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([by_id.get(i, f"[PAD{i}]") for i in ids])
    writer.add_token_types([3 if i in special.values() else 1 if i in by_id else 5 for i in ids])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_eos_token_id(EOS)
    writer.add_chat_template(CHATML)
    for key, value in (extra or {}).items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
        add.get(type(value), writer.add_string)(key, value)
    quantised = gguf.GGMLQuantizationType[kind]
    for name, array in weights.items():
        prefix, _, leaf = name.rpartition(".")
        if arch in ("llama", "llada") and leaf in ("q", "k"):
            array = interleave(array, shape.heads if leaf == "q" else shape.kv_heads)
        name = ".".join(filter(None, (prefix.replace("layers", "blk"), _GGUF_NAMES[leaf])))
        if array.ndim == 2 and kind != "F32":
            writer.add_tensor(name, gguf.quantize(array, quantised), raw_dtype=quantised)
        else:
            writer.add_tensor(name, array)
    for name, array in (tensors or {}).items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
