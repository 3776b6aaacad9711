"""From what a checkpoint says of itself to its Family; a doubt is an error.

The table is families.py. A mask id comes from the checkpoint where it names one, else
from its tokenizer's spelling of the mask, else from the family's published id, and every
source that speaks must agree: a model shown the wrong mask writes nonsense silently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mezzotint.checkpoint.families import REFUSED, TABLE, Entry
from mezzotint.checkpoint.shape import Shape
from mezzotint.errors import DamagedModel, ModelError, UnknownFamily, UsageError
from mezzotint.family import Family

_AR_CLASSES = {"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
_SOUNDS_DIFFUSION = r"diffus|dllm|dlm|sdar|trado|llada|dream"
HINT = "If you know better, name the family yourself (`--family`)."


@dataclass(frozen=True, slots=True)
class Clues:
    """What a checkpoint says of itself, in one form for every file format.

    kind: config `model_type` or GGUF architecture. names: every name it goes by (its
        own, its folder's, its classes', its auto_map's). classes: `architectures`.
    remote: its config points to Python code of its own (which is never run).
    mask_ids: what its files say the mask is, each that says so.
    special: its tokenizer's special tokens by text, empty if unknown.
    causal, shift: GGUF's `attention.causal` and `diffusion.shift_logits`, if present.
    """

    kind: str
    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    remote: bool = False
    mask_ids: tuple[int, ...] = ()
    stop_ids: tuple[int, ...] = ()
    block: int | None = None
    special: Mapping[str, int] = field(default_factory=dict)
    causal: bool | None = None
    shift: bool | None = None


def find(clues: Clues, family: str | None = None) -> Entry:
    """The table's entry for a checkpoint, or the one named `family`.

    Raises UnknownFamily if nothing here decodes it rightly, UsageError for a `family`
    that is not in the table.
    """
    if family is None:
        return _find(clues)
    for entry in TABLE:
        if entry.family.name == family:
            return entry
    raise UsageError(f"no family {family!r}; known are {', '.join(family_names())}")


def settle(entry: Entry, clues: Clues, shape: Shape) -> Family:
    """The entry's family with the checkpoint's own ids and block, checked.

    Raises DamagedModel for a body that is not the family's, ModelError if its mask id is
    unknown or contradicted.
    """
    _check_body(entry, shape, clues)
    base = entry.family
    if clues.shift is not None and base.diffusion and clues.shift != base.shift:
        raise UnknownFamily(
            f"{clues.names[0]} says shift_logits={clues.shift}, but {base.name} has {base.shift}"
        )
    if base.expand_id is not None and base.delete_id is not None:
        expand = clues.special.get("<|expand|>", base.expand_id)
        delete = clues.special.get("<|endoftext|>", base.delete_id)
        base = replace(base, expand_id=expand, delete_id=delete)
    stops = dict.fromkeys(clues.stop_ids + base.stop_ids)
    stop_ids = tuple(i for i in stops if 0 <= i < shape.vocab and i != base.delete_id)
    block = clues.block if clues.block and base.block else base.block
    mask_id = _mask_id(entry, clues, shape.vocab) if base.diffusion else None
    if mask_id in stop_ids:
        raise ModelError(f"{clues.names[0]}: token {mask_id} is both mask and end of text", HINT)
    return replace(base, mask_id=mask_id, stop_ids=stop_ids, block=block)


def family_names() -> list[str]:
    """The names `find` accepts."""
    return [entry.family.name for entry in TABLE]


def _find(clues: Clues) -> Entry:
    kind, names = clues.kind.lower(), "\n".join((clues.kind, *clues.names, *clues.classes))
    for pattern, what in REFUSED:
        if re.search(pattern, names, re.IGNORECASE):
            raise UnknownFamily(f"{clues.names[0]} is {what}; Mezzotint does not decode it")
    marks = "\n".join((names, *clues.special))
    for entry in TABLE:
        if kind in entry.kinds and re.search(entry.clue, marks, re.IGNORECASE):
            if not entry.family.diffusion:
                _check_plain(clues, names)
            return entry
    raise UnknownFamily(
        f"{clues.names[0]}: nothing here tells how to decode a model of type {clues.kind!r}"
        f" (classes {', '.join(clues.classes) or 'none'})",
        HINT,
    )


def _check_plain(clues: Clues, names: str) -> None:
    """A plain AR model must look like one in every respect."""
    doubts = {
        "brings Python code of its own": clues.remote,
        "has a class of its own": not set(clues.classes) <= _AR_CLASSES,
        "has a mask token": bool(clues.mask_ids),
        "is not causal": clues.causal is False,
        "goes by the name of a diffusion model": re.search(_SOUNDS_DIFFUSION, names, re.I),
    }
    for doubt, present in doubts.items():
        if present:
            raise UnknownFamily(
                f"{clues.names[0]} says it is a plain {clues.kind} model but {doubt}", HINT
            )


def _check_body(entry: Entry, shape: Shape, clues: Clues) -> None:
    want = {"qwen2": (True, False), "qwen3": (False, True), "llama": (False, False)}
    has = (shape.qkv_bias, shape.qk_norm)
    if entry.body != "any" and has != want[entry.body]:
        raise DamagedModel(
            f"{clues.names[0]}: (QKV biases, query norms) are {has},"
            f" but {entry.family.name} has {want[entry.body]}"
        )


def _mask_id(entry: Entry, clues: Clues, vocab: int) -> int:
    name, published = clues.names[0], entry.family.mask_id
    spelt = tuple(clues.special[t] for t in entry.mask_tokens if t in clues.special)
    claims = sorted({*clues.mask_ids, *spelt})
    if len(claims) > 1:
        raise ModelError(f"{name}: its files name different mask tokens, {claims}", HINT)
    if claims:
        mask_id = claims[0]
    elif published is None:
        raise ModelError(f"{name} does not say which token is its mask", HINT)
    else:
        mask_id = published
        text = next((t for t, i in clues.special.items() if i == mask_id), "nothing")
        if clues.special and "mask" not in text.lower():
            raise ModelError(
                f"{name} does not name its mask; {entry.family.name} has {mask_id}, but here"
                f" that token is {text!r}",
                HINT,
            )
    if not 0 <= mask_id < vocab:
        raise ModelError(f"{name}: mask id {mask_id} is outside the vocabulary of {vocab}")
    return mask_id
