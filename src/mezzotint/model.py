"""A model ready to write: a checkpoint, its tokenizer and an engine, joined by name.

Knows where models are and which engine runs them; how text is decoded is `generate`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from mezzotint.auto import Way, choose, settled, ways
from mezzotint.backend import Session, toy
from mezzotint.builtin import BUILTIN
from mezzotint.checkpoint.memory import split_weights
from mezzotint.costs import Costs, costs
from mezzotint.errors import BackendError, UsageError
from mezzotint.family import Family
from mezzotint.progress import bar

if TYPE_CHECKING:
    from mezzotint.backend.native import NativeModel
    from mezzotint.checkpoint.open import Checkpoint
    from mezzotint.text import Tokenizer

Backend = Literal["native", "reference", "toy"]


class Engine(Protocol):
    """What opens sessions: `NativeModel` or `Reference`."""

    def session(self) -> Session: ...


@dataclass(frozen=True)
class Model:
    """A loaded checkpoint; what `generate` asks for.

    context: the longest canvas. decoding: what its family's policy was chosen from.
    """

    name: str
    path: Path
    family: Family
    context: int
    tokenizer: Tokenizer
    engine: Engine
    decoding: tuple[list[Way], Costs] | None = None

    def session(self) -> Session:
        return self.engine.session()


def load(
    name_or_path: str,
    backend: Backend = "native",
    weights: str | None = None,
    threads: int = 0,
    family: str | None = None,
    quiet: bool = False,
    adapter: Path | None = None,
) -> Model | toy.ToyModel:
    """Load a stored model, a .gguf file, a checkpoint folder, or a toy ("toy", "toy-ar", …).

    A known name that is not in the store is pulled first, with its progress on stderr
    unless `quiet`. A toy's name always means the toy. weights: the packed format of
    `native` (`reference` computes in fp32); by default int4, and int6 where an adapter is
    merged, whose small changes int4 would round away. threads: 0 = one a physical core.
    adapter: the folder of one to merge.
    Raises UsageError, ModelError, PullError, BackendError.
    """
    if backend not in get_args(Backend):
        raise UsageError(f"no backend {backend!r}", f"choose one of {', '.join(get_args(Backend))}")
    small = name_or_path in BUILTIN or adapter is not None
    weights = weights or ("int6" if small else "int4")
    split_weights(weights)  # a bad format is an error on every backend
    if backend == "toy" or name_or_path in toy.FAMILIES:
        return toy.load(name_or_path)
    checkpoint = open_named(name_or_path, family, quiet, adapter)
    tokenizer = checkpoint.load_tokenizer()
    if backend == "native":
        native = _native(checkpoint, weights, threads, quiet)
        decoding = _weighed(checkpoint, native)
        engine: Engine = native
    else:
        engine, decoding = _reference(checkpoint, weights, threads, quiet), None
    chosen = settled(checkpoint.family, choose(*decoding)) if decoding else checkpoint.family
    return Model(
        checkpoint.name,
        checkpoint.path,
        chosen,
        checkpoint.shape.context,
        tokenizer,
        engine,
        decoding,
    )


def _weighed(checkpoint: Checkpoint, engine: NativeModel) -> tuple[list[Way], Costs] | None:
    """What is known of its ways of decoding, and what a pass costs here."""
    if not checkpoint.ways:
        return None
    return ways(checkpoint.ways), costs(engine, engine.identity)


def trained(loaded: Model | toy.ToyModel, refusal: str) -> Model:
    """What was loaded, if it is no toy. Raises UsageError, saying `refusal`."""
    if not isinstance(loaded, Model):
        raise UsageError(refusal)
    return loaded


def open_named(
    name_or_path: str,
    family: str | None = None,
    quiet: bool = False,
    adapter: Path | None = None,
) -> Checkpoint:
    """The checkpoint behind a name or path, pulled if it is a known name not yet here.

    adapter: the folder of one to merge into its weights.
    """
    from mezzotint.checkpoint import open_checkpoint
    from mezzotint.checkpoint.adapter import adapted
    from mezzotint.pull import ensure
    from mezzotint.store import resolve

    if own := BUILTIN.get(name_or_path):
        opened = open_named(own.base, family, quiet, adapter or own.folder)
        return replace(opened, name=name_or_path)
    if adapter is not None:
        return adapted(open_named(name_or_path, family, quiet), adapter)
    ensure(name_or_path, quiet)
    return open_checkpoint(resolve(name_or_path), family)


def _native(checkpoint: Checkpoint, weights: str, threads: int, quiet: bool) -> NativeModel:
    from mezzotint.checkpoint.memory import check_fits, kv_bytes, weight_bytes

    try:
        from mezzotint.backend.native import NativeModel
    except ImportError as e:
        raise BackendError(
            f"the native core is not built: {e}", "pip install . in the project's folder"
        ) from e
    shape = checkpoint.shape
    needed = weight_bytes(shape, weights)
    check_fits(needed + kv_bytes(shape, min(shape.context, 4096)), checkpoint.name)
    with bar(f"packing {checkpoint.name} to {weights}", quiet, of_bytes=False) as progress:
        return NativeModel.load(checkpoint, weights, threads, progress=progress)


def _reference(checkpoint: Checkpoint, weights: str, threads: int, quiet: bool) -> Engine:
    try:
        import torch

        from mezzotint.backend.reference import Reference
    except ImportError as e:
        raise BackendError(
            "the reference backend needs PyTorch", "pip install 'mezzotint[torch]'"
        ) from e
    if threads:
        torch.set_num_threads(threads)
    return Reference.load(checkpoint.shape, checkpoint.weights)
