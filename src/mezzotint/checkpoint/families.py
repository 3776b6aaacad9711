"""The table of families: what a checkpoint says of itself, and how it is then decoded.

Data only; detect.py reads it from top to bottom and takes the first entry that fits, so
the narrow ones stand first. Facts and their sources: docs/families.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mezzotint.family import Family, Regime

Body = Literal["llama", "qwen2", "qwen3", "any"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A family and its marks.

    kinds: config `model_type` or GGUF architecture, in lower case.
    clue: a regular expression (any case) sought in class names, auto_map, the
        checkpoint's names and its special tokens; empty fits always.
    mask_tokens: how its tokenizer spells the mask. `family.mask_id` is the published id,
        used only where the checkpoint names none and its tokenizer does not contradict.
    body: qwen2 must have QKV biases, qwen3 query and key norms, llama neither.
    """

    family: Family
    kinds: tuple[str, ...]
    clue: str = ""
    mask_tokens: tuple[str, ...] = ()
    body: Body = "any"


# Recognised, and refused by name: (clue as above, also sought in the kind; what it is).
REFUSED: tuple[tuple[str, str], ...] = (
    (r"llada-?2|llada2", "LLaDA2, a mixture of experts"),
    (r"llada-?moe", "LLaDA-MoE, a mixture of experts"),
    (r"sdar_?moe|sdar-30b", "SDAR-MoE, a mixture of experts"),
    (r"rnd1", "RND1, a mixture of experts"),
    (r"diffusion_?gemma", "DiffusionGemma, which denoises uniform noise"),
    (r"nemotron.*diffusion", "Nemotron-Labs-Diffusion, which is not supported yet"),
    (r"efficient.?dlm", "Efficient-DLM, which is not supported yet"),
    (r"diffugpt|diffullama|discretediffusion", "DiffuGPT or DiffuLLaMA, in a wrapper layout"),
    (r"\bmdlmconfig|\bbd3lmconfig|kuleshov", "MDLM or BD3LM, a DiT body with adaLN"),
    (r"\bmmada", "MMaDA, a multimodal model"),
    (r"\bsdlm", "SDLM, which is not supported yet"),
    (r"modernbert", "an encoder (ModernBERT) body"),
    (r"_moe$|moeforcausallm|mixtral", "a mixture of experts"),
)

_DREAM = Family(
    "dream",
    Regime.FULL,
    shift=True,
    mask_id=151666,
    stop_ids=(151643, 151645),
    policy="entropy",
    temperature=0.1,
    top_p=0.9,
)
_DREAMON = Family(
    "dreamon",
    Regime.FULL,
    shift=True,
    mask_id=151666,
    stop_ids=(),
    policy="entropy",
    temperature=0.2,
    top_p=0.9,
    expand_id=151667,
    delete_id=151643,
)
_DREAMREASONER = Family(
    "dreamreasoner",
    Regime.BLOCK_CAUSAL,
    shift=False,
    mask_id=151669,
    stop_ids=(),
    policy="dynamic:0.9",
    block=32,
)
_LLADA = Family(
    "llada",
    Regime.FULL,
    shift=False,
    mask_id=126336,
    stop_ids=(126081, 126348),
    policy="low-confidence",
)
_ILLADA = Family(
    "illada", Regime.FULL, shift=False, mask_id=5, stop_ids=(2,), policy="low-confidence"
)
_SDAR = Family(
    "sdar",
    Regime.BLOCK_CAUSAL,
    shift=False,
    mask_id=151669,
    stop_ids=(),
    policy="dynamic:0.85",
    block=4,
    temperature=1.0,
)
_IDLM = Family(
    "i-dlm",
    Regime.CAUSAL_MASKS,
    shift=True,
    mask_id=None,
    stop_ids=(),
    policy="verify",
    block=4,
    temperature=1.0,
    top_k=50,
    top_p=0.95,
)
_FAST_DLLM = Family(
    "fast-dllm-v2",
    Regime.BLOCK_CAUSAL,
    shift=True,
    mask_id=151665,
    stop_ids=(151645,),
    policy="threshold:0.9",
    block=32,
    sub_block=8,
    top_p=0.95,
)
_WEDLM = Family(
    "wedlm",
    Regime.REORDERED,
    shift=False,
    mask_id=151665,
    stop_ids=(),
    policy="wedlm",
    block=16,
    temperature=0.2,
)
_DIFFCODER = Family(
    "stable-diffcoder",
    Regime.BLOCK_CAUSAL,
    shift=False,
    mask_id=5,
    stop_ids=(2,),
    policy="low-confidence",
    block=4,
)
_A2D_MDLM = Family(
    "a2d-mdlm", Regime.FULL, shift=False, mask_id=None, stop_ids=(), policy="low-confidence"
)
_A2D_BD3LM = Family(
    "a2d-bd3lm",
    Regime.BLOCK_CAUSAL,
    shift=False,
    mask_id=None,
    stop_ids=(),
    policy="low-confidence",
    block=32,
)
_OPEN_DCODER = Family(
    "open-dcoder",
    Regime.FULL,
    shift=True,
    mask_id=None,
    stop_ids=(),
    policy="p2",
    temperature=0.5,
    top_k=200,
)
_AR = {
    name: Family(name, Regime.CAUSAL, True, None, (), "left-to-right")
    for name in ("llama", "qwen2", "qwen3")
}

_A2D = ("a2d-qwen3", "a2d-qwen2", "a2d-llama")
_MASK = ("<|mask|>",)

TABLE: tuple[Entry, ...] = (
    Entry(_DREAMREASONER, ("dream", "qwen3", "dreamreasoner"), r"dream-?reasoner", (), "qwen3"),
    Entry(_DREAMON, ("dream",), r"dreamon|<\|expand\|>", _MASK, "qwen2"),
    Entry(_DREAM, ("dream",), "", _MASK, "qwen2"),
    Entry(_ILLADA, ("illada", "llada"), r"illada", ("<[MASK]>",), "llama"),
    Entry(_LLADA, ("llada",), "", ("<|mdm_mask|>",), "llama"),
    Entry(_IDLM, ("sdar", "qwen3"), r"\bi-?dlm", ("<|MASK|>",), "qwen3"),
    Entry(_SDAR, ("sdar", "qwen3"), r"sdar[-_]\d|trado", ("<|MASK|>",), "qwen3"),
    Entry(_FAST_DLLM, ("fast_dllm_qwen", "qwen2"), r"fast_?dllm", ("|<MASK>|",), "qwen2"),
    Entry(_WEDLM, ("wedlm", "qwen2", "qwen3"), r"wedlm"),
    Entry(_DIFFCODER, ("llama",), r"diff_?coder", (), "llama"),
    Entry(_A2D_BD3LM, _A2D, r"bd3lm", _MASK),
    Entry(_A2D_MDLM, _A2D, r"mdlm", _MASK),
    Entry(_OPEN_DCODER, ("qwen2",), r"open-?d(coder|llm)", (), "qwen2"),
    Entry(_AR["llama"], ("llama",), "", (), "llama"),
    Entry(_AR["qwen2"], ("qwen2",), "", (), "qwen2"),
    Entry(_AR["qwen3"], ("qwen3",), "", (), "qwen3"),
)
