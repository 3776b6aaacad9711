"""A JSON Schema made ready for the grammar engine: checked, closed, and with a limit to each hole.

The language written is a part of what the schema allows: compact JSON, properties in the
schema's order, and none that it does not name unless it says so. What comes back is checked
against the schema as it was given. It knows JSON Schema (2020-12), not tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from mezzotint.errors import BackendError, UsageError

Json = Any
TEXT = 1000  # characters of a string without maxLength
NUMBER = 10**15  # size of a number without bounds; below it a double holds every integer
STEP = 1e-6  # a number has six decimals, unless it has a multipleOf
DEPTH = 40  # levels of nesting; the engine's reader takes about 120 of JSON
CHOICES = 20_000  # values of one enum
MEETING = 8  # patterns that one string may have to meet; the cost is exponential

_HUGE = 10**300
_DEEP, _SHALLOW = f"the schema is nested deeper than {DEPTH} levels", "use $ref and $defs"
_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_LISTS = ("prefixItems", "anyOf", "allOf", "oneOf")
_SINGLE = ("items", "additionalProperties")
_MERGING = frozenset(
    ("type properties required additionalProperties patternProperties minProperties maxProperties"
     " items prefixItems minItems maxItems anyOf oneOf allOf enum const pattern minimum maximum"
     " minLength maxLength $ref").split()
)  # fmt: skip
_KINDS = ("string", "number", "array", "object")
ANY = "any-value"  # the name under $defs
_ANY = {"$ref": f"#/$defs/{ANY}"}
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_FORMATS = frozenset(  # others are remarks
    "date-time time date duration email hostname ipv4 ipv6 uuid uri".split()
)
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?"
_ZONE = r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)?"
_MONTHS = r"(0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)"
_LEAP = r"\d\d([02468][048]|[13579][26])-02-29"
_DATE = rf"(\d{{4}}-({_MONTHS}|02-(0[1-9]|1\d|2[0-8]))|{_LEAP})"
LOCAL = {"date-time": f"^{_DATE}T{_CLOCK}{_ZONE}$", "time": f"^{_CLOCK}{_ZONE}$"}


def bounded(schema: Json, local: bool = False) -> dict[str, Json]:
    """The schema with limits, as the engine takes it.

    local: dates with times and times may lack seconds and zone, as a tool's user says them.
    Raises UsageError for what is no schema, is too deep, or cannot be held exactly.
    """
    if schema is False:
        raise UsageError("the schema is false: it allows nothing")
    schema = {} if schema is True else schema
    if not isinstance(schema, Mapping):
        raise UsageError(f"a schema is a JSON object, not {schema!r:.60}")
    nodes = list(_nodes(schema, 0))
    _check_counts(nodes)
    _check_patterns(schema, nodes)
    limits = _Limits(nodes, local)
    made = limits.bound(schema)
    made["$defs"] = made.get("$defs", {}) | {ANY: limits.any}
    return made  # type: ignore[no-any-return]


class _Limits:
    """Limits that no number or length in the schema exceeds, so that they exclude nothing alone.

    closes: objects have only the properties they name, unless they say otherwise, and values
        of any kind are limited too. Not so where schemas are merged: a part would bar the rest.
    """

    def __init__(self, nodes: list[Mapping[str, Json]], local: bool) -> None:
        self.local = local
        self.text = max([TEXT, *(_length(node, "minLength") for node in nodes)])
        largest = max([0.0, *(abs(x) for node in nodes for x in _numbers(node))])
        self.number = max(NUMBER, int(10 * largest))
        self.closes = not any(_merges(node) for node in nodes)

    @property
    def any(self) -> dict[str, Json]:
        """Any value: the keywords bind only values of their kind."""
        numbers = {"minimum": -self.number, "maximum": self.number, "multipleOf": STEP}
        return {"maxLength": self.text, **numbers, "items": _ANY, "additionalProperties": _ANY}

    def bound(self, node: Json) -> Json:
        if self.closes and (node is True or node == {}):
            return _ANY
        if not isinstance(node, Mapping):
            return node
        made = dict(node)
        for key in _MAPS:
            if isinstance(node.get(key), Mapping):
                made[key] = {name: self.bound(item) for name, item in node[key].items()}
        for key in _LISTS:
            if isinstance(node.get(key), list):
                made[key] = [self.bound(item) for item in node[key]]
        for key in _SINGLE:
            if key in node:
                made[key] = self.bound(node[key])
        if not {"enum", "const"} & node.keys():
            self._limit(made)
        return made

    def _limit(self, node: dict[str, Json]) -> None:
        kinds = node.get("type", () if _MERGING & node.keys() else _KINDS)
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if "string" in kinds:
            node.setdefault("maxLength", self.text)
            self._format(node)
        if "integer" in kinds or "number" in kinds:
            self._number(node, "number" in kinds)
        if self.closes and "array" in kinds:
            node.setdefault("items", _ANY)
        if self.closes and "object" in kinds:
            self._close(node)

    def _number(self, node: dict[str, Json], fractions: bool) -> None:
        if fractions and not _narrow(node):
            node.setdefault("multipleOf", STEP)
        if "exclusiveMinimum" not in node:
            node.setdefault("minimum", -self.number)
        if "exclusiveMaximum" not in node:
            node.setdefault("maximum", self.number)

    def _close(self, node: dict[str, Json]) -> None:
        if "properties" in node and not {"additionalProperties", "patternProperties"} & node.keys():
            required = set(node.get("required", ())) - node["properties"].keys()
            node["properties"] |= {name: _ANY for name in sorted(required)}
            node["additionalProperties"] = False
        node.setdefault("additionalProperties", _ANY)

    def _format(self, node: dict[str, Json]) -> None:
        form = node.get("format")
        if self.local and form in LOCAL and "pattern" not in node:
            node["pattern"] = LOCAL[node.pop("format")]
        elif form not in _FORMATS:
            node.pop("format", None)


def _nodes(node: Json, depth: int) -> Iterator[Mapping[str, Json]]:
    """Every schema in the schema, itself first."""
    if not isinstance(node, Mapping):
        return
    if depth > DEPTH:
        raise UsageError(_DEEP, _SHALLOW)
    yield node
    for key in _MAPS:
        inner = node.get(key)
        for item in inner.values() if isinstance(inner, Mapping) else ():
            yield from _nodes(item, depth + 1)
    for key in _LISTS:
        inner = node.get(key)
        for item in inner if isinstance(inner, list) else ():
            yield from _nodes(item, depth + 1)
    for key in _SINGLE:
        yield from _nodes(node.get(key), depth + 1)


def _merges(node: Mapping[str, Json]) -> bool:
    """True if the node is several schemas at once."""
    asserts = _MERGING & node.keys()
    return "allOf" in asserts or (bool({"$ref", "anyOf", "oneOf"} & asserts) and len(asserts) > 1)


def _length(node: Mapping[str, Json], key: str) -> int:
    value = node.get(key, 0)
    return int(value) if isinstance(value, int | float) else 0


def _numbers(node: Mapping[str, Json]) -> Iterator[float]:
    for value in (*(node.get(key) for key in (*_BOUNDS, "multipleOf")), node.get("const")):
        if isinstance(value, int | float):
            yield float(max(-_HUGE, min(value, _HUGE)))


def _narrow(node: Mapping[str, Json]) -> bool:
    """True if between the node's bounds six decimals may be too few."""
    low = [node[key] for key in ("minimum", "exclusiveMinimum") if key in node]
    high = [node[key] for key in ("maximum", "exclusiveMaximum") if key in node]
    return bool(low and high) and min(high) - max(low) < 1000 * STEP


