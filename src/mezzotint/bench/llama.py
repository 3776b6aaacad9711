"""llama.cpp through its C API, as the yardstick of `mezzotint bench engine`.

Set as its own documentation advises for speed: every core, memory-mapped weights,
repacked at load where it can, flash attention left to its choice, 512 tokens a
micro-batch. Knows one sequence and the time of a pass; it never looks at the logits.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from mezzotint.errors import BackendError

Q4_0 = 2  # enum llama_ftype


def require() -> Any:
    """The low-level module. Raises BackendError if the extra `bench` is missing."""
    try:
        from llama_cpp import llama_cpp as lib
    except ImportError as e:
        raise BackendError(
            "llama-cpp-python is not installed", "pip install 'mezzotint[bench]'"
        ) from e
    return lib


def quantised(source: Path) -> Path:
    """A Q4_0 file of the GGUF `source`, made once by llama.cpp's quantiser, kept beside it."""
    target = source.with_name(f"{source.stem}.llama-q4_0.gguf")
    if target.exists():
        return target
    lib = require()
    _silence()
    part = target.with_name(target.name + ".part")
    params = lib.llama_model_quantize_default_params()
    params.ftype = Q4_0
    params.allow_requantize = True
    if lib.llama_model_quantize(os.fsencode(source), os.fsencode(part), ctypes.byref(params)):
        part.unlink(missing_ok=True)
        raise BackendError(f"llama.cpp could not quantise {source} to Q4_0")
    os.replace(part, target)
    return target


def version() -> str:
    """Version of the package and the instruction sets llama.cpp says it uses."""
    import llama_cpp

    info = require().llama_print_system_info().decode()
    used = [item.split("=")[0].strip() for item in info.split("|") if item.strip().endswith("= 1")]
    return f"llama-cpp-python {llama_cpp.__version__} ({', '.join(used)})"


class LlamaCpp:
    """One context of `context` positions on `threads` threads, with `tokens` as its text."""

    def __init__(self, path: Path, tokens: Sequence[int], context: int, threads: int) -> None:
        self._lib = lib = require()
        self._tokens = list(tokens)
        _silence()
        lib.llama_backend_init()
        self._model = lib.llama_model_load_from_file(
            os.fsencode(path), lib.llama_model_default_params()
        )
        if not self._model:
            raise BackendError(f"llama.cpp could not load {path}")
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context, context, 512
        params.n_threads = params.n_threads_batch = threads
        self._context = lib.llama_init_from_model(self._model, params)
        self._memory = lib.llama_get_memory(self._context)
        self._batch = lib.llama_batch_init(context, 0, 1)
        self._length = 0

    def prefix(self, length: int) -> None:
        """Make the cache hold exactly the first `length` tokens."""
        if self._length != length:
            self._cut(0)
            self._decode(0, length, every=False)
            self._length = length

    def pass_ms(self, count: int) -> float:
        """Milliseconds of one pass over `count` tokens after the prefix, logits of all."""
        took = self._decode(self._length, count, every=True)
        self._cut(self._length)
        return took

    def prefill_ms(self, count: int) -> float:
        """Milliseconds to read `count` tokens into an empty cache, logits of the last."""
        self.prefix(0)
        took = self._decode(0, count, every=False)
        self._cut(0)
        return took

    def close(self) -> None:
        self._lib.llama_batch_free(self._batch)
        self._lib.llama_free(self._context)
        self._lib.llama_model_free(self._model)

    def _cut(self, length: int) -> None:
        self._lib.llama_memory_seq_rm(self._memory, 0, length, -1)

    def _decode(self, at: int, count: int, every: bool) -> float:
        if not count:
            return 0.0
        batch = self._batch
        batch.n_tokens = count
        for i in range(count):
            batch.token[i], batch.pos[i] = self._tokens[at + i], at + i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
            batch.logits[i] = every or i == count - 1
        start = perf_counter()
        if failed := self._lib.llama_decode(self._context, batch):
            raise BackendError(f"llama_decode failed with {failed} at {at}, {count} tokens")
        self._lib.llama_get_logits(self._context)  # waits for the result
        return (perf_counter() - start) * 1e3


@cache
def _silence() -> object:
    """Stop llama.cpp's log. It keeps the callback's pointer, so the cache keeps the callback."""
    lib = require()
    callback = lib.llama_log_callback(lambda level, text, data: None)
    lib.llama_log_set(callback, ctypes.c_void_p(0))
    return callback
