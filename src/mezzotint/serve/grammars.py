"""What an answer must keep to: tools, a tool choice, a response format; made within bounds.

A schema is measured before the engine sees it. It knows what OpenAI calls things, not how a
grammar is held.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mezzotint import constraint, toolcall
from mezzotint.constraint import Grammar
from mezzotint.serve.problems import bad
from mezzotint.serve.settings import Settings
from mezzotint.serve.wire import AnyObject, Free, Function, Schema

CALLS = 4  # of one answer, as the built-in model was taught


def of_answer(
    tools: Sequence[Function],
    choice: str | None,
    parallel: bool | None,
    format_: Grammar | None,
    settings: Settings,
) -> Grammar | None:
    """What the answer keeps to, if anything. choice: auto, none, required, or a tool's name.

    Raises Problem for what does not go together, UsageError for what cannot be held.
    """
    if not tools:
        if choice not in (None, "auto", "none"):
            raise bad("tool_choice needs tools", "tool_choice")
        if parallel is not None:
            raise bad("parallel_tool_calls needs tools", "parallel_tool_calls")
        return format_
    if format_ is None:
        return _of_tools(tools, choice or "auto", parallel is not False, settings)
    if choice != "none":
        what = "an answer is a call or keeps to a format; set tool_choice to none for the latter"
        raise bad(what, "tool_choice")
    return format_


def _of_tools(
    tools: Sequence[Function], choice: str, parallel: bool, settings: Settings
) -> Grammar:
    """Calls of the tools, or prose."""
    shown = [schema_of(tool, settings) for tool in tools]
    if len(tools) > settings.tools:
        raise bad(f"{len(tools)} tools; at most {settings.tools}", "tools")
    if len({tool.name for tool in tools}) < len(tools):
        raise bad("two tools have the same name", "tools")
    most = CALLS if parallel else 1
    if choice == "none":
        return constraint.tools([])
    if choice in ("auto", "required"):
        return constraint.tools(shown, most, prose=choice == "auto")
    named = [tool for tool in shown if tool["name"] == choice]
    if not named:
        raise bad(f"no tool {choice!r}", "tool_choice")
    return constraint.tools(named, 1, prose=False)


def schema_of(tool: Function, settings: Settings) -> toolcall.Schema:
    """The tool as `toolcall` takes it. Raises Problem if its parameters are too large."""
    parameters = tool.parameters or {}
    _measure(parameters, f"tools: parameters of {tool.name}", settings)
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def of_format(
    wanted: Free | AnyObject | Any, schema: Schema | None, param: str, settings: Settings
) -> Grammar | None:
    """JSON that keeps to `schema`, any JSON object, or free text (None)."""
    if wanted is None or isinstance(wanted, Free):
        return None
    if isinstance(wanted, AnyObject):
        return constraint.json_schema({"type": "object"})
    if schema is None:
        raise bad("the schema is missing", param)
    _measure(schema, param, settings)
    return constraint.json_schema(schema)


def _measure(schema: Schema, where: str, settings: Settings) -> None:
    size = len(json.dumps(schema))
    if size > settings.schema_chars:
        raise bad(f"{where}: {size} characters of schema; at most {settings.schema_chars}")
