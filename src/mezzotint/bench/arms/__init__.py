"""The arms of `mezzotint bench run`: what a prompt can be given to, opened from data.

arm = Bench(threads=0).open(read("exact"))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mezzotint.backend.native import NativeModel, pool
from mezzotint.bench.arms.arm import Answer, Arm, Asked, Clock
from mezzotint.bench.arms.files import digest, exported, sha256
from mezzotint.bench.arms.spec import (
    LlamaSpec,
    OpenaiSpec,
    OursSpec,
    Spec,
    checked,
    known,
    read,
)
from mezzotint.checkpoint import Checkpoint
from mezzotint.model import Model, load, open_named, trained
from mezzotint.text import Tokenizer

__all__ = [
    "Answer", "Arm", "Asked", "Bench", "Clock", "LlamaSpec", "OpenaiSpec", "OursSpec", "Spec",
    "checked", "known", "read",
]  # fmt: skip


@dataclass
class Bench:
    """Opens arms on `threads` threads (0: one a physical core), each model once.

    Raises UsageError, ModelError, PullError and BackendError as loading does.
    """

    threads: int = 0
    quiet: bool = False
    _models: dict[tuple[str, str | None], Model] = field(default_factory=dict)
    _checkpoints: dict[str, Checkpoint] = field(default_factory=dict)

    def open(self, spec: Spec) -> Arm:
        """A LlamaSpec's first type and first number of drafts are taken."""
        if isinstance(spec, OursSpec):
            from mezzotint.bench.arms.ours import Ours

            return Ours(spec, self.model(spec.model, spec.weights))
        if isinstance(spec, OpenaiSpec):
            from mezzotint.bench.arms.openai import OpenAi

            return OpenAi(spec)
        from mezzotint.bench.arms.llama import Llama

        checkpoint, threads = self.checkpoint(spec.model), pool(self.threads).threads
        tokenizer, file = checkpoint.load_tokenizer(), self.file(spec)
        return Llama(spec, file, tokenizer, checkpoint.family, threads)

    def tokenizer(self, spec: Spec) -> Tokenizer | None:
        """What an arm's model spells prompts with; None where a server does."""
        if isinstance(spec, OpenaiSpec):
            return None
        return self.checkpoint(spec.model).load_tokenizer()

    def weights(self, spec: Spec) -> dict[str, Any]:
        """Where an arm's weights come from, their format and sha256; how they are decoded."""
        if isinstance(spec, OpenaiSpec):
            return {"model": spec.model, "at": spec.base_url, "sha256": None}
        source = self.checkpoint(spec.model)
        found: dict[str, Any] = {"model": source.name, "sha256": digest(source)}
        if isinstance(spec, LlamaSpec):
            file = self.file(spec)
            found |= {"format": spec.types[0], "bytes": file.stat().st_size}
            return found | {"gguf_sha256": sha256(file)}
        model = self.model(spec.model, spec.weights)
        assert isinstance(model.engine, NativeModel)
        chosen: dict[str, Any] = {
            "policy": spec.policy or model.family.policy,
            "block": model.family.block,
        }
        chosen |= {"block": spec.block} if spec.block else {}
        found |= {"format": model.engine.weights, "bytes": model.engine.packed_bytes}
        return found | {"decoding": chosen}

    def model(self, name: str, weights: str | None = None) -> Model:
        key = (name, weights)
        if key not in self._models:
            loaded = load(name, weights=weights, threads=self.threads, quiet=self.quiet)
            self._models[key] = trained(loaded, f"{name} has no prompts to answer")
        return self._models[key]

    def checkpoint(self, name: str) -> Checkpoint:
        if name not in self._checkpoints:
            self._checkpoints[name] = open_named(name, quiet=self.quiet)
        return self._checkpoints[name]

    def file(self, spec: LlamaSpec) -> Path:
        """The GGUF file that llama.cpp loads for an arm, made once."""
        return exported(self.checkpoint(spec.model), spec.types[0], self.quiet)
