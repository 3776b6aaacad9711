"""A JSON Schema made ready for the grammar engine: checked, closed, and with a limit to each hole.

The language written is a part of what the schema allows: compact JSON, properties in the
schema's order, and none that it does not name unless it says so. It knows JSON Schema
(2020-12), not tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mezzotint.constraint.checks import LISTS, MAPS, SINGLE, Json, checked, length
from mezzotint.errors import UsageError

TEXT = 1000  # characters of a string without maxLength
NUMBER = 10**15  # size of a number without bounds; below it a double holds every integer
STEP = 1e-6  # a number has six decimals, unless it has a multipleOf

_HUGE = 10**300
_MERGING = frozenset(
    [
        *("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"),
        *("properties", "required", "additionalProperties", "patternProperties"),
        *("minProperties", "maxProperties", "items", "prefixItems", "minItems", "maxItems"),
        *("pattern", "minLength", "maxLength", "minimum", "maximum"),
    ]
)
_KINDS = ("string", "number", "array", "object")
ANY = "any-value"  # the name under $defs
_ANY = {"$ref": f"#/$defs/{ANY}"}
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_FORMATS = frozenset(  # others are remarks
    [
        *("date-time", "time", "date", "duration", "email", "hostname"),
        *("ipv4", "ipv6", "uuid", "uri"),
    ]
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
    limits = _Limits(checked(schema), local)
    made = limits.bound(schema)
    return {**made, "$defs": made.get("$defs", {}) | {ANY: limits.any}}


class _Limits:
    """Limits that no number or length in the schema exceeds, so that they exclude nothing alone.

    closes: objects have only the properties they name, unless they say otherwise, and values
        of any kind are limited too. Not so where schemas are merged: a part would bar the rest.
    """

    def __init__(self, nodes: list[Mapping[str, Json]], local: bool) -> None:
        self.local = local
        self.text = max([TEXT, *(length(node, "minLength") for node in nodes)])
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
        for key in MAPS:
            if isinstance(node.get(key), Mapping):
                made[key] = {name: self.bound(item) for name, item in node[key].items()}
        for key in LISTS:
            if isinstance(node.get(key), list):
                made[key] = [self.bound(item) for item in node[key]]
        for key in SINGLE:
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
            node["properties"] |= dict.fromkeys(sorted(required), _ANY)
            node["additionalProperties"] = False
        node.setdefault("additionalProperties", _ANY)

    def _format(self, node: dict[str, Json]) -> None:
        form = node.get("format")
        if self.local and form in LOCAL and "pattern" not in node:
            node["pattern"] = LOCAL[node.pop("format")]
        elif form not in _FORMATS:
            node.pop("format", None)


def _merges(node: Mapping[str, Json]) -> bool:
    """True if the node is several schemas at once."""
    asserts = _MERGING & node.keys()
    return "allOf" in asserts or (bool({"$ref", "anyOf", "oneOf"} & asserts) and len(asserts) > 1)


def _numbers(node: Mapping[str, Json]) -> Iterator[float]:
    for value in (*(node.get(key) for key in (*_BOUNDS, "multipleOf")), node.get("const")):
        if isinstance(value, int | float):
            yield float(max(-_HUGE, min(value, _HUGE)))


def _narrow(node: Mapping[str, Json]) -> bool:
    """True if between the node's bounds six decimals may be too few."""
    low = [node[key] for key in ("minimum", "exclusiveMinimum") if key in node]
    high = [node[key] for key in ("maximum", "exclusiveMaximum") if key in node]
    return bool(low and high) and min(high) - max(low) < 1000 * STEP
