"""Tools in the prompt and calls in the answer: the one text format the built-in model knows.

A tool is one line, rendered mechanically from its JSON Schema (OpenAI's or MCP's form):

    set_timer(minutes: int, label?: str "what it is for", sound?: bell|chime): Start a timer.

A call is one line of JSON, and an answer that does not begin with `{"` is prose:

    {"set_timer":{"minutes":5,"label":"pasta"}}

In SmolLM2's tokens that call costs 16 (27 as `[{"name": …, "arguments": …}]`) and that tool
31 (95 as OpenAI's JSON). This file knows no model and runs no tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

Schema = Mapping[str, Any]

NOW = "Now:"  # begins the line that tells the time, the last of a system message

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "num",
    "boolean": "bool",
    "null": "null",
    "array": "any[]",
    "object": "{}",
}
_FORMATS = {"date": "date", "time": "time", "date-time": "datetime"}
_PLAIN = re.compile(r"[^\W\d][\w.-]*")
_CHOICE = re.compile(r"\w[\w.:/-]*")


@dataclass(frozen=True)
class Call:
    """One call: the tool's name and its arguments as parsed JSON."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def write(calls: Iterable[Call]) -> str:
    """Calls as text, one a line, in the order of their arguments."""
    return "\n".join(_json({call.name: dict(call.arguments)}) for call in calls)


def is_call(text: str) -> bool:
    """Whether the first characters of an answer announce calls, not prose."""
    return text.lstrip().startswith('{"')


def parse(text: str) -> list[Call]:
    """The calls in an answer; none if it is prose. The inverse of `write`.

    Raises ValueError, with the line, if an answer that announces calls holds anything else.
    """
    if not is_call(text):
        return []
    return [_parse_line(line) for line in text.split("\n") if line.strip()]


def _parse_line(line: str) -> Call:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not a tool call: {line!r} ({error.msg} at {error.pos})") from None
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f'not a tool call: {line!r} (expected {{"name": {{arguments}}}})')
    name, arguments = next(iter(value.items()))
    if not isinstance(arguments, dict):
        raise ValueError(f"not a tool call: {line!r} (arguments must be an object)")
    return Call(name, arguments)


def function(tool: Schema) -> Schema:
    """The {name, description, parameters} inside OpenAI's wrapper or MCP's tool object."""
    inner = tool.get("function", tool)
    return {
        "name": inner["name"],
        "description": inner.get("description") or "",
        "parameters": inner.get("parameters") or inner.get("inputSchema") or {},
    }


def signature(tool: Schema) -> str:
    """A tool as one line. `tool` may be OpenAI's, MCP's, or {name, description, parameters}."""
    inner = function(tool)
    about = " ".join(inner["description"].split())
    line = f"{inner['name']}({_fields(inner['parameters'])})"
    return f"{line}: {about}" if about else line


def system(tools: Sequence[Schema], now: datetime | None = None, state: str = "") -> str:
    """The system message: tools, then whatever the application says of its `state`.

    now: given where requests may speak of time. If a tool takes a date, the next six days
    are listed too: 50 tokens that spare a small model the calendar arithmetic.
    """
    lines = ["Tools:", *(signature(tool) for tool in tools)] if tools else ["No tools."]
    if state:
        lines.append(state)
    if now is not None:
        lines.append(_now(now, any(dated(function(tool)["parameters"]) for tool in tools)))
    return "\n".join(lines)


def _now(now: datetime, week: bool) -> str:
    line = f"{NOW} {now:%a %Y-%m-%d %H:%M}"
    if not week:
        return line
    days = (now + timedelta(days=ahead) for ahead in range(1, 7))
    return f"{line}. " + ", ".join(f"{day:%a %m-%d}" for day in days)


def dated(schema: Any) -> bool:
    """Whether a schema, or one in it, asks for a date; one held to values has no format."""
    if isinstance(schema, Mapping):
        if schema.get("format") in ("date", "date-time"):
            return True
        return any(dated(item) for item in schema.values())
    return isinstance(schema, list) and any(dated(item) for item in schema)


def _fields(schema: Schema) -> str:
    required = schema.get("required", ())
    properties = schema.get("properties") or {}
    return ", ".join(
        f"{_word(name)}{'' if name in required else '?'}: {_type(item)}{_remarks(item)}"
        for name, item in properties.items()
    )


def _type(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return _choice(schema["const"])
    if "enum" in schema:
        return "|".join(_choice(value) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return "|".join(_type(item) for item in schema[union])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return "|".join(_type({**schema, "type": one}) for one in kind)
    if kind == "array" and "items" in schema:
        item = _type(schema["items"])
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object" and schema.get("properties"):
        return f"{{{_fields(schema)}}}"
    return _FORMATS.get(schema.get("format", ""), _TYPES.get(kind, "any"))


def _remarks(schema: Any) -> str:
    """Range, description and default, as far as the schema tells them."""
    if not isinstance(schema, Mapping):
        return ""
    parts = []
    if "minimum" in schema or "maximum" in schema:
        parts.append(f"{schema.get('minimum', '')}..{schema.get('maximum', '')}")
    if schema.get("description"):
        parts.append(_json(" ".join(schema["description"].split())))
    if "default" in schema:
        parts.append(f"= {_json(schema['default'])}")
    return "".join(f" {part}" for part in parts)


def _word(name: str) -> str:
    """An argument's name; quoted where it would read as something else."""
    return name if _PLAIN.fullmatch(name) else _json(name)


def _choice(value: Any) -> str:
    """An enumerated value. A text is quoted only if it would read as a number or a literal."""
    if not isinstance(value, str) or not _CHOICE.fullmatch(value):
        return _json(value)
    try:
        json.loads(value)
    except json.JSONDecodeError:
        return value
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value; names of members are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
