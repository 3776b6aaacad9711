"""A conversation as clients send it, as the model reads it.

The tools are shown in the system message and calls are lines of text, as `mezzotint.toolcall`
says; results of calls that were made together are one message, in the order of the calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mezzotint import toolcall
from mezzotint.serve.problems import bad
from mezzotint.serve.wire_chat import Assistant, Content, Message, ToolCall, ToolResult
from mezzotint.toolcall import Call


def told(messages: Sequence[Message], tools: Sequence[toolcall.Schema]) -> list[dict[str, str]]:
    """Roles and texts for the chat template. Raises Problem for a result of no call."""
    made: list[dict[str, str]] = []
    waiting: dict[str, str] = {}  # ids of the last calls, and their results
    for i, message in enumerate(messages):
        if isinstance(message, ToolResult):
            if message.tool_call_id not in waiting:
                what = f"no call {message.tool_call_id!r:.80} in the message before"
                raise bad(what, f"messages[{i}].tool_call_id")
            waiting[message.tool_call_id] = plain(message.content)
            results = "\n".join(filter(None, waiting.values()))
            if made[-1]["role"] == "tool":
                made.pop()
            made.append({"role": "tool", "content": results})
        elif isinstance(message, Assistant):
            waiting = {call.id: "" for call in message.tool_calls or ()}
            made.append({"role": "assistant", "content": _said(message, i)})
        else:
            waiting = {}
            role = "user" if message.role == "user" else "system"
            made.append({"role": role, "content": plain(message.content)})
    return _showing(made, tools) if tools else made


def plain(content: Content | None) -> str:
    """The text of a message, its parts joined."""
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content or ())


def _said(message: Assistant, i: int) -> str:
    calls = [_call(call, f"messages[{i}].tool_calls[{n}]") for n, call in
             enumerate(message.tool_calls or ())]  # fmt: skip
    parts = [plain(message.content), toolcall.write(calls)]
    return "\n".join(part for part in parts if part)


def _call(call: ToolCall, place: str) -> Call:
    try:
        arguments = json.loads(call.function.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, Mapping):
        raise bad("arguments must be the text of a JSON object", f"{place}.function.arguments")
    return Call(call.function.name, arguments)


def _showing(
    messages: list[dict[str, str]], tools: Sequence[toolcall.Schema]
) -> list[dict[str, str]]:
    """The messages, the first of them the system's with the tools before what it said."""
    state, rest = "", messages
    if messages[0]["role"] == "system":
        state, rest = messages[0]["content"], messages[1:]
    return [{"role": "system", "content": toolcall.system(tools, state=state)}, *rest]
