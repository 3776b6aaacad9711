"""An adapter written to disk, in the files of `peft`; see `mezzotint.checkpoint.adapter`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from mezzotint.atomic import replacing
from mezzotint.canvas import FloatArray
from mezzotint.checkpoint.adapter import ABOUT, CONFIG, FULL, MODULES, TENSORS, peft_name
from mezzotint.errors import UsageError


def save_adapter(
    folder: Path, learnt: Mapping[str, FloatArray], config: Mapping[str, Any], about: dict[str, Any]
) -> None:
    """Write an adapter, or with `config` empty a whole model, in float16, each file atomically.

    learnt: by the names of `Trainee.param`. config: rank, alpha, dora.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if config:
        tensors = {peft_name(n): x if n != "mask" else x[None] for n, x in learnt.items()}
        write_tensors(folder / TENSORS, tensors)
        write_json(folder / CONFIG, _peft_config(config, about))
    else:
        write_tensors(folder / FULL, dict(learnt))
    write_json(folder / ABOUT, about)


def read_adapter(
    folder: Path, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, npt.NDArray[np.float32]]:
    """What `save_adapter` wrote, by the names of `Trainee.param`, in these shapes.

    Raises UsageError if the adapter is of another form.
    """
    found = load_file(folder / TENSORS)
    names = {n: peft_name(n) for n in shapes}
    sizes = {names[n]: math.prod(shape) for n, shape in shapes.items()}
    if sizes != {name: x.size for name, x in found.items()}:
        raise UsageError(f"{folder} holds an adapter of another form", "take its mode and its rank")
    return {n: found[names[n]].astype(np.float32).reshape(shapes[n]) for n in shapes}


def _peft_config(config: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    trained = {"embed_tokens": [about["mask_id"]]} if about["mode"] != "twin" else None
    return {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "inference_mode": True, "bias": "none",
        "base_model_name_or_path": about["base"], "r": config["rank"],
        "lora_alpha": config["alpha"], "lora_dropout": 0.0, "use_dora": config["dora"],
        "target_modules": [m.rpartition(".")[2] for m in MODULES.values()],
        "trainable_token_indices": trained,
    }  # fmt: skip


def write_tensors(file: Path, tensors: dict[str, FloatArray]) -> None:
    """Tensors by name, in float16, whole or not at all."""
    with replacing(file) as partial:
        save_file({n: np.ascontiguousarray(x, np.float16) for n, x in tensors.items()}, partial)


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    with replacing(file) as partial:
        partial.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
