"""/v1/responses on the wire: text and function calls; nothing is stored between requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

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
    Strict,
    ToolChoice,
)


class Part(Strict):
    inert: ClassVar[Inert] = {"annotations": ([],), "logprobs": ([],)}
    type: Literal["input_text", "output_text"]
    text: str


class Echoed(Strict):
    """id, status: as an answer had them; they are not read again."""

    inert: ClassVar[Inert] = {"phase": ()}
    id: str | None = None
    status: Literal["completed", "incomplete", "in_progress"] | None = None


class InputMessage(Echoed):
    type: Literal["message"] = "message"
    role: Literal["user", "system", "developer", "assistant"]
    content: str | list[Part]


class InputCall(Echoed):
    """arguments: a JSON object, as text."""

    type: Literal["function_call"]
    call_id: str
    name: Name
    arguments: str


class InputResult(Echoed):
    type: Literal["function_call_output"]
    call_id: str
    output: str | list[Part]


def _kind(item: Any) -> str:
    """A message may leave its type out."""
    kind = item.get("type") if isinstance(item, Mapping) else getattr(item, "type", None)
    return kind if isinstance(kind, str) else "message"


InputItem = Annotated[
    Annotated[InputMessage, Tag("message")]
    | Annotated[InputCall, Tag("function_call")]
    | Annotated[InputResult, Tag("function_call_output")],
    Discriminator(_kind),
]


class FlatTool(Function):
    type: Literal["function"]


class FlatChoice(Strict):
    type: Literal["function"]
    name: Name


class FlatSchema(NamedSchema):
    type: Literal["json_schema"]


class TextFormat(Strict):
    inert: ClassVar[Inert] = {"verbosity": ("medium",)}
    format: Annotated[Free | AnyObject | FlatSchema, Field(discriminator="type")] | None = None


class ResponseRequest(Sampling):
    """input: a user's text, or the items of the conversation so far. store is refused: give the
    whole conversation each time. max_output_tokens: as max_completion_tokens of a chat."""

    inert: ClassVar[Inert] = {
        **NOTHING,
        "background": (False,),
        "conversation": (),
        "include": ([],),
        "max_tool_calls": (),
        "moderation": (),
        "previous_response_id": (),
        "prompt": (),
        "prompt_cache_retention": (),
        "reasoning": ({}, {"effort": "none"}),
        "stream_options": ({}, {"include_obfuscation": False}),
        "truncation": ("disabled",),
    }
    input: str | Annotated[list[InputItem], Field(min_length=1)]
    instructions: str | None = None
    tools: list[FlatTool] | None = None
    tool_choice: ToolChoice | FlatChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextFormat | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None


class InputDetails(BaseModel):
    cached_tokens: int


class OutputDetails(BaseModel):
    reasoning_tokens: Literal[0] = 0


class ResponseUsage(BaseModel):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class OutputText(BaseModel):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[None]
    logprobs: list[None]


class OutputMessage(BaseModel):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["completed", "incomplete"]
    content: list[OutputText]


class OutputCall(BaseModel):
    id: str
    type: Literal["function_call"] = "function_call"
    call_id: str
    name: str
    arguments: str
    status: Literal["completed"]


class Response(BaseModel):
    """incomplete_details: says max_output_tokens where the answer had no more room."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    model: str
    status: Literal["completed", "incomplete"]
    output: list[OutputMessage | OutputCall]
    usage: ResponseUsage
    incomplete_details: dict[str, str] | None
    mezzotint: Block
