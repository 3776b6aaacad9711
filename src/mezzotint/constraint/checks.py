"""What a schema is refused for before the engine sees it, and how a finished value is checked.

The engine cannot be interrupted, and some schemas would cost it exponential time. It knows
JSON Schema (2020-12), not how its values are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from mezzotint.errors import UsageError

Json = Any
DEPTH = 40  # levels of nesting; the engine's reader takes about 120 of JSON
CHOICES = 20_000  # values of one enum
MEETING = 8  # patterns that one string may have to meet; the cost is exponential

MAPS = ("properties", "patternProperties", "$defs", "definitions")
LISTS = ("prefixItems", "anyOf", "allOf", "oneOf")
SINGLE = ("items", "additionalProperties")
_DEEP, _SHALLOW = f"the schema is nested deeper than {DEPTH} levels", "use $ref and $defs"


def checked(schema: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Every schema in the schema, itself first. Raises UsageError for what cannot be held."""
    nodes = list(_nodes(schema, 0))
    for node in nodes:
        _check_counts(node)
    _check_patterns(schema, nodes)
    return nodes


def _nodes(node: Json, depth: int) -> Iterator[Mapping[str, Json]]:
    """Every schema in the schema, itself first."""
    if not isinstance(node, Mapping):
        return
    if depth > DEPTH:
        raise UsageError(_DEEP, _SHALLOW)
    yield node
    for key in MAPS:
        inner = node.get(key)
        for item in inner.values() if isinstance(inner, Mapping) else ():
            yield from _nodes(item, depth + 1)
    for key in LISTS:
        inner = node.get(key)
        for item in inner if isinstance(inner, list) else ():
            yield from _nodes(item, depth + 1)
    for key in SINGLE:
        yield from _nodes(node.get(key), depth + 1)


def length(node: Mapping[str, Json], key: str) -> int:
    value = node.get(key, 0)
    return int(value) if isinstance(value, int | float) else 0


def _check_counts(node: Mapping[str, Json]) -> None:
    if len(node.get("enum") or ()) > CHOICES:
        what = f"an enum has {len(node['enum'])} values; at most {CHOICES} can be held"
        raise UsageError(what, "let a tool look the value up")
    # Keys that a schema does not name are not kept apart: two of them may be the same.
    least, named = length(node, "minProperties"), len(node.get("properties") or ())
    if least > named + 1:
        what = f"minProperties is {least}, and only {named} properties are named"
        raise UsageError(what, "name the properties that the object must have")


def _check_patterns(root: Mapping[str, Json], nodes: list[Mapping[str, Json]]) -> None:
    counts: dict[int, int] = {}

    def count(node: Json) -> int:
        """Patterns that a string of this schema meets at once; a circle of $ref counts once."""
        if not isinstance(node, Mapping):
            return 0
        if id(node) not in counts:
            counts[id(node)] = 0
            own = ("pattern" in node) + ("format" in node)
            parts = [*node.get("allOf", ()), _target(root, node.get("$ref"))]
            either = [*node.get("anyOf", ()), *node.get("oneOf", ())]
            total = own + sum(count(item) for item in parts)
            counts[id(node)] = total + max([0, *(count(item) for item in either)])
        return counts[id(node)]

    for node in nodes:
        if count(node) > MEETING:
            what = f"one string must meet {count(node)} patterns; at most {MEETING} can be held"
            raise UsageError(what, "write them as one pattern")


def _target(root: Mapping[str, Json], ref: Json) -> Json:
    """The schema that a local $ref points to, or None."""
    if not isinstance(ref, str) or not ref.startswith("#/"):
        return None
    node: Json = root
    for part in ref[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def validator(schema: Json) -> Callable[[Json], None]:
    """A function that raises ValueError, with the place and the reason, for a value that the
    schema does not allow. Numbers are compared as decimals: 0.7 is a multiple of 0.1.

    Raises UsageError if the schema is none.
    """
    import jsonschema  # type: ignore[import-untyped]  # slow to import
    from referencing import Registry

    kind = jsonschema.Draft202012Validator
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise UsageError(f"not a JSON Schema: {error.message:.200} at {error.json_path}") from None
    except RecursionError:
        raise UsageError(_DEEP, _SHALLOW) from None
    checker = kind(read(json.dumps(schema)), registry=Registry())

    def check(value: Json) -> None:
        try:
            for error in checker.iter_errors(value):
                raise ValueError(f"{error.message:.200} at {error.json_path}")
        except ArithmeticError:
            raise ValueError("a number is too large to be compared") from None

    return check


def read(text: str) -> Json:
    """JSON with its fractions as decimals. Raises ValueError."""
    return json.loads(text, parse_float=_decimal)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent of 20 digits
        return Decimal("Infinity").copy_sign(Decimal(text[: text.lower().index("e")]))
