"""What the agent's model meets: samples of its turns, with the agent's own tools and results.

One call, several, a call mended after an error, a question for what is missing, nothing that
fits; calls that follow from what was read are `dependent`, corrections `corrected`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data import acts, requests, values
from mezzotint.adapt.data.acts import Act
from mezzotint.adapt.data.dependent import chains, dependent
from mezzotint.adapt.data.menu import Menu, answered, assistant, told, user
from mezzotint.adapt.data.requests import NO_TOOL, Sample
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.values import Scene
from mezzotint.adapt.data.worlds import World
from mezzotint.agent.tool import Effect, Tool
from mezzotint.toolcall import Call

_TRIES = 6  # at one kind, before another is drawn
_NEAR = 0.6  # of the tools beside, like one of the others
_KINDS = {
    "one": 30,
    "several": 17,
    "dependent": 21,
    "reading": 7,
    "mended": 12,
    "missing": 10,
    "no tool": 7,
}


def bunch(world: World, scene: Scene) -> list[Sample]:
    """Several situations of one life, under one list of tools."""
    rng = scene.rng
    rule = rng.choice(chains())
    names = [rule["first"][0], rule["then"][0]]
    names += _beside(names, world, rng.choice([1, 2, 2, 3, 3, 4]), rng)
    rng.shuffle(names)
    world.begin(scene, names)
    menu = Menu(world, [world.tools[name] for name in names])
    found: list[Sample] = []
    while len(found) < requests.BUNCH:
        kind = rng.choices(list(_KINDS), list(_KINDS.values()))[0]
        tries = (_MAKE[kind](menu, rule) for _ in range(_TRIES))
        found += next(filter(None, tries), [])
    return found


def _beside(names: Sequence[str], world: World, count: int, rng: Random) -> list[str]:
    """More tools: some like those that are there, for the agent shows what is easily confused."""
    packs = {_pack(world.tools[name]) for name in names}
    others = [name for name in acts.usable() if name not in names]
    near = [name for name in others if _pack(world.tools[name]) in packs]
    like = rng.sample(near, min(sum(rng.random() < _NEAR for _ in range(count)), len(near)))
    return like + rng.sample([n for n in others if n not in like], count - len(like))


def one(menu: Menu, rule: Any = None) -> list[Sample]:
    return _calls(menu, 1, "call")


def several(menu: Menu, rule: Any = None) -> list[Sample]:
    return _calls(menu, menu.scene.rng.choice([2, 2, 2, 3, 3, 4]), "several")


def _calls(menu: Menu, count: int, kind: str) -> list[Sample]:
    """Independent calls, each of another tool or of other values."""
    rng = menu.scene.rng
    if count > 1 and rng.random() < 0.7:
        names = rng.sample(menu.names, min(count, len(menu.names)))
    else:
        names = [rng.choice(menu.names) for _ in range(count)]
    text, wanted = acts.spoken([acts.draw(name, menu.world) for name in names], menu.scene)
    made = [act.call for act in wanted]
    if len({toolcall.write([call]) for call in made}) < len(made):
        return []
    if not acts.agrees(made, menu.heard(text), menu.world):
        return []
    return [menu.sample(kind, [user(text)], toolcall.write(made))]


def missing(menu: Menu, rule: Any = None) -> list[Sample]:
    """The question back, and now and then the call once it is answered."""
    found = acts.lacking(menu.scene.rng.choice(menu.names), menu.world)
    if found is None:
        return []
    act, question, needed = found
    text, (act,) = acts.spoken([act], menu.scene)
    samples = [menu.sample("ask", [user(text)], question)]
    if needed and menu.scene.rng.random() < 0.4:
        kind = acts.table()[act.tool.name]["args"][needed]
        said = acts.say(kind, menu.world, 0.4)
        act = replace(act, arguments={**act.arguments, needed: said.value})
        if acts.agrees([act.call], menu.heard(text, said.text), menu.world):
            turns = [user(text), assistant(question), user(said.text)]
            samples.append(menu.sample("answer", turns, toolcall.write([act.call])))
    return samples


def no_tool(menu: Menu, rule: Any = None) -> list[Sample]:
    """What another tool could do, or none."""
    scene, world = menu.scene, menu.world
    packs = {_pack(tool) for tool in menu.tools}
    others = [name for name in acts.usable() if _pack(world.tools[name]) not in packs]
    if others and scene.rng.random() < 0.45:
        act = acts.draw(scene.rng.choice(others), world)
    else:
        lines = values.read_once("frames.toml")[scene.language]["impossible"]
        text = expand(scene.rng.choice(lines), scene.rng, lambda kind: scene.say(kind).bare)
        asks = text.startswith(("what", "how"))
        act = Act(menu.tools[0], text, not asks and scene.language == "en")
    text, _ = acts.spoken([act], scene)
    return [menu.sample("no tool", [user(text)], NO_TOOL[scene.language])]


def _pack(tool: Tool) -> str:
    """Tools of one pack may be meant for each other's requests; notes and reminders, too."""
    name = tool.name.rpartition("_")[2]
    return _LIKE.get(name, name.removesuffix("s"))


