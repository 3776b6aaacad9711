"""Home Assistant's sentence templates, expanded for homes drawn at random, as tool prompts.

Templates and intents come from the package `home-assistant-intents` (Apache-2.0), English and
zh-CN; the test sentences from shared eval data. A home is told in the prompt as its areas and
devices; a call names them as they are listed there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data import values
from mezzotint.adapt.data.requests import BUNCH, Sample
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.values import Scene
from mezzotint.errors import UsageError

_FILES = {"en": "en", "zh": "zh-CN"}
_NUMBERS = {
    *("hours", "minutes", "seconds", "start_hours", "start_minutes", "start_seconds"),
    *("brightness", "percentage", "position", "volume_level"),
}
_SKIPPED = {"HassRespond", "HassNevermind"}  # small talk: there is nothing to call
# What templates with many optional parts also yield.
_ODD = re.compile(r"百分之.*%|的的|\b(the|my|our) (the|my|our)\b")
_SOUGHT = {"artist": "artist", "playlist": "playlist", "podcast": "podcast", "movie": "movie"}


@dataclass(frozen=True)
class Device:
    name: str
    domain: str
    area: str | None = None


@dataclass(frozen=True)
class Home:
    areas: Sequence[str] = ()
    devices: Sequence[Device] = ()

    def told(self) -> str:
        """The home in the prompt: its areas, and its devices with domain and area."""
        devices = [f"{d.name} ({d.domain}{f', {d.area}' if d.area else ''})" for d in self.devices]
        lines = [f"Areas: {', '.join(self.areas)}"] if self.areas else []
        lines += [f"Devices: {', '.join(devices)}"] if devices else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Block:
    """Templates of one intent that give the same fixed slots and ask for the same devices."""

    intent: str
    sentences: Sequence[str]
    slots: Mapping[str, Any] = field(default_factory=dict)
    domains: Sequence[str] = ()


@dataclass(frozen=True)
class Grammar:
    blocks: Mapping[str, Sequence[Block]]
    lists: Mapping[str, Mapping[str, Any]]
    rules: Mapping[str, str]


def _read(name: str) -> dict[str, Any]:
    try:
        folder = files("home_assistant_intents")
    except ModuleNotFoundError:
        raise UsageError(
            "building the data needs Home Assistant's templates",
            "pip install home-assistant-intents",
        ) from None
    content: dict[str, Any] = json.loads((folder / name).read_text("utf-8"))
    return content


@lru_cache(maxsize=2)
def grammar(language: str) -> Grammar:
    """The templates of a language. Raises UsageError if the package is not installed."""
    read = _read(f"data/{_FILES[language]}.json")
    blocks: dict[str, list[Block]] = {}
    for intent, content in read["intents"].items():
        if intent in tools():
            for data in content["data"]:
                wanted = data.get("requires_context", {}).get("domain", [])
                domains = [wanted] if isinstance(wanted, str) else wanted
                block = Block(intent, data["sentences"], data.get("slots", {}), domains)
                blocks.setdefault(intent, []).append(block)
    return Grammar(blocks, read["lists"], read["expansion_rules"])


@lru_cache(maxsize=1)
def tools() -> dict[str, dict[str, Any]]:
    """Every intent as a tool."""
    found = {}
    for name, intent in _read("intents.json").items():
        if intent.get("supported") and name not in _SKIPPED:
            slots = intent.get("slots", {})
            slots = {slot: spec for slot, spec in slots.items() if not slot.startswith("preferred")}
            properties = {slot: {"type": _type(name, slot)} for slot in slots}
            required = [slot for slot, spec in slots.items() if spec.get("required")]
            parameters = {"type": "object", "properties": properties, "required": required}
            about = intent["description"].rstrip(".")
            found[name] = {"name": name, "description": about, "parameters": parameters}
    return found


def _type(intent: str, slot: str) -> str | list[str]:
    if slot in _NUMBERS:
        return "integer"
    if slot == "temperature":
        return "integer" if intent == "HassLightSet" else "number"
    return ["integer", "string"] if slot == "volume_step" else "string"


def samples(scene: Scene, groups: Mapping[str, Sequence[Block]]) -> list[Sample]:
    """Requests of up to four random intents in one random home."""
    rng, home = scene.rng, draw_home(scene)
    weights = [len(blocks) ** 0.5 for blocks in groups.values()]
    intents = list(dict.fromkeys(rng.choices(list(groups), weights, k=4)))
    drawn = [_request(scene, rng.choice(groups[rng.choice(intents)]), home) for _ in range(BUNCH)]
    found = [one for one in drawn if one is not None]
    shown = menu([intent for _, intent, _ in found], rng)
    return [prompt(*one, home, scene.language, shown) for one in found]


def _request(scene: Scene, block: Block, home: Home) -> tuple[str, str, Mapping[str, Any]] | None:
    """Text, intent and slots; None if the draw came to nothing."""
    slots: dict[str, Any] = dict(block.slots)
    filler = _Filler(scene, block, home, slots)
    try:
        text = expand(
            scene.rng.choice(block.sentences), scene.rng, filler, grammar(scene.language).rules
        )
    except LookupError:  # no device of the domains in this home, or a list we cannot fill
        return None
    text = "".join(text.split()) if scene.language == "zh" else text
    schema = tools()[block.intent]
    known = schema["parameters"]["properties"]
    fits = set(schema["parameters"]["required"]) <= set(slots) <= set(known)
    if not text or not fits or _ODD.search(text) or _unfinished(text, block.intent, slots):
        return None
    return text, block.intent, slots


def _unfinished(text: str, intent: str, slots: Mapping[str, Any]) -> bool:
    """Whether a Chinese sentence is one nobody says: a floor as a bare number, a loose 的."""
    floor = slots.get("floor", "")
    bare = floor in ("一", "二", "三", "四") and not re.search(f"{floor}[楼层]", text)
    return bare or (text.endswith("的") and intent != "HassGetState")


@dataclass
class _Filler:
    """Fills the lists of one sentence, and keeps what each slot was given."""

    scene: Scene
    block: Block
    home: Home
    slots: dict[str, Any]

    def __call__(self, reference: str) -> str:
        kind, _, slot = reference.partition(":")
        said, value = self._draw(kind)
        self.slots[slot or kind] = value
        return said

    def _draw(self, kind: str) -> tuple[str, Any]:
        rng = self.scene.rng
        english = self.scene.language == "en"
        if kind == "name":
            wanted = self.block.domains
            fitting = [d for d in self.home.devices if not wanted or d.domain in wanted]
            name = rng.choice(fitting).name
            return (name.lower() if english and rng.random() < 0.7 else name), name
        if kind == "area":
            area = rng.choice(self.home.areas)
            return (area.lower() if english else area), area
        if kind == "floor":
            floor = rng.choice(_words(self.scene, "floors"))
            return (floor.lower() if english else floor), floor
        entry = grammar(self.scene.language).lists[kind]
        if "values" in entry:
            chosen = rng.choice(entry["values"])
            if isinstance(chosen, str):
                chosen = {"in": chosen, "out": chosen}
            said = expand(chosen["in"], rng, self, grammar(self.scene.language).rules)
            return said, chosen.get("out", said)
        if "range" in entry:
            return _range(entry["range"], rng)
        return self._wild(kind)

    def _wild(self, kind: str) -> tuple[str, str]:
        """Free text: an item, a message, a timer's name."""
        source = {
            "timer_name": "dish", "message": "message", "todo_list_item": "task",
            "shopping_list_item": "grocery", "zone": "room",
            "search_query": _SOUGHT.get(self.slots.get("media_class", ""), "song"),
        }[kind]  # fmt: skip
        text = self.scene.word(source)
        return text, text


