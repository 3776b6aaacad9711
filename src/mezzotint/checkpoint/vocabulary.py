"""A checkpoint's tokenizer files, or its GGUF vocabulary, as a `Tokenizer`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers

from mezzotint.chat import ChatTemplate
from mezzotint.checkpoint.safetensors import read_json
from mezzotint.errors import DamagedModel, ModelError
from mezzotint.text import Tokenizer

CONTROL, USER_DEFINED = 3, 4  # GGUF token types

# How text is cut before BPE, by GGUF's `tokenizer.ggml.pre`. The expressions are those of
# the models' own tokenizer.json files.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SUFFIXES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_QWEN2 = rf"{_SUFFIXES}|{_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_TAIL}"
_LLAMA3 = rf"{_SUFFIXES}|{_WORDS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_TAIL}"
_SEED = rf"{_SUFFIXES}|{_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_TAIL}"
_BAILING = (
    rf"'(?i:[sdmt]|ll|ve|re)|{_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
_PUNCTUATION = r"[\p{P}\$\+<=>\^~\|]+"
_CUTS: dict[str, tuple[str, ...]] = {
    "default": (_PUNCTUATION, _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
    "gpt-2": (_GPT2,),
    "smollm": (r"\p{N}", _GPT2),
    "qwen2": (_QWEN2,),
    "dream": (_QWEN2,),
    "llama-bpe": (_LLAMA3,),
    "llama3": (_LLAMA3,),
    "llada": (_BAILING,),
    "llada-moe": (_BAILING,),
    "bailingmoe": (_BAILING,),
    "seed-coder": (_SEED,),
}
_BOS_FIRST = ("llama-bpe", "llama3")


def gguf_tokenizer(metadata: Mapping[str, Any], name: str) -> Tokenizer:
    """The tokenizer of a GGUF's metadata; `name` is for messages.

    Raises ModelError if there is none, or one of a kind not known here.
    """

    def get(key: str, default: Any = None) -> Any:
        return metadata.get(f"tokenizer.ggml.{key}", default)

    tokens, kind, pre = get("tokens"), get("model"), get("pre", "default")
    if not tokens:
        raise ModelError(f"{name} has no tokenizer", "Use a GGUF that brings its vocabulary.")
    if kind != "gpt2" or pre not in _CUTS:
        what = f"pre-tokenizer {pre!r}" if kind == "gpt2" else f"tokenizer model {kind!r}"
        raise ModelError(f"{name}: {what} is not known here (known: gpt2 with {', '.join(_CUTS)})")
    types = get("token_type", [1] * len(tokens))
    added = {t: i for i, t in enumerate(tokens) if types[i] in (CONTROL, USER_DEFINED)}
    merges = [tuple(merge.split(" ", 1)) for merge in get("merges", ())]
    try:
        bpe = models.BPE(
            vocab={t: i for i, t in enumerate(tokens) if t not in added},
            merges=merges,
            ignore_merges=pre in _BOS_FIRST,
        )
    except Exception as error:  # the library raises a bare Exception for a broken vocabulary
        raise DamagedModel(f"{name}: its vocabulary is broken: {error}") from None
    core = tokenizers.Tokenizer(bpe)
    if _CUTS[pre] == (_QWEN2,):
        core.normalizer = normalizers.NFC()
    cuts = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in _CUTS[pre]]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.pre_tokenizer = pre_tokenizers.Sequence([*cuts, byte_level])

    bos = get("bos_token_id")
    first = get("add_bos_token", pre in _BOS_FIRST) and bos is not None
    spelt = {f"{n}_token": get(f"{k}_token_id") for n, k in (("bos", "bos"), ("eos", "eos"))}
    variables = {n: tokens[i] for n, i in spelt.items() if i is not None and i < len(tokens)}
    source = metadata.get("tokenizer.chat_template")
    return Tokenizer(
        core,
        added,
        frozenset(i for i in added.values() if types[i] == CONTROL),
        (bos,) if first else (),
        ChatTemplate(source, variables) if source else None,
    )


def folder_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a Hugging Face folder.

    Raises ModelError if there is no tokenizer.json, or one that is not byte-level BPE.
    """
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ModelError(
            f"{folder} has no tokenizer.json",
            "Fetch it with the weights; slow tokenizers that need Python code are not read.",
        )
    data = read_json(file)
    if "ByteLevel" not in json.dumps([data.get("pre_tokenizer"), data.get("decoder")]):
        raise ModelError(f"{file} is not a byte-level BPE tokenizer, the only kind read here")
    entries = data.get("added_tokens") or []
    try:
        data |= {"truncation": None, "padding": None}
        prefix = tuple(tokenizers.Tokenizer.from_str(json.dumps(data)).encode("").ids)
        data |= {"added_tokens": [], "post_processor": None}
        core = tokenizers.Tokenizer.from_str(json.dumps(data))
        added = {str(t["content"]): int(t["id"]) for t in entries}
        control = frozenset(int(t["id"]) for t in entries if t["special"])
    except Exception as error:  # the library raises a bare Exception for a broken file
        raise DamagedModel(f"{file} is broken: {error}") from None
    return Tokenizer(core, added, control, prefix, _folder_template(folder))


def _folder_template(folder: Path) -> ChatTemplate | None:
    file = folder / "tokenizer_config.json"
    config = read_json(file) if file.is_file() else {}
    source = config.get("chat_template")
    if isinstance(source, list):  # several templates by name
        source = next((t["template"] for t in source if t.get("name") == "default"), None)
    if (folder / "chat_template.jinja").is_file():
        source = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    variables = {}
    for key in ("bos_token", "eos_token", "pad_token", "unk_token"):
        value = config.get(key)
        value = value.get("content") if isinstance(value, dict) else value
        variables[key] = value or ""
    return ChatTemplate(source, variables) if source else None
