"""Tasks whose right answer is known calls: shared by every suite of tool calls.

What is forgiven in a value, and nothing else, is in `adapt/data/grade.py`. An answer that
makes one call too many is wrong, as is one that talks where it should call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data.grade import canonical_calls
from mezzotint.bench.tasks.task import Grade, Message, Task
from mezzotint.toolcall import Call, Schema

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}  # Python's and JSON Schema's
LONGEST = 192  # tokens of an answer; the longest right one of our own has 130


def call_task(
    suite: str, number: int, group: str, messages: Sequence[Mapping[str, str]],
    tools: Sequence[Schema], gold: str,
) -> Task:  # fmt: skip
    """A task whose answer must make the calls of `gold`, or be prose if `gold` makes none."""
    shown = tuple(tools)
    turns: tuple[Message, ...] = tuple(dict(turn) for turn in messages)
    done, grader = partial(acted, shown), partial(graded, gold, shown)
    id = f"{suite}/{number:04}"
    return Task(id, suite, group, turns, shown, gold, LONGEST, done, grader)


def plain_tool(tool: Mapping[str, Any]) -> Schema:
    """A tool of another benchmark, its types in JSON Schema's words."""
    return {
        "name": tool["name"],
        "description": tool["description"],
        "parameters": _plain(tool["parameters"]),
    }


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in item.items() if key != "optional"}
    kind = found.pop("type", "any")
    if kind != "any":
        found["type"] = _TYPES.get(kind, kind)
    if "properties" in found:
        found["properties"] = {name: _plain(one) for name, one in found["properties"].items()}
    if "items" in found:
        found["items"] = _plain(found["items"])
    return found


def acted(tools: Sequence[Schema], text: str) -> bool:
    """Whether `text` begins with a whole call that meets the schema of one of `tools`."""
    line = text.strip().split("\n", 1)[0].rstrip()
    if not line.endswith("}"):
        return False
    calls = read(line) or [Call("")]
    return conforms(calls[0], tools)


def read(text: str) -> list[Call] | None:
    """The calls of an answer, none for prose; None for what begins like a call and is not one."""
    try:
        return toolcall.parse(text)
    except (ValueError, RecursionError):  # as deep as a model in a loop writes
        return None


def conforms(call: Call, tools: Sequence[Schema]) -> bool:
    """Whether `call` names one of `tools` and its arguments meet the schema, none unknown."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # slow to import

    for tool in tools:
        inner = toolcall.function(tool)
        if inner["name"] == call.name:
            schema = inner["parameters"]
            known = set(call.arguments) <= set(schema.get("properties") or {})
            return known and Draft202012Validator(schema).is_valid(dict(call.arguments))
    return False


def graded(gold: str, tools: Sequence[Schema], text: str) -> Grade:
    """Exact match with the calls of `gold` after canonicalisation."""
    wanted = toolcall.parse(gold)
    return judged(text, wanted, tools, partial(_alike, wanted))


def _alike(wanted: Sequence[Call], made: Sequence[Call]) -> bool:
    return canonical_calls(made) == canonical_calls(wanted)


def judged(
    text: str, wanted: Sequence[Call], tools: Sequence[Schema], right: Callable[[list[Call]], bool]
) -> Grade:
    """An answer by a judge of its calls. If none is wanted, any prose is right."""
    made = read(text)
    if made is None:
        return Grade(False, False, "not a tool call")
    valid = bool(made) and all(conforms(call, tools) for call in made)
    if not wanted:
        prose = not made and bool(text.strip())
        return Grade(prose, prose or valid, "" if prose else "a call, or nothing, instead of prose")
    found = right(made)
    return Grade(found, valid, "" if found else fault(made, wanted))


def fault(made: Sequence[Call], wanted: Sequence[Call]) -> str:
    """What is wrong with calls that are not the `wanted` ones, in a few words."""
    if not made:
        return "prose instead of a call"
    if len(made) != len(wanted):
        return "a missing call" if len(made) < len(wanted) else "an extra call"
    if Counter(call.name for call in made) != Counter(call.name for call in wanted):
        return "another tool"
    odd = canonical_calls(made) - canonical_calls(wanted)
    keys = {key for call in made for key in call.arguments}
    known = {key for call in wanted for key in call.arguments}
    if keys - known:
        return "an extra argument"
    return "a missing argument" if known - keys else f"{odd.total()} call(s) with a wrong value"
