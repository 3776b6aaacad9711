"""One door to every format: `open_checkpoint(path)`.

Opening reads headers and configs only; weights are read when a backend asks for them.
Code that a checkpoint brings is never run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mezzotint.checkpoint.adapter import ABOUT, decoded
from mezzotint.checkpoint.detect import Clues, find, settle
from mezzotint.checkpoint.gguf import Gguf, open_gguf
from mezzotint.checkpoint.hf import open_folder
from mezzotint.checkpoint.safetensors import read_json
from mezzotint.checkpoint.shape import Shape, Weights
from mezzotint.checkpoint.vocabulary import (
    CONTROL,
    USER_DEFINED,
    folder_tokenizer,
    gguf_tokenizer,
)
from mezzotint.checkpoint.weights import AGAIN
from mezzotint.errors import DamagedModel, MezzotintError, UsageError
from mezzotint.family import Family
from mezzotint.text import Tokenizer


@dataclass(frozen=True)
class Checkpoint:
    """A model ready to be loaded by a backend.

    files: what the weights come from, in a fixed order (for content addresses).
    ways: what an adapter reached when it was tuned, see `mezzotint.auto`; empty otherwise.
    load_tokenizer: reads the tokenizer and chat template, on demand; raises ModelError
        if there is none.
    """

    path: Path
    name: str
    shape: Shape
    family: Family
    weights: Weights
    files: tuple[Path, ...]
    load_tokenizer: Callable[[], Tokenizer]
    ways: Sequence[Mapping[str, Any]] = ()


def open_checkpoint(path: str | Path, family: str | None = None) -> Checkpoint:
    """Open a .gguf file or a Hugging Face folder; `family` overrides what is detected.

    Raises UsageError for a path that is neither, UnknownFamily for a model that nothing
    here decodes rightly, DamagedModel for broken files.
    """
    place = Path(path).expanduser()
    try:
        if place.is_file() and place.suffix == ".gguf":
            return _open_gguf(place, family)
        if (place / "config.json").is_file():
            return _open_folder(place, family)
    except MezzotintError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Metadata of an unexpected type: the format's checks passed, its meaning did not.
        raise DamagedModel(
            f"{place.name}: its metadata makes no sense: {error!r}", AGAIN
        ) from error
    if not place.exists():
        raise UsageError(f"no model at {place}", "`mezzotint list` shows the models you have.")
    raise UsageError(f"{place} is neither a .gguf file nor a folder with a config.json")


def _open_gguf(path: Path, family: str | None) -> Checkpoint:
    model = open_gguf(path)
    clues = _gguf_clues(model)
    settled = settle(find(clues, family), clues, model.shape)

    def load_tokenizer() -> Tokenizer:
        return gguf_tokenizer(model.metadata, path.name)

    shape, weights = model.shape, model.weights
    return Checkpoint(path, path.stem, shape, settled, weights, (path,), load_tokenizer)


def _gguf_clues(model: Gguf) -> Clues:
    meta = model.metadata
    arch = str(meta["general.architecture"])
    names = (model.path.stem, meta.get("general.name"), meta.get("general.basename"))
    tokens, types = meta.get("tokenizer.ggml.tokens", []), meta.get("tokenizer.ggml.token_type", [])
    special = {
        token: i
        for i, (token, kind) in enumerate(zip(tokens, types, strict=False))
        if kind in (CONTROL, USER_DEFINED)
    }
    stops = (meta.get(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot"))
    return Clues(
        kind=arch,
        names=tuple(str(name) for name in names if name),
        mask_ids=_ids(meta.get("tokenizer.ggml.mask_token_id")),
        stop_ids=tuple(stop for stop in stops if stop is not None),
        special=special,
        causal=meta.get(f"{arch}.attention.causal"),
        shift=meta.get("diffusion.shift_logits"),
    )


def _open_folder(path: Path, family: str | None) -> Checkpoint:
    config = read_json(path / "config.json")
    clues = _folder_clues(path, config)
    entry = find(clues, family)
    folder = open_folder(path, config)

    def load_tokenizer() -> Tokenizer:
        return folder_tokenizer(path)

    settled = settle(entry, clues, folder.shape)
    if family is None:
        settled = decoded(settled, _maybe_json(path / ABOUT) or {"mode": "twin"})
    return Checkpoint(
        path,
        clues.names[0],
        folder.shape,
        settled,
        folder.weights,
        folder.files,
        load_tokenizer,
    )


def _folder_clues(path: Path, config: dict[str, Any]) -> Clues:
    generation = _maybe_json(path / "generation_config.json")
    tokenizer = _maybe_json(path / "tokenizer_config.json")
    added = _maybe_json(path / "tokenizer.json").get("added_tokens", [])
    special = {str(t["content"]): int(t["id"]) for t in added}
    mask = tokenizer.get("mask_token")
    mask = mask.get("content") if isinstance(mask, dict) else mask
    given = (config.get("mask_token_id"), generation.get("mask_token_id"), special.get(str(mask)))
    auto_map = config.get("auto_map") or {}
    block = next(
        (config[k] for k in ("block_size", "block_length", "bd_size") if k in config), None
    )
    # A hub cache keeps a snapshot under its hash: the model's name is two levels up.
    name = path.resolve().name
    if path.resolve().parent.name == "snapshots":
        name = path.resolve().parents[1].name.rpartition("--")[2]
    return Clues(
        kind=str(config.get("model_type", "")),
        names=(name, str(config.get("_name_or_path", "")), *map(str, auto_map.values())),
        classes=tuple(map(str, config.get("architectures") or ())),
        remote=bool(auto_map),
        mask_ids=tuple(int(i) for i in given if i is not None),
        stop_ids=_ids(generation.get("eos_token_id", config.get("eos_token_id"))),
        block=block,
        special=special,
    )


def _ids(value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (int(value),)


def _maybe_json(file: Path) -> dict[str, Any]:
    return read_json(file) if file.is_file() else {}
