"""/v1/completions on the wire."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from mezzotint.serve.wire import NOTHING, Block, Inert, Sampling, Seed, Stop, StreamOptions, Usage


class CompletionRequest(Sampling):
    """prompt: text that is continued as it is. suffix: text that follows it; what is between is
    filled in, in at most max_tokens. max_tokens: 16, as OpenAI has it; with a suffix, 32."""

    inert: ClassVar[Inert] = {
        **NOTHING,
        "best_of": (1,),
        "echo": (False,),
        "frequency_penalty": (0,),
        "logit_bias": ({},),
        "logprobs": (),
        "presence_penalty": (0,),
    }
    prompt: str | Annotated[list[str], Field(min_length=1, max_length=1)]
    suffix: str | None = None
    stop: Stop | None = None
    seed: Seed | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    stream_options: StreamOptions | None = None


class TextChoice(BaseModel):
    index: int
    text: str
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class CompletionResponse(BaseModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage
    mezzotint: Block
