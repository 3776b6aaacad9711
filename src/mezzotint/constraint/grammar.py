"""What may be written: JSON of a schema, a regular expression, one of a few texts, tool calls.

A Grammar is a value: text for the engine, how a finished text is checked, and, where the
order of fixed text and holes is known beforehand, a skeleton. It knows no model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from mezzotint import toolcall
from mezzotint.constraint.checks import Json, read, validator
from mezzotint.constraint.schema import bounded
from mezzotint.constraint.vocabulary import engine
from mezzotint.errors import UsageError

_OPTIONS = {"whitespace_flexible": False, "json_allowed_escapes": 'nrbtf\\"'}
_PROSE = r"PROSE: /[^{\s\x00-\x1f](?s:.)*/"  # what toolcall does not take for a call
_LITERAL = re.compile(r"[\w @:/-]+")


@dataclass(frozen=True)
class Grammar:
    """lark: the engine's grammar. check: raises ValueError for a text that is not of it.

    quotes: `"` opens and closes strings. hints: literal runs in its patterns (see ending).
    skeletons: each the parts of a text in order, fixed text or the grammar of a hole; a text
        that begins as the first part of just one of them, and with `known`, has that skeleton.
    longest: tokens that a hole of it may need.
    """

    lark: str
    check: Callable[[str], None]
    quotes: bool = True
    hints: tuple[bytes, ...] = ()
    skeletons: tuple[tuple[str | Grammar, ...], ...] = ()
    known: str = ""
    longest: int = 1 << 16

    def skeleton(self, text: str) -> tuple[str | Grammar, ...] | None:
        """The skeleton of every text that begins with `text`, if that is known."""
        if not text.startswith(self.known):
            return None
        fits = [s for s in self.skeletons if isinstance(s[0], str) and s[0].startswith(text)]
        return fits[0] if len(fits) == 1 else None


def json_schema(schema: Json) -> Grammar:
    """Compact JSON that the schema (2020-12) allows. Raises UsageError for one that is none,
    contradicts itself, or holds what cannot be kept while writing (`not`, `uniqueItems`, …)."""
    valid, made = validator(schema), bounded(schema)

    def check(text: str) -> None:
        valid(read(text))

    return _json(made, check, (_skeleton(made),))


def regex(pattern: str) -> Grammar:
    """Text that the whole pattern matches (Rust syntax: no lookaround, no backreference)."""
    lark = engine().LLMatcher.grammar_from_regex(pattern)
    return Grammar(lark, _held, False, _hints([pattern]))


def choice(options: Sequence[str]) -> Grammar:
    """One of the texts."""
    if not options or "" in options:
        raise UsageError(f"a choice is between texts that are not empty, not {list(options)!r:.80}")
    texts = (json.dumps(option, ensure_ascii=False) for option in dict.fromkeys(options))
    lark = "start: " + " | ".join(texts)
    return Grammar(lark, _held, False)


def tools(tools: Sequence[toolcall.Schema], most: int = 8, prose: bool = True) -> Grammar:
    """One to `most` calls of the tools, a line each (see `toolcall`); or, if allowed, prose.

    Raises UsageError for a tool whose parameters cannot be held, or without tools and prose.
    """
    if not (tools or prose) or most < 1:
        raise UsageError(f"{len(tools)} tools, at most {most} calls: nothing could be written")
    inner = [toolcall.function(tool) for tool in tools]
    valid = {t["name"]: validator({"type": "object", **t["parameters"]}) for t in inner}
    calls = [_call(t["name"], t["parameters"]) for t in inner]
    names = [f"call{i}" for i in range(len(calls))]
    more = f' ("\\n" call){{0,{most - 1}}}' if most > 1 else ""
    start = [f"call{more}"] if calls else []
    lines = ["start: " + " | ".join([*start, *(["PROSE"] if prose else [])])]
    lines += [_PROSE] if prose else []
    lines += ["call: " + " | ".join(names)] if calls else []
    lines += [f"{name}: {_inline(call)}" for name, call in zip(names, calls, strict=True)]

    def check(text: str) -> None:
        for call in toolcall.parse(text):
            if call.name not in valid:
                raise ValueError(f"there is no tool {call.name!r}")
            valid[call.name](read(json.dumps(dict(call.arguments))))

    hints = _hints(p for call in calls for p in _patterns(call))
    fixed = [_skeleton(call) for call in calls] if most == 1 else []
    return Grammar("\n".join(lines), check, True, hints, tuple(fixed), '{"' if prose else "")


def lines(parts: Sequence[str | Sequence[toolcall.Schema]]) -> Grammar:
    """Tool calls line by line: text that stands, or one call of some tools. Raises UsageError
    as `tools` does, or if a line has no tool.

    So a plan is written anew in part: the lines that stay are given, and cost no pass.
    """
    rules, skeleton, checks = [], list[str | Grammar](), []
    for number, part in enumerate(parts):
        one = _text_line(part) if isinstance(part, str) else tools(part, 1, prose=False)
        rules += _renamed(one.lark, f"line{number}")
        skeleton += ["\n"] if number else []
        skeleton += one.skeletons[0] if len(one.skeletons) == 1 else [one]
        checks.append(one.check)
    start = ' "\\n" '.join(f"line{number}" for number in range(len(parts)))

    def check(text: str) -> None:
        for line, valid in zip(text.split("\n"), checks, strict=True):
            valid(line)

    known = all(isinstance(part, str) or len(part) == 1 for part in parts)
    every = [toolcall.function(t) for part in parts if not isinstance(part, str) for t in part]
    hints = _hints(p for tool in every for p in _patterns(tool["parameters"]))
    laid = (_merged(skeleton),) if known else ()
    return Grammar("\n".join([f"start: {start}", *rules]), check, True, hints, laid)


def _text_line(text: str) -> Grammar:
    def check(line: str) -> None:
        if line != text:
            raise ValueError(f"{line!r} stands where {text!r} was given")

    return Grammar(f"start: {json.dumps(text, ensure_ascii=False)}", check, skeletons=((text,),))


def _merged(parts: Sequence[str | Grammar]) -> tuple[str | Grammar, ...]:
    """Neighbouring fixed texts as one."""
    made: list[str | Grammar] = []
    for part in parts:
        if isinstance(part, str) and made and isinstance(made[-1], str):
            made[-1] += part
        else:
            made.append(part)
    return tuple(made)


def _renamed(lark: str, name: str) -> list[str]:
    """The rules of a grammar, `start` called `name` and the others after it."""
    heads = re.findall(r"^(\w+):", lark, re.MULTILINE)
    found = "|".join(map(re.escape, heads))
    made = []
    for line in lark.split("\n"):
        head, _, body = line.partition(": ")
        if not body.startswith("%json"):
            body = re.sub(rf"\b({found})\b", rf"{name}_\1", body)
        made.append(f"{name if head == 'start' else f'{name}_{head}'}: {body}")
    return made


def _call(name: str, parameters: Mapping[str, Any]) -> dict[str, Json]:
    """The schema of one call. References in the parameters are to the parameters."""
    inner = bounded({"type": "object", "properties": {}, **parameters}, local=True)
    shared: dict[str, Json] = {
        key: inner.pop(key) for key in ("$defs", "definitions") if key in inner
    }
    if re.search(r'"\$ref": "#(?!/\$defs/|/definitions/)', json.dumps(inner | shared)):
        raise UsageError(f"tool {name}: a $ref points elsewhere than to $defs", "move it there")
    return {**_object({name: inner}), **shared}


def _object(properties: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _json(made: Json, check: Callable[[str], None], skeletons: Any = ()) -> Grammar:
    return Grammar(f"start: {_inline(made)}", check, True, _hints(_patterns(made)), skeletons)


def _inline(schema: Json) -> str:
    return "%json " + json.dumps({**schema, "x-guidance": _OPTIONS})


def _skeleton(schema: Json) -> tuple[str | Grammar, ...]:
    """The parts of the schema's texts: fixed text, and a hole for each value in it.

    A value does not always say where it ends, so its hole takes the character after it too.
    """
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    parts: list[str | Grammar] = []
    for part in _parts(schema):
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif isinstance(part, str):
            parts.append(part)
        else:
            parts.append(replace(_json({**part, **shared}, _held), longest=_longest(part)))
    for i, (part, after) in enumerate(pairwise(parts)):
        if isinstance(part, Grammar) and isinstance(after, str):
            value = part.lark.replace("start:", "value:", 1)
            parts[i] = replace(part, lark=f"start: value {json.dumps(after[0])}\n{value}")
            parts[i + 1] = after[1:]
    return tuple(part for part in parts if part)


def _longest(schema: Json) -> int:
    """Tokens a value and the character after it may need, where that is little."""
    if "enum" in schema:
        return max(len(_text(value).encode()) for value in schema["enum"]) + 1
    sizes = {"integer": 25, "number": 25, "boolean": 6, "null": 5}  # 15 digits, 6 decimals
    if schema.get("type") == "string" and "pattern" not in schema and "format" not in schema:
        return int(schema["maxLength"]) + 3
    return sizes.get(str(schema.get("type")), Grammar.longest)


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parts(schema: Json) -> Iterator[str | Json]:
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    if len(values) == 1:
        yield _text(values[0])
    elif _fixed(schema):
        for i, (name, inner) in enumerate(schema["properties"].items()):
            yield f"{',' if i else '{'}{_text(name)}:"
            yield from _parts(inner)
        yield "}"
    else:
        yield schema


def _fixed(schema: Json) -> bool:
    """True if the schema's objects have just these properties, all of them."""
    names = schema.get("properties") or {}
    closed = schema.get("type") == "object" and schema.get("additionalProperties") is False
    plain = not {"$ref", "anyOf", "oneOf", "allOf", "patternProperties"} & schema.keys()
    return bool(names) and closed and plain and names.keys() <= set(schema.get("required", ()))


def _patterns(schema: Json) -> Iterator[str]:
    """Every pattern in the schema."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for item in schema.values():
            yield from _patterns(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _patterns(item)


def _hints(patterns: Any) -> tuple[bytes, ...]:
    runs = dict.fromkeys(run for p in patterns for run in _LITERAL.findall(p))
    return tuple(run.encode() for run in runs)[:16]


def _held(text: str) -> None:
    """Nothing to check: the engine followed the whole grammar."""
