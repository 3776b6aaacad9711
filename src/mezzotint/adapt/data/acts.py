"""Requests for the agent's own tools, in free words: what is said, and the call that does it.

grammar/acts.toml and said_*.toml have the words, frames.toml what people put around them, the agent
the schemas. Tools and argument sets that are held out of training stay out here too; the words
for such tools (retrieved.toml) are the retriever's alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from mezzotint.adapt.data import pool, requests, values
from mezzotint.adapt.data.speech import articled
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.times import Said
from mezzotint.adapt.data.values import Scene
from mezzotint.adapt.data.worlds import World
from mezzotint.agent.ground import Moments, narrowed
from mezzotint.agent.tool import Tool
from mezzotint.toolcall import Call

CARELESS = 0.1  # of English requests are typed in lower case
_OFTEN = {"opening": 0.35, "reason": 0.18, "closing": 0.25}
_ASKS = re.compile(
    r"(any|what|when|which|where|who|is|are|am|do|did|does|has|have|how|can|could|would|will|if)\b"
    r"|.*(吗|什么|哪里?|几点|多少|谁|怎么|没有|来着)$"
)
_REPLIES = {"send_email": "body", "reply_email": "body", "add_contact": "phone"} | {
    "update_contact": "phone"
}


@dataclass(frozen=True)
class Act:
    """A request of one tool. kinds: of each argument, as it was said. order: an imperative."""

    tool: Tool
    text: str
    order: bool
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def call(self) -> Call:
        """With its arguments in the order of the schema."""
        known = self.tool.parameters.get("properties", {})
        return Call(self.tool.name, {n: self.arguments[n] for n in known if n in self.arguments})


@cache
def table() -> Mapping[str, Any]:
    """By tool: kinds of arguments, lines by language, and lines that lack something."""
    made = values.read("acts.toml")
    for name in values.named("said_*.toml"):
        for tool, more in values.read(name).items():
            made[tool] = {**made[tool], **_joined(made[tool], more)}
            made[tool]["ask"] = _joined(made[tool].get("ask", {}), more.get("ask", {}))
    return made | values.read("retrieved.toml")


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, str]:
    """The lines of both, by language."""
    both = {**one, **other}
    return {
        n: f"{one.get(n, '').strip()}\n{other.get(n, '').strip()}".strip()
        for n in ("en", "zh")
        if n in both
    }


@cache
def usable() -> tuple[str, ...]:
    """Names of the tools that requests are made for: those not held out."""
    held = {spec.name for spec in pool.specs() if spec.held_out}
    return tuple(name for name in table() if name not in held)


@cache
def _spec(name: str) -> pool.Spec | None:
    return next((spec for spec in pool.specs() if spec.name == name), None)


def draw(name: str, world: World, known: float = 0.4, template: str = "") -> Act:
    """A request for the tool `name`. known: how often a name is one that exists in the world."""
    scene, lines = world.scene, table()[name][world.scene.language].strip().splitlines()
    spec = _spec(name)
    while True:
        line = template or scene.rng.choice(lines)
        act = _filled(world.tools[name], line, world, known)
        if spec is None or not requests.held_set(spec, act.arguments):
            return act


def _filled(tool: Tool, line: str, world: World, known: float) -> Act:
    kinds: Mapping[str, str] = table()[tool.name]["args"]
    arguments: dict[str, Any] = {}
    spoken: dict[str, str] = {}

    def fill(slot: str) -> str:
        if slot.startswith("="):
            name, _, value = slot[1:].partition(" ")
            arguments[name] = json.loads(value)
            return ""
        bare, (name, _, kind) = slot.endswith("!"), slot.rstrip("!").partition(":")
        second = name.endswith("2")
        name = name.removesuffix("2")
        kind = kind or kinds[name]
        said = say(kind, world, known, bare)
        arguments[name] = f"{arguments[name]}T{said.value}" if second else said.value
        spoken[name] = "moment" if second else kind
        return said.bare if bare else said.text

    text = expand(line.lstrip("~"), world.scene.rng, fill)
    if world.scene.language == "en":
        text = articled(text)
    return Act(tool, text, not line.startswith("~"), arguments, spoken)


def say(kind: str, world: World, known: float, bare: bool = False) -> Said:
    """A value of `kind`, now and then a name of the world. bare: it must read well so."""
    rng = world.scene.rng
    if kind in world.names and rng.random() < known:
        name = rng.choice(world.names[kind])
        return Said(name, name, name)
    said = world.scene.say(kind)
    while bare and said.bare.startswith("in "):
        said = world.scene.say(kind)
    return said


def lacking(name: str, world: World) -> tuple[Act, str, str] | None:
    """A request that lacks something, the question back, and the one argument that answers it
    ("" if it takes more than one); None if the tool needs nothing."""
    lines = table()[name].get("ask", {}).get(world.scene.language, "").strip().splitlines()
    if not lines:
        return None
    line, question = world.scene.rng.choice(lines).split(" => ")
    act = draw(name, world, template=line)
    needed = [n for n in act.tool.parameters.get("required", ()) if n not in act.arguments]
    if len(needed) > 1:
        return act, question, ""
    return act, question, needed[0] if needed else _REPLIES[name]


def spoken(acts: Sequence[Act], scene: Scene) -> tuple[str, list[Act]]:
    """The acts as one request in free words; and the acts, their values as it spells them."""
    frames, rng = values.read_once("frames.toml")[scene.language], scene.rng
    text = ""
    for number, act in enumerate(acts):
        part = (
            rng.choice(frames["order"]).format(act.text) if act.order and not number else act.text
        )
        joint = rng.choice(frames["then"]) if number else ""
        if number and not (act.order and acts[number - 1].order):
            joint = ". " if scene.language == "en" else "。"
        text += joint + (capital(part) if joint.endswith((". ", "。")) and len(joint) < 3 else part)
    asks = _ASKS.match(text) if len(acts) == 1 else None
    stop = ("?" if scene.language == "en" else "？") if asks else ""
    text = around(text, scene, stop)
    if scene.language == "en" and rng.random() < CARELESS:
        return lowered(text), [_lowered(act, text) for act in acts]
    return text, list(acts)


def around(text: str, scene: Scene, stop: str = "") -> str:
    """A request with what people say before and after it."""
    frames, rng = values.read_once("frames.toml")[scene.language], scene.rng
    english = scene.language == "en"

    def word(part: str) -> str:
        if rng.random() > _OFTEN[part]:
            return ""
        return expand(rng.choice(frames[part]), rng, lambda kind: scene.say(kind).bare)

    opening, reason, closing = (word(part) for part in ("opening", "reason", "closing"))
    if reason:
        opening = ""
    if english:
        reason += " " if reason else ""
        opening += " " if opening else ""
        sentence = not opening or opening.endswith((". ", "! "))
        text = capital(text) if sentence and rng.random() < 0.8 else text
    end = "" if text[-1] in ".?!。？！" else stop or ("." if english else "。")
    if closing:
        return f"{opening}{reason}{text}{end}{' ' if english else ''}{closing}"
    return f"{opening}{reason}{text}{end if rng.random() < 0.5 else ''}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    """As one types who does not care: no capitals, no apostrophes."""
    return re.sub(r"(?<=\w)'(?=\w)", "", text.lower()).rstrip(".")


def _lowered(act: Act, text: str) -> Act:
    changed = {
        name: lowered(value) if isinstance(value, str) and value in text else value
        for name, value in act.arguments.items()
    }
    return replace(act, arguments=changed)


def agrees(calls: Sequence[Call], said: Moments, world: World) -> bool:
    """Whether the agent could write these calls: their moments are those that it hears."""
    for call in calls:
        schema = narrowed(world.tools[call.name].parameters, said)
        for name, item in schema["properties"].items():
            if name in call.arguments and call.arguments[name] not in item.get(
                "enum", [call.arguments[name]]
            ):
                return False
    return True