_LIKE = {"email": "mail", "contact": "mail", "reminder": "event", "reminders": "event"} | {
    "file": "note", "files": "note", "folder": "note", "notes": "note",
    "device": "home", "light": "home", "thermostat": "home", "door": "home", "cover": "home",
    "vacuum": "home", "scene": "home", "music": "home", "media": "home", "volume": "home",
    "temperature": "home", "window": "home", "car": "home", "status": "home",
}  # fmt: skip


def reading(menu: Menu, rule: Any = None) -> list[Sample]:
    """What a look brought, and the answer."""
    names = [tool.name for tool in menu.tools if tool.effect is Effect.READS]
    act = acts.draw(menu.scene.rng.choice(names), menu.world, known=0.85)
    text, (act,) = acts.spoken([act], menu.scene)
    if not acts.agrees([act.call], menu.heard(text), menu.world):
        return []
    outcome = act.tool.run(act.arguments, menu.world.context)
    if outcome.closest or outcome.choices:
        return []
    return answered(menu, "done" if outcome.ok else "down", text, [act.call], outcome)


def mended(menu: Menu, rule: Any = None) -> list[Sample]:
    """A call that failed, and the one that will not: with the name that exists, or with what
    was left out; or what cannot be mended."""
    rng, world = menu.scene.rng, menu.world
    act = acts.draw(rng.choice(menu.names), world, known=1.0)
    text, (act,) = acts.spoken([act], menu.scene)
    texts = [n for n, kind in act.kinds.items() if kind in world.names and n in act.arguments]
    optional = [n for n in act.arguments if n not in act.tool.parameters.get("required", ())]
    if texts and (not optional or rng.random() < 0.7):
        argument = rng.choice(texts)
        wrong = _slipped(str(act.arguments[argument]), rng)
        text = text.replace(str(act.arguments[argument]), wrong)
        call = Call(act.tool.name, {**act.call.arguments, argument: wrong})
    elif optional:
        argument = rng.choice(optional)
        call = Call(act.tool.name, {n: v for n, v in act.call.arguments.items() if n != argument})
    else:
        return []
    outcome = act.tool.problem(call.arguments, world.context)
    if outcome is None and act.tool.effect is Effect.READS:
        outcome = act.tool.run(call.arguments, world.context)
    if outcome is None or outcome.ok or outcome.choices:
        return []
    if outcome.closest:
        right = Call(call.name, {**call.arguments, outcome.argument: outcome.closest})
    elif call.arguments.keys() < act.call.arguments.keys():
        right = act.call
    else:
        return answered(menu, "down", text, [call], outcome)
    turns = [user(text), assistant(toolcall.write([call])), told(outcome)]
    if right.arguments == call.arguments or not acts.agrees([right], menu.heard(text), world):
        return []
    return [menu.sample("retry", turns, toolcall.write([right]))]


def _slipped(name: str, rng: Random) -> str:
    """A name as someone who half remembers it says it."""
    words = name.split()
    if len(words) > 1 and rng.random() < 0.6:
        place = rng.randrange(len(words))
        return " ".join([*words[:place], _slip(words[place], rng), *words[place + 1 :]])
    return _slip(name, rng)


def _slip(word: str, rng: Random) -> str:
    if len(word) < 3:
        return word[::-1]
    place = rng.randrange(1, len(word) - 1)
    other = rng.choice("aeionrst" if word.isascii() else "大新小明文方")
    return word[:place] + other + word[place + rng.choice([1, 2]) :]


Make = Callable[[Menu, Mapping[str, Any]], list[Sample]]
_MAKE: Mapping[str, Make] = {
    "one": one,
    "several": several,
    "dependent": dependent,
    "reading": reading,
    "mended": mended,
    "missing": missing,
    "no tool": no_tool,
}
