"""What was done, the user's correction of it, and the calls anew, as agent/loop.py shows them:
under the tools that were called alone. The words are those of frames.toml, by what they correct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data import acts, requests, values
from mezzotint.adapt.data.acts import Act
from mezzotint.adapt.data.menu import Menu, assistant, user
from mezzotint.adapt.data.requests import Sample
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.values import Scene
from mezzotint.adapt.data.worlds import World
from mezzotint.agent.ground import corrects
from mezzotint.agent.tool import Tool


def corrected(world: World, scene: Scene) -> list[Sample]:
    """What was done, the user's correction of it, and the calls anew; several, of one life."""
    world.begin(scene, ())
    rng = scene.rng
    names = rng.sample(acts.usable(), rng.choice([1, 1, 1, 2]))
    menu = Menu(world, [world.tools[name] for name in names])
    found: list[Sample] = []
    for _ in range(4 * requests.BUNCH):
        found += _correction(menu)
        if len(found) == requests.BUNCH:
            break
    return found


def _correction(menu: Menu) -> list[Sample]:
    scene, world = menu.scene, menu.world
    text, wanted = acts.spoken([acts.draw(name, world) for name in menu.names], scene)
    place = scene.rng.randrange(len(wanted))
    act = wanted[place]
    classes = [_class(kind) for one in wanted for kind in one.kinds.values()]
    changeable = [
        name for name, kind in act.kinds.items()
        if _class(kind) in _corrections(scene) and classes.count(_class(kind)) == 1
    ]  # fmt: skip
    if not changeable:
        return []
    argument = scene.rng.choice(changeable)
    better, said = _changed(act, argument, menu)
    if better is None:
        return []
    lines = _corrections(scene)[_class(act.kinds[argument])]
    reply = expand(scene.rng.choice(lines), scene.rng, lambda _: said)
    before = [one.call for one in wanted]
    after = [*before[:place], better.call, *before[place + 1 :]]
    fits = acts.agrees(before, menu.heard(text), world)
    if not fits or not acts.agrees(after, menu.heard(text, reply), world) or not corrects(reply):
        return []
    if scene.language == "en" and scene.rng.random() < 0.5:
        reply = acts.capital(reply)
    turns = [user(text), assistant(toolcall.write(before)), user(reply)]
    return [menu.sample("corrected", turns, toolcall.write(after))]


def _corrections(scene: Scene) -> Mapping[str, Sequence[str]]:
    found: Mapping[str, Sequence[str]] = values.read_once("frames.toml")[scene.language]["correct"]
    return found


def _class(kind: str) -> str:
    """How a value of a kind is corrected: as a moment, a person, a text, …"""
    if kind in ("moment", "date", "time"):
        return "moment"
    if kind in ("percent", "degrees", "minutes"):
        return "amount"
    if kind in ("human", "mailbox"):
        return "person"
    return "text" if kind in ("remark", "saying", "inquiry", "tidbit") else kind


def _changed(act: Act, argument: str, menu: Menu) -> tuple[Act | None, str]:
    """The act with another value, and how that is said. Of a moment a part may change."""
    rng, old, kind = menu.scene.rng, act.arguments[argument], act.kinds[argument]
    if kind in ("moment", "date", "time") and act.tool.name != "charge_car":
        schema = act.tool.parameters["properties"][argument]
        parts = ["date"] if schema["format"] == "date" else ["date", "time", "moment"]
        kind = rng.choice(parts)
    said = acts.say(kind, menu.world, 0.4)
    if said.bare.startswith("in "):
        return None, ""
    new = said.value
    if kind in ("date", "time") and _takes_both(act.tool, argument):
        day, _, clock = old.partition("T") if "-" in old else ("", "", old)
        day, clock = (new, clock) if kind == "date" else (day, new)
        new = f"{day}T{clock}" if day and clock else day or clock
    if new == old:
        return None, ""
    return replace(act, arguments={**act.arguments, argument: new}), said.bare


def _takes_both(tool: Tool, argument: str) -> bool:
    item: Mapping[str, Any] = tool.parameters["properties"][argument]
    return item.get("format") == "date-time"
