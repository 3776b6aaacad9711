"""Sentence templates: a random walk through one, in the notation of Home Assistant's hassil.

`(a|b)` chooses, `[a]` may be left out, `(a;b)` stands in either order, `{slot}` is filled
by the caller and `<rule>` is another template. It knows no tools and no languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from random import Random

Node = str | tuple[str, tuple["Node", ...]]  # text, or (kind, children)
Fill = Callable[[str], str]

_CLOSING = {"[": "]", "(": ")", "{": "}", "<": ">"}


def expand(template: str, rng: Random, fill: Fill, rules: Mapping[str, str] | None = None) -> str:
    """One sentence of `template`, spaces tidied. `fill` is told what stands in the braces.

    Raises ValueError for a template that is not closed, KeyError for an unknown rule.
    """
    text = _walk(_parse(template), rng, fill, rules or {})
    return re.sub(r" ([,.?!])", r"\1", " ".join(text.split()))


def _walk(node: Node, rng: Random, fill: Fill, rules: Mapping[str, str]) -> str:
    if isinstance(node, str):
        return node
    kind, children = node
    if kind == "slot":
        return fill(str(children[0]))
    if kind == "rule":
        return _walk(_parse(rules[str(children[0])]), rng, fill, rules)
    if kind == "optional" and rng.random() < 0.5:
        return ""
    if kind in ("optional", "one"):
        return _walk(rng.choice(children), rng, fill, rules)
    parts = list(children)
    if kind == "any order":
        rng.shuffle(parts)
    joint = " " if kind == "any order" else ""
    return joint.join(_walk(part, rng, fill, rules) for part in parts)


@cache
def _parse(template: str) -> Node:
    node, end = _group(template, 0, "")
    if end != len(template):
        raise ValueError(f"template closes what it did not open at {end}: {template!r}")
    return node


def _group(text: str, at: int, closing: str) -> tuple[Node, int]:
    """Parse up to `closing`; returns the node and the place after it."""
    branches: list[list[Node]] = [[]]
    separator = ""
    while at < len(text) and text[at] not in "])":
        char = text[at]
        if char in "[(":
            inside, at = _group(text, at + 1, _CLOSING[char])
            branches[-1].append(("optional", (inside,)) if char == "[" else inside)
        elif char in "{<":
            end = text.index(_CLOSING[char], at)
            branches[-1].append(("slot" if char == "{" else "rule", (text[at + 1 : end],)))
            at = end + 1
        elif char == "|" or (char == ";" and closing):
            separator = char
            branches.append([])
            at += 1
        else:
            branches[-1].append(char)
            at += 1
    if closing and text[at : at + 1] != closing:
        raise ValueError(f"template is not closed: {text!r}")
    parts = tuple(_sequence(branch) for branch in branches)
    if len(parts) == 1:
        return parts[0], at + len(closing)
    return ("any order" if separator == ";" else "one", parts), at + len(closing)


def _sequence(nodes: list[Node]) -> Node:
    """Adjacent characters joined into one text."""
    joined: list[Node] = []
    for node in nodes:
        if isinstance(node, str) and joined and isinstance(joined[-1], str):
            joined[-1] += node
        else:
            joined.append(node)
    return joined[0] if len(joined) == 1 else ("sequence", tuple(joined))
