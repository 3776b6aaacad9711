"""Arms on llama.cpp, AR as its users run it: greedy, with the prompt cache on.

Plain; with prompt-lookup drafts, verified in one pass; or held to the grammar that its own
converter makes of the tools' schemas. The work between passes is as lean as its server's: only
wanted logits are computed, and the grammar is asked about the likeliest token alone before
it is asked about all.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mezzotint import toolcall
from mezzotint.bench.arms.arm import Answer, Asked, Clock
from mezzotint.bench.arms.spec import MOST_CALLS, LlamaSpec
from mezzotint.bench.llama import Context, require
from mezzotint.bench.tasks import Message
from mezzotint.errors import UsageError
from mezzotint.family import Family
from mezzotint.text import Tokenizer
from mezzotint.toolcall import Schema

_PROSE = r"prose ::= [^{ \t\r\n] ([^\n] | [\n])*"
_TOKEN = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Llama:
    """tokenizer, family: of the checkpoint that the file was made from; they say how text is
    spelt and where a turn ends."""

    def __init__(
        self, spec: LlamaSpec, file: Path, tokenizer: Tokenizer, family: Family, threads: int
    ) -> None:
        self._spec, self._tokenizer, self._family = spec, tokenizer, family
        self._context = Context(file, spec.context, threads)
        self._draft = _lookup(spec.lookup[0]) if spec.lookup else None
        self._gbnf = b""
        self._grammar: _Grammar | None = None

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        text = self._tokenizer.decode(self._tokenizer.chat(messages), control=True)
        return tuple(self._context.tokenize(text))

    def ready(self, asked: Asked) -> None:
        self._context.truncate(0)
        self._context.decode(asked.waking)
        self._context.truncate(asked.held)
        tools = asked.task.tools if self._spec.structure else ()
        self._gbnf = gbnf(tools).encode() if tools else b""
        self._grammar = self._compiled() if asked.held else None

    def run(self, asked: Asked) -> Answer:
        clock = Clock()
        with clock:
            grammar = self._grammar or self._compiled()
            turn = _Turn(self._context, grammar, self._draft)
        try:
            return self._written(asked, turn, clock)
        finally:
            if grammar:
                grammar.close()

    def _written(self, asked: Asked, turn: _Turn, clock: Clock) -> Answer:
        some, first = turn.write(asked.ids[asked.held :], asked.ids), None
        written, stop = list[int](), "length"
        while stop == "length" and len(written) < asked.task.max_tokens:
            with clock:
                new = next(some)
            for token in new:
                written.append(token)
                if token in self._family.stop_ids:
                    stop = "stop"
                    break
            if first is None and asked.task.done(self._text(written)):
                first = clock.wall
        return Answer(
            self._text(written), first, clock.wall, turn.prefill, turn.model, clock.cpu,
            turn.passes, len(written), 0, stop,
        )  # fmt: skip

    def close(self) -> None:
        self._context.close()

    def _compiled(self) -> _Grammar | None:
        return _Grammar(self._context, self._gbnf) if self._gbnf else None

    def _text(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode([t for t in tokens if t not in self._family.stop_ids])


class _Turn:
    """The tokens of one answer, some at a time, with what they took."""

    def __init__(self, context: Context, grammar: _Grammar | None, draft: Any) -> None:
        self._context, self._grammar, self._draft = context, grammar, draft
        self.prefill = self.model = 0.0
        self.passes = 0

    def write(self, prompt: Sequence[int], known: Sequence[int]) -> Iterator[list[int]]:
        """prompt: what of the request `known` is not cached. Never ends by itself."""
        text, drafted = list(known), list[int]()
        self.prefill = self._timed(prompt, every=False)
        token = self._pick(-1)
        while True:
            text.append(token)
            yield [token]
            if self._draft is not None:
                found = self._draft(np.array(text, np.intc))
                drafted = [int(t) for t in found][: self._context.size - len(text)]
            self.model += self._timed([token, *drafted], every=bool(drafted))
            self.passes += 1
            accepted = []
            for row, proposed in enumerate(drafted):
                if (best := self._pick(row)) != proposed:
                    break
                accepted.append(best)
            self._context.truncate(len(text) + len(accepted))
            token = self._pick(len(accepted) if drafted else -1)
            text += accepted
            if accepted:
                yield accepted

    def _timed(self, tokens: Sequence[int], every: bool) -> float:
        began = time.perf_counter()
        self._context.decode(tokens, every)
        return time.perf_counter() - began

    def _pick(self, row: int) -> int:
        logits = self._context.logits(row)
        return self._grammar.pick(logits) if self._grammar else int(logits.argmax())


class _Grammar:
    """llama.cpp's grammar sampler, asked as its server asks it."""

    def __init__(self, context: Context, gbnf: bytes) -> None:
        self._lib = lib = require()
        self._sampler = lib.llama_sampler_init_grammar(context.vocab, gbnf, b"root")
        if not self._sampler:
            raise UsageError("llama.cpp does not understand the grammar made of the tools")

    def pick(self, logits: Any) -> int:
        """The likeliest token that the grammar allows, which is thereby written."""
        token = int(logits.argmax())
        if np.isneginf(self._apply(np.array([token], np.int32), logits[[token]])[0]):
            token = int(self._apply(np.arange(len(logits), dtype=np.int32), logits).argmax())
        self._lib.llama_sampler_accept(self._sampler, token)
        return token

    def _apply(self, ids: Any, logits: Any) -> Any:
        some = np.zeros(len(ids), _TOKEN)
        some["id"], some["logit"] = ids, logits
        data = some.ctypes.data_as(ctypes.POINTER(self._lib.llama_token_data))
        array = self._lib.llama_token_data_array(data, len(some), -1, False)
        self._lib.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return some["logit"]

    def close(self) -> None:
        self._lib.llama_sampler_free(self._sampler)


def gbnf(tools: Sequence[Schema]) -> str:
    """One to MOST_CALLS calls, a line each, or prose: what our own arms are held to.

    Raises UsageError for a schema that llama.cpp's converter does not take.
    """
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    calls = [
        {
            "type": "object",
            "properties": {tool["name"]: tool["parameters"]},
            "required": [tool["name"]],
            "additionalProperties": False,
        }
        for tool in map(toolcall.function, tools)
    ]
    try:
        rules = json_schema_to_gbnf(json.dumps({"oneOf": calls}))
    except Exception as error:  # it raises whatever its parser meets
        raise UsageError(f"llama.cpp's converter refuses a schema: {error!r}") from None
    rules = "\n".join(
        line.replace("root ::=", "call ::=", 1) if line.startswith("root ::=") else line
        for line in rules.splitlines()
    )
    root = f'root ::= call ("\\n" call){{0,{MOST_CALLS - 1}}} | prose'
    return "\n".join([root, _PROSE, rules])


def _lookup(count: int) -> Any:
    """llama-cpp-python's own draft model: `count` tokens that once followed the last two."""
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    return LlamaPromptLookupDecoding(num_pred_tokens=count)
