"""A merged model as a Hugging Face folder: the base's own files, with other weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from mezzotint.checkpoint import Checkpoint
from mezzotint.checkpoint.adapter import ABOUT, FULL
from mezzotint.checkpoint.hf import llama_names
from mezzotint.errors import UsageError


def write_folder(merged: Checkpoint, adapter: Path, out: Path) -> None:
    """Write `merged` (see checkpoint.adapter) to a new folder, its weights in bfloat16.

    Raises UsageError for a base that is no folder of Llama's tensor names.
    """
    if not merged.path.is_dir():
        hint = "it needs no merged file: the adapter is merged when the model is loaded"
        raise UsageError(f"{merged.path.name} is no Hugging Face folder", hint)
    if out.exists():
        raise UsageError(f"{out} exists", "name a new folder")
    names = llama_names(merged.shape.layers)
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    weights = ("*.safetensors", "*.safetensors.index.json", "*.bin", ".*")
    shutil.copytree(merged.path, partial, ignore=shutil.ignore_patterns(*weights))
    save_file(
        {names[n]: torch.from_numpy(merged.weights[n]).bfloat16() for n in merged.weights},
        partial / FULL,
        {"format": "pt"},
    )
    shutil.copy(adapter / ABOUT, partial / ABOUT)
    partial.replace(out)
