"""llama.cpp through its C API: the yardstick of the engine's passes and of whole tasks.

Set as its own documentation advises for speed: every core, memory-mapped weights,
repacked at load where it can, flash attention left to its choice, 512 tokens a
micro-batch. Knows one sequence and passes over it; what is written is its caller's matter.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from mezzotint.atomic import replacing
from mezzotint.canvas import FloatArray
from mezzotint.errors import BackendError

FILE_TYPES = {"q4_0": 2, "q8_0": 7, "bf16": 32}  # enum llama_ftype


def require() -> Any:
    """The low-level module. Raises BackendError if the extra `bench` is missing."""
    try:
        from llama_cpp import llama_cpp as lib
    except ImportError as e:
        raise BackendError(
            "llama-cpp-python is not installed", "pip install 'mezzotint[bench]'"
        ) from e
    return lib


def quantised(source: Path, kind: str = "q4_0", target: Path | None = None) -> Path:
    """The GGUF `source` in another type, made once by llama.cpp's own quantiser.

    target: where it is kept; by default beside the source.
    """
    target = target or source.with_name(f"{source.stem}.llama-{kind}.gguf")
    if target.exists():
        return target
    lib = require()
    _silence()
    params = lib.llama_model_quantize_default_params()
    params.ftype = FILE_TYPES[kind]
    params.allow_requantize = True
    with replacing(target) as partial:
        names = os.fsencode(source), os.fsencode(partial)
        if lib.llama_model_quantize(*names, ctypes.byref(params)):
            raise BackendError(f"llama.cpp could not quantise {source} to {kind}")
    return target


def version() -> str:
    """Version of the package and the instruction sets llama.cpp says it uses."""
    import llama_cpp

    info = require().llama_print_system_info().decode()
    used = [item.split("=")[0].strip() for item in info.split("|") if item.strip().endswith("= 1")]
    return f"llama-cpp-python {llama_cpp.__version__} ({', '.join(used)})"


class Context:
    """A model's cache of `size` positions for one sequence, on `threads` threads.

    Raises BackendError if llama.cpp cannot load the file.
    """

    def __init__(self, path: Path, size: int, threads: int) -> None:
        self._lib = lib = require()
        _silence()
        lib.llama_backend_init()
        self.model = lib.llama_model_load_from_file(
            os.fsencode(path), lib.llama_model_default_params()
        )
        if not self.model:
            raise BackendError(f"llama.cpp could not load {path}")
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = size, size, 512
        params.n_threads = params.n_threads_batch = threads
        self._context = lib.llama_init_from_model(self.model, params)
        if not self._context:
            raise BackendError(f"llama.cpp has no memory for {size} positions of {path}")
        self._memory = lib.llama_get_memory(self._context)
        self.vocab = lib.llama_model_get_vocab(self.model)
        self.words = int(lib.llama_vocab_n_tokens(self.vocab))
        self.size, self.length = size, 0
        self._batch = lib.llama_batch_init(size, 0, 1)
        fields = ("token", "pos", "n_seq_id", "logits")
        self._rows = {n: np.ctypeslib.as_array(getattr(self._batch, n), (size,)) for n in fields}
        self._rows["n_seq_id"][:] = 1
        for i in range(size):
            self._batch.seq_id[i][0] = 0

    def decode(self, tokens: Sequence[int], every: bool = False) -> None:
        """One pass over `tokens` at the end of the cache; logits of the last, or of `every`."""
        count = len(tokens)
        if self.length + count > self.size:
            raise BackendError(f"{self.length + count} positions, the context has {self.size}")
        self._batch.n_tokens = count
        self._rows["token"][:count] = tokens
        self._rows["pos"][:count] = np.arange(self.length, self.length + count)
        self._rows["logits"][: count - 1] = every
        self._rows["logits"][count - 1] = 1
        if failed := self._lib.llama_decode(self._context, self._batch):
            raise BackendError(f"llama_decode failed with {failed} at {self.length}")
        self._lib.llama_get_logits(self._context)  # waits for the result
        self.length += count

    def logits(self, row: int) -> FloatArray:
        """Of a row of the last pass (V,), a view; -1 is the last."""
        found = self._lib.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(found, (self.words,))

    def truncate(self, length: int) -> None:
        """Forget what is cached from `length` on."""
        if length < self.length:
            self._lib.llama_memory_seq_rm(self._memory, 0, length, -1)
            self.length = length

    def tokenize(self, text: str) -> list[int]:
        """By the vocabulary in the file; spellings of control tokens are those tokens."""
        raw = text.encode()
        room = (self._lib.llama_token * (len(raw) + 8))()
        count = self._lib.llama_tokenize(self.vocab, raw, len(raw), room, len(room), False, True)
        return list(room[:count])

    def close(self) -> None:
        self._rows.clear()
        self._lib.llama_batch_free(self._batch)
        self._lib.llama_free(self._context)
        self._lib.llama_model_free(self.model)


class LlamaCpp:
    """Passes over the text `tokens`, timed (see `bench.engine.Timed`)."""

    def __init__(self, path: Path, tokens: Sequence[int], context: int, threads: int) -> None:
        self._tokens, self._context = list(tokens), Context(path, context, threads)

    def prefix(self, length: int) -> None:
        """Make the cache hold exactly the first `length` tokens."""
        if self._context.length != length:
            self._context.truncate(0)
            if length:
                self._context.decode(self._tokens[:length])

    def pass_ms(self, count: int) -> float:
        """Milliseconds of one pass over `count` tokens after the prefix, logits of all."""
        return self._timed(self._context.length, count, every=True)

    def prefill_ms(self, count: int) -> float:
        """Milliseconds to read `count` tokens into an empty cache, logits of the last."""
        self._context.truncate(0)
        return self._timed(0, count, every=False)

    def close(self) -> None:
        self._context.close()

    def _timed(self, at: int, count: int, every: bool) -> float:
        start = perf_counter()
        self._context.decode(self._tokens[at : at + count], every)
        took = perf_counter() - start
        self._context.truncate(at)
        return took * 1e3


@cache
def _silence() -> object:
    """Stop llama.cpp's log. It keeps the callback's pointer, so the cache keeps the callback."""
    lib = require()
    callback = lib.llama_log_callback(lambda level, text, data: None)
    lib.llama_log_set(callback, ctypes.c_void_p(0))
    return callback
