"""Random JSON Schemas that something satisfies, for tests of constraints."""

from __future__ import annotations

from random import Random
from typing import Any

PATTERNS = ("^[a-z]{2,5}$", r"^\d{3}-\d{2}$", "foo", "^(red|green)( light)?$", "^[A-Z][a-z]*$")
FORMATS = ("date", "date-time", "time", "uuid", "ipv4", "email", "password")
VALUES = ("on", "off", 'a"b', "雨", 7, -2.5, True, None, [1, "x"], {"k": 0})


def draw(seed: int) -> dict[str, Any]:
    rng = Random(seed)
    schema = node(rng, 3)
    if rng.random() < 0.2:  # a list that refers to itself
        schema = {
            "$defs": {"item": {
                "type": "object",
                "properties": {"value": schema, "next": {"$ref": "#/$defs/item"}},
                "required": ["value"],
            }},
            "$ref": "#/$defs/item",
        }  # fmt: skip
    return schema


def node(rng: Random, depth: int) -> dict[str, Any]:
    leaves = (string, number, number, literal, string)
    branches = (obj, obj, obj, array, either, both)
    return rng.choice(branches if depth and rng.random() < 0.7 else leaves)(rng, depth)


def string(rng: Random, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string"}
    kind = rng.randrange(5)
    if kind == 0:
        made["pattern"] = rng.choice(PATTERNS)
    elif kind == 1:
        made["format"] = rng.choice(FORMATS)
    elif kind > 2:
        made["minLength"] = rng.randrange(4)
        made["maxLength"] = made["minLength"] + rng.randrange(9)
    return made


def number(rng: Random, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": rng.choice(["integer", "number", ["integer", "null"]])}
    low = rng.randrange(-1000, 1000)
    if rng.random() < 0.6:
        made[rng.choice(["minimum", "exclusiveMinimum"])] = low
    if rng.random() < 0.6:
        made[rng.choice(["maximum", "exclusiveMaximum"])] = low + rng.randrange(2, 2000)
    if rng.random() < 0.1:
        return {"type": "integer", "multipleOf": rng.choice([2, 5, 7])}
    return made


def literal(rng: Random, depth: int) -> dict[str, Any]:
    if rng.random() < 0.2:
        return {"type": rng.choice(["boolean", "null"])}
    if rng.random() < 0.3:
        return {"const": rng.choice(VALUES)}
    return {"enum": rng.sample(VALUES, rng.randrange(1, 5))}


def obj(rng: Random, depth: int) -> dict[str, Any]:
    names = rng.sample(["a", "name", "when", "a b", "größe", 'q"'], rng.randrange(1, 5))
    made: dict[str, Any] = {
        "type": "object",
        "properties": {name: node(rng, depth - 1) for name in names},
        "required": [name for name in names if rng.random() < 0.6],
    }
    kind = rng.randrange(6)
    if kind < 3:
        made["additionalProperties"] = False
    elif kind == 3:
        made["additionalProperties"] = node(rng, 0)
    elif kind == 4:
        return {"type": "object", "additionalProperties": node(rng, 0), "maxProperties": 3}
    return made


def array(rng: Random, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "array", "items": node(rng, depth - 1)}
    if rng.random() < 0.3:
        made = {"type": "array", "prefixItems": [node(rng, 0), node(rng, 0)], "items": False}
    least = rng.randrange(3)
    return made | {"minItems": least, "maxItems": least + rng.randrange(4)}


def either(rng: Random, depth: int) -> dict[str, Any]:
    return {"anyOf": [node(rng, depth - 1) for _ in range(rng.randrange(1, 4))]}


def both(rng: Random, depth: int) -> dict[str, Any]:
    parts = [
        {"type": "object", "properties": {name: node(rng, depth - 1)}, "required": [name]}
        for name in ("left", "right")
    ]
    return {"allOf": parts} if rng.random() < 0.5 else parts[0] | {"allOf": parts[1:]}
