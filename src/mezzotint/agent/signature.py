"""What a typed function takes, as JSON Schema and as validated keyword arguments.

Pydantic does both. A parameter that may be left out needs no null; one whose type is the
context's is not the model's; `from_` is called `from`; date, time and datetime may be words
(`when`). This file knows functions; what calling one does, it refuses to know.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, NotRequired, Required, Union, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from mezzotint.agent.when import Clock, Day, Moment
from mezzotint.errors import UsageError

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """A function's parameters: pydantic's view of those that are the model's, the ones that
    may be left out, and the name of the one that takes the context."""

    adapter: TypeAdapter[dict[str, Any]]
    names: Mapping[str, str]
    optional: frozenset[str]
    context: str

    def bound(self, arguments: Arguments, context: object) -> dict[str, Any]:
        """Validated keyword arguments. Null for an optional one means: left out."""
        given = {k: v for k, v in arguments.items() if v is not None or k not in self.optional}
        valid = self.adapter.validate_python(given, context=context)
        bound = {self.names[name]: value for name, value in valid.items()}
        return bound | ({self.context: context} if self.context else {})


_TIMES: Mapping[Any, Any] = {datetime: Moment, date: Day, time: Clock}


def shape(function: Callable[..., Any], context_type: type) -> Shape:
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{function.__name__} is a coroutine", "give a plain function")
    hints = get_type_hints(function, include_extras=True)
    names, optional, fields, context = {}, set(), {}, ""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"{function.__name__} takes *{parameter.name}, which has no schema")
        if parameter.name not in hints:
            raise UsageError(f"{function.__name__}: parameter {parameter.name!r} has no type")
        hint = hints[parameter.name]
        if hint is context_type:
            context = parameter.name
            continue
        name = parameter.name.removesuffix("_")
        names[name] = parameter.name
        hint = _TIMES.get(hint, hint)
        if parameter.default is parameter.empty:
            fields[name] = Required[hint]
        else:
            optional.add(name)
            fields[name] = NotRequired[_without_none(hint)]
    make: Any = TypedDict
    typed = with_config(ConfigDict(extra="forbid"))(make("Arguments", fields))
    return Shape(TypeAdapter(typed), names, frozenset(optional), context)


def _without_none(hint: Any) -> Any:
    """The type of an optional argument: leaving it out already says None."""
    if type(None) not in get_args(hint):
        return hint
    rest = tuple(_TIMES.get(kind, kind) for kind in get_args(hint) if kind is not type(None))
    return Union[rest]  # noqa: UP007


def schema(shape: Shape, documentation: str) -> dict[str, Any]:
    """The JSON Schema of the arguments; "name: what it is" in the documentation describes one."""
    schema = shape.adapter.json_schema()
    for name, about in re.findall(r"^\s*:?(?:param )?(\w+?)_?: +(.+)$", documentation, re.M):
        if name in shape.names:
            schema["properties"][name].setdefault("description", about.strip())
    definitions = schema.pop("$defs", {})
    inlined: dict[str, Any] = _inlined(schema, definitions, ())
    return inlined


def _inlined(schema: Any, definitions: Arguments, inside: tuple[str, ...]) -> Any:
    """References replaced by what they refer to: one line in a prompt cannot point elsewhere.

    Titles go: they repeat the names. Raises UsageError for a type that contains itself.
    """
    if isinstance(schema, list):
        return [_inlined(item, definitions, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in inside:
            raise UsageError(f"the type {name} contains itself", "a tool's arguments must not")
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined(definitions[name] | rest, definitions, (*inside, name))
    return {
        key: _inlined(value, definitions, inside)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))  # a property may be called title
    }
