"""Arms behind an OpenAI-compatible address: Ollama, LM Studio, a cloud.

They see the same messages, the tools in the system message; how they spell them in tokens is
not to be seen, nor what their processors do. Passes are counted as pieces of the stream, and
their cache is their own matter: warm means that the system message was sent just before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from mezzotint.bench.arms.arm import Answer, Asked
from mezzotint.bench.arms.spec import OpenaiSpec
from mezzotint.bench.tasks import Message
from mezzotint.errors import BackendError


class OpenAi:
    """Raises BackendError without the package `openai`, or where nothing answers."""

    def __init__(self, spec: OpenaiSpec) -> None:
        try:
            import openai
        except ImportError as e:
            raise BackendError("openai is not installed", "pip install 'mezzotint[bench]'") from e
        self._spec, self._fault = spec, openai.OpenAIError
        key = os.environ.get(spec.key, "none")
        self._client: Any = openai.OpenAI(base_url=spec.base_url, api_key=key, max_retries=0)

    def prompt(self, messages: Sequence[Message]) -> None:
        return None

    def ready(self, asked: Asked) -> None:
        if asked.held:
            for _ in self._pieces(asked.task.messages[:1], 1):
                pass

    def run(self, asked: Asked) -> Answer:
        began, text, first, prefill = time.perf_counter(), "", None, 0.0
        passes, tokens, stop, watching = 0, 0, "stop", 0.0
        for piece in self._pieces(asked.task.messages, asked.task.max_tokens):
            now = time.perf_counter() - began - watching
            if piece.usage:
                tokens = piece.usage.completion_tokens
            if not piece.choices:
                continue
            stop = "length" if piece.choices[0].finish_reason == "length" else stop
            if said := piece.choices[0].delta.content:
                prefill, passes, text = prefill or now, passes + 1, text + said
                if first is None and asked.task.done(text):
                    first = now
            watching = time.perf_counter() - began - now
        end = time.perf_counter() - began - watching
        model = end - prefill
        return Answer(text, first, end, prefill, model, None, passes, tokens or passes, 0, stop)

    def close(self) -> None:
        self._client.close()

    def _pieces(self, messages: Sequence[Message], most: int) -> Any:
        try:
            yield from self._client.chat.completions.create(
                model=self._spec.model,
                messages=list(messages),
                temperature=0.0,
                max_tokens=most,
                stream=True,
                stream_options={"include_usage": True},
            )
        except self._fault as error:
            where = f"{self._spec.base_url}, model {self._spec.model}"
            raise BackendError(f"{where}: {error}", "is the server up?") from None
