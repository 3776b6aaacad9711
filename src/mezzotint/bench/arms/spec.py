"""Arms as data: one small TOML file each, or one line of the command.

    exact                                            a file of this folder
    ./mine.toml                                      a file of yours
    mine=ours:model=./m.gguf,policy=fast             the same in a line
    ollama=openai:base_url=http://localhost:11434/v1,model=smollm2

What each kind of arm may be told is the fields of its class; anything else is refused.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mezzotint.errors import UsageError

MOST_CALLS = 4  # of one answer, where the arm is held to schemas


class _Spec(BaseModel):
    """structure: held to the schemas of the tools. title: a few words for the report."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    title: str = ""
    structure: bool = False


class OursSpec(_Spec):
    """policy, block, weights: as the commands take them; None is the model's own choice.
    infill: tasks with a hole, or an edit to be followed, are given to it as such."""

    kind: Literal["ours"]
    model: str
    policy: str | None = None
    block: int | None = None
    weights: str | None = None
    infill: bool = False


class LlamaSpec(_Spec):
    """model: a name or path whose merged weights are exported. types: of the file, and lookup:
    how many tokens are drafted; of several the fastest in a short trial is taken.
    context: positions of the cache."""

    kind: Literal["llama"]
    model: str
    types: tuple[Literal["q4_0", "q8_0", "bf16"], ...] = ("q4_0", "q8_0", "bf16")
    lookup: tuple[int, ...] = ()
    context: int = 4096


class OpenaiSpec(_Spec):
    """base_url: with its /v1. key: name of an environment variable that holds the API key."""

    kind: Literal["openai"]
    base_url: str
    model: str
    key: str = "OPENAI_API_KEY"


Spec = Annotated[OursSpec | LlamaSpec | OpenaiSpec, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[OursSpec | LlamaSpec | OpenaiSpec] = TypeAdapter(Spec)


def known() -> list[str]:
    """Names of the arms that come with the package."""
    folder = files(__package__)
    names = (file.name for file in folder.iterdir() if file.name.endswith(".toml"))
    return sorted(name.removesuffix(".toml") for name in names)


def read(text: str) -> OursSpec | LlamaSpec | OpenaiSpec:
    """An arm by name, file, or line. Raises UsageError for what is none of them."""
    if "=" in text.partition(":")[0]:
        return _line(text)
    if text.endswith(".toml"):
        return _table(Path(text).stem, _text(Path(text)))
    if text not in known():
        hint = f"known are {', '.join(known())}; or give a .toml file"
        raise UsageError(f"no arm {text!r}", hint)
    return _table(text, (files(__package__) / f"{text}.toml").read_text("utf-8"))


def checked(values: dict[str, Any]) -> OursSpec | LlamaSpec | OpenaiSpec:
    """The arm with these fields. Raises UsageError, naming the first that is wrong."""
    try:
        spec = _ADAPTER.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "kind"
        raise UsageError(f"arm {values['name']}: {place}: {first['msg']}") from None
    if isinstance(spec, LlamaSpec) and spec.lookup and spec.structure:
        raise UsageError(f"arm {spec.name}: drafts are not held to a grammar", "take one of them")
    return spec


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def _table(name: str, text: str) -> OursSpec | LlamaSpec | OpenaiSpec:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"arm {name}: no TOML: {error}") from None
    return checked({"name": name, **values})


def _line(text: str) -> OursSpec | LlamaSpec | OpenaiSpec:
    """NAME=KIND:key=value,key=value; several values of a key are joined by +."""
    name, _, rest = text.partition("=")
    kind, _, items = rest.partition(":")
    values: dict[str, Any] = {"name": name, "kind": kind}
    for item in filter(None, items.split(",")):
        key, _, value = item.partition("=")
        values[key] = value.split("+") if key in ("types", "lookup") else value
    return checked(values)
