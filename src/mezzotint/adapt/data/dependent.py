"""Requests that need a look before the act: the look, what it really brought, and the act.

The rules are chains of grammar/worlds.toml. A rule whose tools are held out is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data import acts, values
from mezzotint.adapt.data.acts import Act
from mezzotint.adapt.data.menu import Menu, answered, assistant, told, user
from mezzotint.adapt.data.requests import Sample
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.values import Scene
from mezzotint.adapt.data.worlds import Thing
from mezzotint.agent.tool import Effect, Outcome
from mezzotint.toolcall import Call

_EACH = 4  # calls of one turn, at most
_BESIDE = 0.2  # of the requests that need a look ask for something else, too


def chains() -> list[Mapping[str, Any]]:
    """The rules of requests that need a look first."""
    usable = set(acts.usable())
    rules: list[Mapping[str, Any]] = values.read_once("worlds.toml")["chain"]
    return [rule for rule in rules if {rule["first"][0], rule["then"][0]} <= usable]


def dependent(menu: Menu, rule: Mapping[str, Any]) -> list[Sample]:
    """A look, and what follows from what it brought; none if the world has no such thing."""
    scene, world = menu.scene, menu.world
    things = world.things[rule["thing"]]
    if not things:
        return []
    thing = dict(scene.rng.choice(things))
    try:
        text, first, beside = _asked(rule, thing, menu)
    except KeyError:  # the thing lacks what the request speaks of
        return []
    at_once = [first, *beside]
    outcome, *others = (_made(call, menu, text) for call in at_once)
    if not outcome.ok or not all(other.ok for other in others):
        return []
    found = [_entry(one) for one in _results(outcome.data)]
    meant = _meant(rule, thing, found) if found else []
    idle = "if" in rule and meant and meant[0].get(rule["if"][0]) is not rule["if"][1]
    if not found or idle:
        ends = [] if others else answered(menu, "chain", text, [first], outcome)
        return [menu.sample("chain", [user(text)], toolcall.write(at_once)), *ends]
    try:
        then = [_then(rule, thing, entry, scene) for entry in meant]
    except KeyError:
        return []
    if not 0 < len(then) <= _EACH or not acts.agrees([*at_once, *then], menu.heard(text), world):
        return []
    turns = [user(text), assistant(toolcall.write(at_once)), told(outcome, *others)]
    return [
        menu.sample("chain", turns[:1], toolcall.write(at_once)),
        menu.sample("chain", turns, toolcall.write(then)),
    ]


def _made(call: Call, menu: Menu, request: str) -> Outcome:
    """What comes of a call, really made."""
    world = menu.world
    context = replace(world.context, run=world.journal.run(request))
    return world.tools[call.name].run(call.arguments, context)


def _asked(rule: Mapping[str, Any], thing: Thing, menu: Menu) -> tuple[str, Call, list[Call]]:
    """The request, its slots added to the thing; its first call; and now and then another
    that needs no look."""

    def fill(slot: str) -> str:
        bare, (name, _, kind) = slot.endswith("!"), slot.rstrip("!").partition(":")
        if kind == "day":
            return thing["day"].removeprefix("on ") if bare else thing["day"]
        if not kind or name in thing:
            return thing[name]
        said = acts.say(kind, menu.world, 0.4, bare)
        if said.value in thing.values():
            raise KeyError(name)  # to whom of the two?
        thing[name] = said.value
        return said.bare if bare else said.text

    line = menu.scene.rng.choice(rule[menu.scene.language])
    text = expand(line.lstrip("~"), menu.scene.rng, fill)
    act = Act(menu.tools[0], text, not line.startswith("~") and not text.startswith("if "), thing)
    asked = [act]
    free = [
        tool.name for tool in menu.tools
        if tool.effect is Effect.WRITES and tool.name != rule["then"][0]
        and "_email" not in tool.name
    ]  # fmt: skip
    if free and menu.scene.rng.random() < _BESIDE:
        asked.append(acts.draw(menu.scene.rng.choice(free), menu.world, known=1.0))
    text, (act, *others) = acts.spoken(asked, menu.scene)
    thing.update(act.arguments)
    name, arguments = rule["first"]
    first = Call(name, {key: act.arguments[slot] for key, slot in arguments.items()})
    return text, first, [other.call for other in others]


def _results(data: Any) -> list[Any]:
    """The things that a result lists, or the one that it is."""
    listed = next((value for value in data.values() if isinstance(value, list)), None)
    if listed is None:
        return [data]
    if "folder" in data:
        return [{"file": f"{data['folder']}/{name}"} for name in listed if not name.endswith("/")]
    return listed


def _entry(found: Mapping[str, Any]) -> dict[str, Any]:
    """A result, its moment also in parts."""
    entry = dict(found)
    if "T" in str(entry.get("start", "")):
        entry["day"], _, entry["clock"] = entry["start"].partition("T")
    return entry


def _meant(
    rule: Mapping[str, Any], thing: Thing, found: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Of the results, those that the request speaks of."""
    if rule.get("each"):
        return list(found)
    if pick := rule.get("pick"):
        return [found[0 if pick == "first" else -1]]
    keys = [key for key in ("subject", "path", "title", "name") if key in thing]
    same = [e for e in found if all(e.get(k, "").casefold() == thing[k].casefold() for k in keys)]
    alone = len(found) == 1 or rule["thing"] == "mail"  # else another might be meant
    return same[:1] if keys and alone else list(found[:1]) if alone else []


def _then(rule: Mapping[str, Any], thing: Thing, entry: Mapping[str, Any], scene: Scene) -> Call:
    name, arguments = rule["then"]
    made: dict[str, Any] = {}
    for key, source in arguments.items():
        if source.startswith("="):
            made[key] = json.loads(source[1:])
        elif source.startswith("@") and " " not in source:
            made[key] = entry[source[1:]]
        elif source.startswith("@"):
            colon = "：" if scene.language == "zh" else ": "
            parts = source.replace("@", "").split(": ")
            made[key] = parts and colon.join(
                " ".join(str(entry[word]) for word in part.split()) for part in parts
            )
        elif thing[source]:
            made[key] = thing[source]
    return Call(name, made)
