"""A checkpoint with an adapter in its weights.

An adapter's files are those of `peft` (adapter_config.json, adapter_model.safetensors), plus
mezzotint.json: how the result is decoded. A full fine-tune is model.safetensors beside the
same mezzotint.json. Merging is plain NumPy, one tensor at a time, as a backend reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.safetensors import read_json
from mezzotint.checkpoint.shape import Weights, tensor_shapes
from mezzotint.errors import DamagedModel, UsageError
from mezzotint.family import Family, Regime

if TYPE_CHECKING:
    from mezzotint.checkpoint.open import Checkpoint

CONFIG, TENSORS, FULL, ABOUT = (
    "adapter_config.json", "adapter_model.safetensors", "model.safetensors", "mezzotint.json",
)  # fmt: skip
BLOCK = 16  # masks of the window that drafts
MODULES = {n: f"self_attn.{n}_proj" for n in "qkvo"} | {
    n: f"mlp.{n}_proj" for n in ("gate", "up", "down")
}
PARTS = {"a": "lora_A.weight", "b": "lora_B.weight", "m": "lora_magnitude_vector.weight"}
MASK = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"


def peft_name(name: str) -> str:
    """peft's name of a learnt tensor: "layers.0.q.a" (A, B or magnitude), or "mask"."""
    if name == "mask":
        return MASK
    _, layer, leaf, part = name.split(".")
    return f"base_model.model.model.layers.{layer}.{MODULES[leaf]}.{PARTS[part]}"


def hybrid(base: Family, mask_id: int, filler_id: int, block: int = BLOCK) -> Family:
    """How an adapted `base` is decoded: drafts by a window of masks, verified causally."""
    return replace(
        base,
        name="hybrid",
        regime=Regime.CAUSAL_WINDOW,
        mask_id=mask_id,
        policy="verify:0.4",
        block=block,
        delete_id=filler_id,
    )


def decoded(base: Family, about: Mapping[str, Any]) -> Family:
    """How a model is decoded of which mezzotint.json says `about`."""
    if about["mode"] != "hybrid":
        return base
    return hybrid(base, about["mask_id"], about["filler_id"], about["block"])


def adapted(base: Checkpoint, folder: Path) -> Checkpoint:
    """`base` with the adapter of `folder` in its weights, and the family that it then is.

    Raises UsageError for an adapter that cannot be merged, DamagedModel for a broken one.
    """
    if not (folder / ABOUT).is_file():
        raise UsageError(f"no adapter in {folder}: it has no {ABOUT}")
    about = read_json(folder / ABOUT)
    if about["mode"] == "frozen":
        hint = "train it with --mode hybrid to merge it"
        raise UsageError(f"{folder} acts on window rows only, and has no merged form", hint)
    file = folder / (FULL if (folder / FULL).is_file() else TENSORS)
    weights = _Whole(base, file) if file.name == FULL else _Merged.open(base, folder, about)
    family = decoded(base.family, about)
    files = (*base.files, file)
    return replace(
        base,
        name=about["name"],
        weights=weights,
        family=family,
        files=files,
        ways=about.get("ways", ()),
    )


@dataclass(frozen=True)
class _Whole:
    """The weights of a full fine-tune, by canonical name."""

    base: Checkpoint
    file: Path

    def __getitem__(self, name: str) -> FloatArray:
        return _read(self.file, name)

    def __contains__(self, name: object) -> bool:
        return name in self.base.weights

    def __iter__(self) -> Iterator[str]:
        return iter(self.base.weights)


@dataclass(frozen=True)
class _Merged:
    """gain · (W + scale · B A) for each adapted weight, and the mask's row of the embedding."""

    base: Weights
    file: Path
    names: frozenset[str]
    scale: float
    mask_id: int | None

    @classmethod
    def open(cls, base: Checkpoint, folder: Path, about: Mapping[str, Any]) -> _Merged:
        config = read_json(folder / CONFIG)
        try:
            with safe_open(folder / TENSORS, "numpy") as file:
                names = frozenset(file.keys())
        except (OSError, SafetensorError) as error:
            raise DamagedModel(f"{folder / TENSORS} is unreadable: {error}") from None
        scale = config["lora_alpha"] / config["r"]
        known = {peft_name(f"{n}.{part}") for n in _linears(base) for part in PARTS} | {MASK}
        if unknown := sorted(names - known):
            raise UsageError(f"{folder}: tensor {unknown[0]} has no place in {base.name}")
        return cls(base.weights, folder / TENSORS, names, scale, about.get("mask_id"))

    def __getitem__(self, name: str) -> FloatArray:
        weight = self.base[name]
        if name == "embed" and MASK in self.names:
            weight = weight.copy()
            weight[self.mask_id] = _read(self.file, MASK)[0]
        if name.rpartition(".")[2] not in MODULES or peft_name(f"{name}.a") not in self.names:
            return weight
        a, b = (_read(self.file, peft_name(f"{name}.{part}")) for part in "ab")
        weight = weight + np.float32(self.scale) * (b @ a)
        magnitude = peft_name(f"{name}.m")
        if magnitude in self.names:
            weight *= (_read(self.file, magnitude) / np.linalg.norm(weight, axis=1))[:, None]
        return weight

    def __contains__(self, name: object) -> bool:
        return name in self.base

    def __iter__(self) -> Iterator[str]:
        return iter(self.base)


def _linears(base: Checkpoint) -> list[str]:
    return [n for n in tensor_shapes(base.shape) if n.rpartition(".")[2] in MODULES]


def _read(file: Path, name: str) -> FloatArray:
    """A tensor as float32."""
    with safe_open(file, "numpy") as tensors:
        return np.asarray(tensors.get_tensor(name), np.float32)
