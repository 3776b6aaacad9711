"""The pool of tools: what each may be called, what it takes, how people ask for it.

A `Spec` is a tool with its grammar; `show` gives it the name, argument names, order and
descriptions that one prompt displays, so that a model must read them. Held-out specs are
for evaluation alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

from mezzotint.adapt.data import values
from mezzotint.toolcall import Call

FILES = ["office", "notes", "media", "home", "video", "everyday"]
LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Arg:
    kind: str
    optional: bool
    names: tuple[str, ...]  # the first is its own
    about: str = ""


@dataclass(frozen=True, eq=False)
class Spec:
    """requests, asks: templates by language; an ask is "request => question"."""

    name: str
    names: tuple[str, ...]
    about: tuple[str, ...]
    args: Mapping[str, Arg]
    requests: Mapping[str, tuple[str, ...]]
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    group: str = ""
    held_out: bool = False

    @property
    def required(self) -> set[str]:
        return {name for name, arg in self.args.items() if not arg.optional}


@dataclass(frozen=True)
class Shown:
    """A spec as one prompt displays it. names: the displayed name of each argument."""

    spec: Spec
    schema: Mapping[str, Any]
    names: Mapping[str, str]

    def call(self, arguments: Mapping[str, Any]) -> Call:
        """A call by the displayed names, its arguments in the displayed order."""
        shown = {self.names[name]: value for name, value in arguments.items()}
        order = self.schema["parameters"]["properties"]
        return Call(self.schema["name"], {name: shown[name] for name in order if name in shown})


@lru_cache(maxsize=1)
def specs() -> tuple[Spec, ...]:
    """Every tool of the grammar files, then those made of grammar/objects.toml."""
    written = [
        _spec(name, table) for file in FILES for name, table in values.read(f"{file}.toml").items()
    ]
    made = [
        spec for name, table in values.read("objects.toml").items() for spec in _made(name, table)
    ]
    return (*written, *made)


def _spec(name: str, table: Mapping[str, Any]) -> Spec:
    ask = table.get("ask", {})
    return Spec(
        name,
        (name, *table["names"]),
        tuple(table["about"]),
        {arg: _arg(arg, text) for arg, text in table["args"].items()},
        {language: _lines(table[language]) for language in LANGUAGES},
        {language: _lines(ask.get(language, "")) for language in LANGUAGES},
        table.get("group", name),
        table.get("held_out", False),
    )


def _arg(name: str, text: str) -> Arg:
    kind, others, about = (*(part.strip() for part in text.split("|")), "", "")[:3]
    return Arg(kind.lstrip("?"), kind.startswith("?"), (name, *others.split()), about)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _made(name: str, table: Mapping[str, Any]) -> list[Spec]:
    """create, find, update and delete tools for one kind of thing."""
    article, thing, zh = table["words"]
    fields: Mapping[str, list[str]] = table["fields"]
    keys = list(fields)
    number = f"{name}_id"
    id_arg = {number: Arg("int:1-999", False, (number, "id", "number"))}
    optional = {key: Arg(fields[key][0], True, (key,)) for key in keys}
    required = optional | {keys[0]: Arg(fields[keys[0]][0], False, (keys[0],))}

    def say(key: str, place: int) -> str:
        return fields[key][place].replace("{}", f"{{{key}!}}").replace("{on}", f"{{{key}}}")

    def spec(
        verb: str, other: str, about: str, args: dict[str, Arg], en: list[str], cn: list[str]
    ) -> Spec:
        names = (f"{verb}_{name}", f"{other}_{name}", f"{name}.{verb}", f"{name}.{other}")
        return Spec(
            names[0],
            names,
            (about,),
            args,
            {"en": tuple(en), "zh": tuple(cn)},
            group=names[0],
            held_out=table.get("held_out", False),
        )

    # The first field alone, then with the second, and so on; then with the last.
    wholes = [keys[: size + 1] for size in range(len(keys))] + [[keys[0], keys[-1]]]
    new_en = [" ".join(say(key, 1) for key in some) for some in wholes]
    new_zh = ["，".join(say(key, 2) for key in some) for some in wholes]
    return [
        spec(
            "create",
            "add",
            f"Create {article} {thing}.",
            required,
            [f"(create|add|register|enter) {article} [new] {thing} {rest}" for rest in new_en],
            [f"(新建|创建|添加)(一个|){zh}，{rest}" for rest in new_zh],
        ),
        spec(
            "find",
            "search",
            f"Find {thing}s by their fields.",
            optional,
            [f"(find|search for|show [me]|list) [all] {thing}s {say(key, 1)}" for key in keys],
            [f"(查找|搜索|列出){zh}，{say(key, 2)}" for key in keys],
        ),
        spec(
            "update",
            "change",
            f"Change fields of {article} {thing}.",
            id_arg | optional,
            [
                f"(set|change) the {fields[key][3]} of {thing} [number] {{{number}}} to {{{key}!}}"
                for key in keys
            ],
            [f"把{{{number}}}号{zh}的{fields[key][4]}(改成|改为|设为){{{key}!}}" for key in keys],
        ),
        spec(
            "delete",
            "remove",
            f"Delete {article} {thing}.",
            id_arg,
            [f"(delete|remove|cancel) {thing} [number] {{{number}}}"],
            [f"(删除|取消){{{number}}}号{zh}"],
        ),
    ]


def show(spec: Spec, rng: Random, used: set[str] | None = None) -> Shown:
    """One of the ways to display `spec`. used: arguments that must stay; others may go."""
    names: dict[str, str] = {}
    for own, arg in spec.args.items():
        options = [name for name in arg.names if name not in names.values()]
        names[own] = rng.choice(options) if options and rng.random() < 0.6 else options[0]
    kept = [
        name for name, arg in spec.args.items()
        if not arg.optional or name in (used or ()) or rng.random() < 0.7
    ]  # fmt: skip
    kept = kept or list(spec.args)[:1]
    if rng.random() < 0.5:
        rng.shuffle(kept)
    described = rng.random() < 0.4
    properties = {}
    for own in kept:
        item = values.schema(spec.args[own].kind)
        if spec.args[own].about and (described or names[own] not in spec.args[own].about):
            item |= {"description": spec.args[own].about}
        properties[names[own]] = item
    required = [names[own] for own in kept if not spec.args[own].optional]
    schema = {
        "name": _styled(rng.choice(spec.names), rng),
        "description": rng.choice(spec.about) if rng.random() < 0.9 else "",
        "parameters": {"type": "object", "properties": properties, "required": required},
    }
    return Shown(spec, schema, names)


def _styled(name: str, rng: Random) -> str:
    """snake_case mostly, sometimes camelCase or PascalCase."""
    style = rng.random()
    if style < 0.75 or "." in name:
        return name
    words = [word.capitalize() for word in re.split("_", name)]
    text = "".join(words)
    return text if style > 0.9 else text[0].lower() + text[1:]
