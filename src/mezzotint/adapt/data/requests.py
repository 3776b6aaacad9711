"""Samples from our own grammar: one call, several, a question back, or none at all.

Samples are made in bunches: several requests under one menu of tools, so that what to call
depends on the request and not on the tools that happen to be there.

One sample is one assistant turn: what stood before it and what it should be. Held-out
tools, and held-out sets of arguments of the others, appear only when asked for.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from random import Random
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data import pool, values
from mezzotint.adapt.data.pool import Shown, Spec
from mezzotint.adapt.data.speech import articled, joined, polished
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.values import Scene

# Always said the same way, so that a small model learns when, not how, to say it.
NO_TOOL = {"en": "None of my tools can do that.", "zh": "我的工具做不到这件事。"}

# Arguments that run to the end of the sentence: nothing can be said after them.
_OPEN = {"message", "note", "task", "query", "phrase", "expression", "subject", "caption", "topic"}
BUNCH = 6  # requests under one menu
_SIZES = [1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8]  # how many tools a prompt shows


@dataclass(frozen=True)
class Sample:
    """One assistant turn. target: its text. unseen: a tool or argument set held out of training."""

    kind: str
    language: str
    messages: Sequence[Mapping[str, str]]
    tools: Sequence[Mapping[str, Any]]
    target: str
    unseen: str = ""

    @property
    def request(self) -> str:
        return "\n".join(turn["content"] for turn in self.messages if turn["role"] == "user")

    def line(self) -> str:
        """One JSON line. The tools stand in the system message; `schemas` is for checks."""
        row = asdict(self)
        row["schemas"] = row.pop("tools")
        return json.dumps(row, ensure_ascii=False)


@dataclass(frozen=True)
class Asked:
    """A request for one tool: the words, and the arguments they give by their own names."""

    spec: Spec
    text: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@cache
def _chained() -> set[tuple[str, frozenset[str]]]:
    """The argument sets of dependent calls: they are trained on."""
    chains = values.read("chains.toml")["chain"]
    steps = [rule[step] for rule in chains for step in ("first", "then")]
    return {(name, frozenset(arguments)) for name, arguments in steps}


def held_set(spec: Spec, arguments: Mapping[str, Any]) -> bool:
    """Whether this set of arguments is kept from training: one in four that hold several."""
    given = set(arguments)
    if len(given) < 2 or given == spec.required or (spec.name, frozenset(given)) in _chained():
        return False
    key = ",".join([spec.name, *sorted(arguments)])
    return zlib.crc32(key.encode()) % 4 == 0


def ask(spec: Spec, scene: Scene, template: str = "") -> Asked:
    """A request for `spec`, of a random template unless one is given."""
    arguments: dict[str, Any] = {}
    said: set[str] = set()

    def fill(slot: str) -> str:
        bare, (name, _, kind) = slot.endswith("!"), slot.rstrip("!").partition(":")
        value = scene.say(kind or spec.args[name].kind)
        # Two clips, two cities: never the same one; nor "for in an hour".
        while value.bare in said or (bare and value.bare.startswith("in ")):
            value = scene.say(kind or spec.args[name].kind)
        said.add(value.bare)
        arguments[name] = value.value
        return value.bare if bare else value.text

    text = expand(template or scene.rng.choice(spec.requests[scene.language]), scene.rng, fill)
    return Asked(spec, articled(text) if scene.language == "en" else text, arguments)


def ask_until(specs: Sequence[Spec], scene: Scene, held: bool) -> Asked:
    """A request for one of `specs` whose argument set is held out, or is not."""
    while True:
        asked = ask(scene.rng.choice(specs), scene)
        if held_set(asked.spec, asked.arguments) == held:
            return asked


Menu = Mapping[str, Shown]  # the tools of a prompt, in its order, by their specs' own names


def menu(asked: Sequence[Asked], crowd: Sequence[Spec], rng: Random) -> Menu:
    """The tools of what is asked among distractors from `crowd`, eight at most."""
    used: dict[Spec, set[str]] = {}
    for one in asked:
        used.setdefault(one.spec, set()).update(one.arguments)
    gold: list[Shown] = []
    for spec, arguments in used.items():
        shown = pool.show(spec, rng, arguments)
        while shown.schema["name"] in {other.schema["name"] for other in gold}:
            shown = pool.show(spec, rng, arguments)
        gold.append(shown)
    return {shown.spec.name: shown for shown in surround(gold, crowd, rng)}


def call(asked: Sequence[Asked], tools: Menu, scene: Scene, unseen: str = "") -> Sample:
    """The request, or several joined, and its calls."""
    target = toolcall.write(tools[one.spec.name].call(one.arguments) for one in asked)
    text = polished(joined([one.text for one in asked], scene), scene)
    kind = "call" if len(asked) == 1 else "several"
    return sample(kind, scene, tools, [("user", text)], target, unseen=unseen)


def several(specs: Sequence[Spec], scene: Scene) -> list[Asked]:
    """Two or three requests, or fewer if few go together; an open end can only be the last."""
    count = scene.rng.choice([2, 2, 3])
    chosen: list[Asked] = []
    for _ in range(20):
        if len(chosen) == count:
            break
        asked = ask_until(specs, scene, held=False)
        opened = any(asked.spec.args[name].kind in _OPEN for name in asked.arguments)
        question = asked.text.endswith("?") or (len(asked.text) > 90)
        same = any(asked.spec.group == one.spec.group and asked.spec != one.spec for one in chosen)
        if not (same or question or (opened and len(chosen) < count - 1)):
            chosen.append(asked)
    return chosen or [ask_until(specs, scene, held=False)]


@dataclass(frozen=True)
class Missing:
    """A request that lacks what its tool needs, the question back, and what is lacking."""

    asked: Asked
    question: str
    lacking: Sequence[str]


def missing(specs: Sequence[Spec], scene: Scene) -> Missing | None:
    """A request of one of `specs` that lacks something, if any of them can be asked so."""
    askable = [spec for spec in specs if spec.asks.get(scene.language)]
    if not askable:
        return None
    spec = scene.rng.choice(askable)
    template, question = scene.rng.choice(spec.asks[scene.language]).split(" => ")
    asked = ask(spec, scene, template)
    return Missing(asked, question, sorted(spec.required - set(asked.arguments)))


def question(lacks: Missing, tools: Menu, scene: Scene) -> Sample:
    """The question back, or the call once it is answered."""
    asked = lacks.asked
    turns = [("user", polished(asked.text, scene))]
    if len(lacks.lacking) > 1 or scene.rng.random() < 0.6:
        return sample("ask", scene, tools, turns, lacks.question)
    answer = scene.say(asked.spec.args[lacks.lacking[0]].kind)
    whole = {**asked.arguments, lacks.lacking[0]: answer.value}
    if held_set(asked.spec, whole):
        return sample("ask", scene, tools, turns, lacks.question)
    turns += [("assistant", lacks.question), ("user", answer.text)]
    target = toolcall.write([tools[asked.spec.name].call(whole)])
    return sample("answer", scene, tools, turns, target)


def no_tool(specs: Sequence[Spec], tools: Menu, scene: Scene) -> Sample:
    """A request whose tool is not there."""
    asked = ask(scene.rng.choice(specs), scene)
    while any(rivals(shown.spec, asked.spec) for shown in tools.values()):
        asked = ask(scene.rng.choice(specs), scene)
    text = polished(asked.text, scene)
    return sample("no tool", scene, tools, [("user", text)], NO_TOOL[scene.language])


def surround(gold: Sequence[Shown], crowd: Sequence[Spec], rng: Random) -> list[Shown]:
    """`gold` among distractors, eight tools at most, none of them a rival of another."""
    count = rng.choice(_SIZES)
    tools = list(gold)
    taken = {shown.schema["name"] for shown in tools}
    for spec in rng.sample(list(crowd), min(len(crowd), 3 * count)):
        if len(tools) >= count:
            break
        shown = pool.show(spec, rng)
        if shown.schema["name"] in taken or any(rivals(spec, t.spec) for t in tools):
            continue
        taken.add(shown.schema["name"])
        tools.append(shown)
    rng.shuffle(tools)
    return tools


def rivals(one: Spec, other: Spec) -> bool:
    """Whether a request for one might be meant for the other."""
    if one.group == other.group:
        return True
    return any(one.group in family and other.group in family for family in _FAMILIES)


_FAMILIES = [
    {"reminder", "task", "alarm", "timer", "event_add", "note_add"},
    {"event_list", "event_del", "event_move"},
    {"list_add", "task"},
    {"note_add", "note_append"},
    {"mail", "message"},
    {"nav", "taxi", "nearby", "traffic"},
    {"light", "switch"},
    {"thermostat", "climate_car"},
    {"music", "playlist", "radio", "podcast", "film", "bgm"},
    {"recipe", "search", "calc", "weather", "stock", "news", "currency", "nearby"},
    {"pause", "mute"},
    {"app", "file_open"},
    {"clip_del", "trim", "split"},
    {"lock", "car_lock"},
    {"screen", "setting"},
    {"file_list", "file_find"},
]


def sample(
    kind: str, scene: Scene, tools: Menu, turns: Sequence[tuple[str, str]],
    target: str, state: str = "", unseen: str = "",
) -> Sample:  # fmt: skip
    """A sample with its system message; the time is told where a tool may need it."""
    schemas = [shown.schema for shown in tools.values()]
    timed = any(
        "format" in item for s in schemas for item in s["parameters"]["properties"].values()
    )
    now = scene.now if timed or scene.now.minute % 5 == 0 else None
    messages = [{"role": "system", "content": toolcall.system(schemas, now, state)}]
    messages += [{"role": role, "content": content} for role, content in turns]
    return Sample(kind, scene.language, messages, schemas, target, unseen)