def _check_counts(nodes: list[Mapping[str, Json]]) -> None:
    # Keys that a schema does not name are not kept apart: two of them may be the same.
    for node in nodes:
        if len(node.get("enum") or ()) > CHOICES:
            what = f"an enum has {len(node['enum'])} values; at most {CHOICES} can be held"
            raise UsageError(what, "let a tool look the value up")
        least, named = _length(node, "minProperties"), len(node.get("properties") or ())
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
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if _is_map(node) else None
    return node


def _is_map(node: Json) -> bool:
    return isinstance(node, Mapping)


def validator(schema: Json) -> Callable[[Json], None]:
    """A function that raises ValueError, with the place and the reason, for a value that the
    schema does not allow. Numbers are compared as decimals: 0.7 is a multiple of 0.1.

    Raises UsageError if the schema is none.
    """
    try:
        import jsonschema  # type: ignore[import-untyped]
        from referencing import Registry
    except ImportError as e:
        raise BackendError("constraints need jsonschema", "pip install 'mezzotint[agent]'") from e
    kind = jsonschema.Draft202012Validator
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise UsageError(f"not a JSON Schema: {error.message:.200} at {error.json_path}") from None
    except RecursionError:
        raise UsageError(_DEEP, _SHALLOW) from None
    checker = kind(read(json.dumps(schema)), registry=Registry())

    def check(value: Json) -> None:
        for error in checker.iter_errors(value):
            raise ValueError(f"{error.message:.200} at {error.json_path}")

    return check


def read(text: str) -> Json:
    """JSON with its fractions as decimals. Raises ValueError."""
    return json.loads(text, parse_float=_decimal)


def _decimal(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent of 20 digits
        return float(text)
