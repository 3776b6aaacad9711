"""What the three endpoints that generate have in common on the wire.

Law: nothing is accepted and ignored. A parameter that is not here is refused by name; one that
OpenAI has and this server has not is taken only at a value that asks for nothing (`inert`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

Item = TypeVar("Item")
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
Schema = dict[str, JsonValue]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Stop = str | Annotated[list[str], Field(max_length=4)]
ToolChoice = Literal["auto", "none", "required"]

Inert = Mapping[str, tuple[Any, ...]]

NOTHING: Inert = {
    "metadata": ({},),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "top_logprobs": (0,),
}
"""Parameters of every endpoint and the values, beside null, that ask for nothing."""


class Strict(BaseModel):
    """A part of a request. inert: names that are taken at these values only, null among them."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    inert: ClassVar[Inert] = {}

    @model_validator(mode="before")
    @classmethod
    def _without_inert(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        for name in data.keys() & cls.inert.keys():
            value = data[name]
            if value is not None and value not in cls.inert[name]:
                usual = " or ".join(map(json.dumps, cls.inert[name])) or "null"
                message = f"is not supported; it can only be left out, or be {usual}"
                raise PydanticCustomError("unsupported", message, {"param": name})
        return {name: value for name, value in data.items() if name not in cls.inert}


class Extension(Strict):
    """Ours. policy: how to decode: `ar`, `exact`, `fast`, or a policy's spelling; by default the
    model's own. canvas: with `stream`, every state of the canvas as an event of its own."""

    policy: str | None = None
    canvas: bool = False


class Sampling(Strict):
    """Every generating request. temperature and top_p: by default the model's own, which for
    the built-in model is greedy. user, safety_identifier: whom the queue is fair to.
    prompt_cache_key: not needed, since prompts are cached by their tokens."""

    model: str
    stream: bool = False
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    mezzotint: Extension = Extension()


class StreamOptions(Strict):
    """include_usage: a last chunk, without choices, tells the usage."""

    inert: ClassVar[Inert] = {"include_obfuscation": (False,)}
    include_usage: bool = False


class Function(Strict):
    """strict: arguments always keep to the parameters, whatever it says."""

    name: Name
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None


class NamedSchema(Strict):
    """strict: the answer always keeps to the schema, whatever it says."""

    name: Name
    description: str | None = None
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    strict: bool | None = None


class Free(Strict):
    type: Literal["text"]


class AnyObject(Strict):
    type: Literal["json_object"]


class PromptDetails(BaseModel):
    cached_tokens: int


class Usage(BaseModel):
    """prompt_tokens: counted once for all candidates."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class Block(BaseModel):
    """How the answer was decoded. Passes and tokens are of all candidates; milliseconds of the
    slowest. tokens_per_pass: decided tokens a forward pass; forced: those a grammar left no
    choice for. What is null is not known of an answer that a stop string ended."""

    mode: str
    passes: int
    tokens_per_pass: float
    forced: int | None
    prefill_ms: float | None
    decode_ms: float
