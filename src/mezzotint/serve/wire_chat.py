"""/v1/chat/completions on the wire."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from mezzotint.serve.wire import (
    NOTHING,
    AnyObject,
    Block,
    Free,
    Function,
    Inert,
    Name,
    NamedSchema,
    Sampling,
    Seed,
    Stop,
    StreamOptions,
    Strict,
    ToolChoice,
    Usage,
)


class TextPart(Strict):
    type: Literal["text"]
    text: str


Content = str | list[TextPart]


class System(Strict):
    role: Literal["system", "developer"]
    content: Content


class User(Strict):
    role: Literal["user"]
    content: Content


class Called(Strict):
    """arguments: a JSON object, as text."""

    name: Name
    arguments: str


class ToolCall(Strict):
    inert: ClassVar[Inert] = {"index": tuple(range(128))}  # of a stream that is sent back
    id: str
    type: Literal["function"] = "function"
    function: Called


class Assistant(Strict):
    inert: ClassVar[Inert] = {
        "annotations": ([],),
        "audio": (),
        "function_call": (),
        "refusal": (),
    }
    role: Literal["assistant"]
    content: Content | None = None
    tool_calls: list[ToolCall] | None = None


class ToolResult(Strict):
    role: Literal["tool"]
    tool_call_id: str
    content: Content


Message = Annotated[System | User | Assistant | ToolResult, Field(discriminator="role")]


class Tool(Strict):
    type: Literal["function"]
    function: Function


class NamedFunction(Strict):
    name: Name


class NamedTool(Strict):
    type: Literal["function"]
    function: NamedFunction


class ObeysSchema(Strict):
    type: Literal["json_schema"]
    json_schema: NamedSchema


ResponseFormat = Annotated[Free | AnyObject | ObeysSchema, Field(discriminator="type")]


class ChatRequest(Sampling):
    """seed: the same seed, with the same request, gives the same answer; without one, a request
    that draws draws anew. n: candidates; the first has the seed, the next seed + 1, …
    stop: ends prose, and never cuts a call. max_completion_tokens: by default 1024, or 128 for a
    model that computes the whole canvas, or what the context has left."""

    inert: ClassVar[Inert] = {
        **NOTHING,
        "audio": (),
        "frequency_penalty": (0,),
        "function_call": (),
        "functions": (),
        "logit_bias": ({},),
        "logprobs": (False,),
        "modalities": (["text"],),
        "moderation": (),
        "prediction": (),
        "presence_penalty": (0,),
        "prompt_cache_retention": (),
        "reasoning_effort": ("none",),
        "verbosity": ("medium",),
        "web_search_options": (),
    }
    messages: Annotated[list[Message], Field(min_length=1)]
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    stop: Stop | None = None
    seed: Seed | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    stream_options: StreamOptions | None = None


class MadeFunction(BaseModel):
    name: str
    arguments: str


class MadeCall(BaseModel):
    id: str
    type: Literal["function"] = "function"
    function: MadeFunction


class Answered(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    tool_calls: list[MadeCall] | None = None


class Choice(BaseModel):
    index: int
    message: Answered
    finish_reason: Literal["stop", "length", "tool_calls"]
    logprobs: None = None


class ChatResponse(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    mezzotint: Block