def _range(limits: Mapping[str, Any], rng: Random) -> tuple[str, int]:
    n = rng.randrange(limits["from"], limits["to"] + 1, limits.get("step", 1))
    if limits.get("type") != "temperature" and limits["to"] == 100 and rng.random() < 0.5:
        n = rng.choice([5, 10, 15, 20, 25, 30, 40, 45, 50, 60, 70, 75, 80, 90])
    return str(n), n * limits.get("multiplier", 1)


def draw_home(scene: Scene) -> Home:
    """One to four areas, and up to eight devices, some of them in an area."""
    rng = scene.rng
    areas = rng.sample(_words(scene, "areas"), rng.randint(1, 4))
    names = _words(scene, "devices")
    chosen = rng.sample(names, min(len(names), rng.randint(3, 9)))
    devices = []
    for entry in chosen:
        domain, name = entry.split("|")
        devices.append(Device(name, domain, rng.choice(areas) if rng.random() < 0.4 else None))
    return Home(areas, devices)


def _words(scene: Scene, kind: str) -> list[str]:
    words: list[str] = values.read_once("homes.toml")[scene.language][kind]
    return words


def menu(intents: Sequence[str], rng: Random) -> list[dict[str, Any]]:
    """The tools of the intents among others, up to six in all."""
    gold = list(dict.fromkeys(intents))
    others = [name for name in tools() if name not in gold]
    shown = gold + rng.sample(others, rng.randint(0, 6 - len(gold)))
    rng.shuffle(shown)
    return [tools()[name] for name in shown]


def prompt(
    text: str, intent: str, slots: Mapping[str, Any], home: Home, language: str,
    shown: Sequence[Mapping[str, Any]], unseen: str = "",
) -> Sample:  # fmt: skip
    """A request with its home, the tools that are shown, and the call."""
    order = tools()[intent]["parameters"]["properties"]
    call = toolcall.Call(intent, {slot: slots[slot] for slot in order if slot in slots})
    messages = [
        {"role": "system", "content": toolcall.system(shown, state=home.told())},
        {"role": "user", "content": text},
    ]
    return Sample("home", language, messages, shown, toolcall.write([call]), unseen)


def tests(file: Path, seed: int) -> list[Sample]:
    """The test sentences of eval/ohf_intents_tests_en_zh.jsonl, each with its own home."""
    found = []
    for number, line in enumerate(file.read_text("utf-8").splitlines()):
        row = json.loads(line)
        tool = tools().get(row["intent"])
        if tool is None or not set(tool["parameters"]["required"]) <= set(row["slots"]):
            continue
        context = row["context"]
        home = Home(context["areas"], [Device(**entity) for entity in context["entities"]])
        rng = Random(f"{seed}/home tests/{number}")
        language = row["lang"].split("-")[0]
        slots = row["slots"]
        if language == "zh" and "floor" in slots:  # the tests have both 一 and 一楼 for 一楼
            slots["floor"] = slots["floor"].removesuffix("楼")
        shown = menu([row["intent"]], rng)
        found.append(prompt(row["text"], row["intent"], slots, home, language, shown, "sentence"))
    return found
