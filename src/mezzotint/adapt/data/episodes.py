"""Samples with a call behind them: what follows its result, and calls that need each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data import pool, requests
from mezzotint.adapt.data.pool import Spec
from mezzotint.adapt.data.requests import Asked, Sample
from mezzotint.adapt.data.speech import polished
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.times import Said
from mezzotint.adapt.data.values import Scene

DONE = {"en": "Done.", "zh": "好了。"}
FAILED = {"en": "That did not work: {}.", "zh": "没有成功：{}。"}
_REASONS = ["not connected", "permission denied", "no network", "out of storage"]

# What a device looks up by name, and may know under another.
_LOOKED_UP = {
    *("person", "file", "folder", "event", "list", "playlist", "clip", "place", "room", "light"),
    *(
        "appliance",
        "lock",
        "cover",
        "scene",
        "camera",
        "app",
        "station",
        "podcast",
        "song",
        "title",
    ),
}
_CREATING = ("create", "add_contact", "rename")  # a new name is not looked up
# Tools whose result is an answer: the model is not taught to say "Done." to that.
_ANSWERING = (
    *("find", "search", "list", "get", "show", "check", "convert", "translate", "stock", "track"),
)


def after(asked: Asked, first: Sample, scene: Scene) -> Sample:
    """What follows the result of a call: a word when it worked, another try, or giving up."""
    call = toolcall.parse(first.target)[0]
    answering = asked.spec.name.startswith(_ANSWERING)
    kind = scene.rng.choice(["busy" if answering else "done", "busy", "down", "closest", "closest"])
    other = _closest(asked, call, scene) if kind == "closest" else None
    if other is not None:
        result, target = other
        kind = "retry"
    elif kind == "busy":
        result, target, kind = {"error": "busy, try again"}, first.target, "retry"
    elif kind == "down" or answering:
        reason = scene.rng.choice(_REASONS)
        result, target, kind = {"error": reason}, FAILED[scene.language].format(reason), "down"
    else:
        result, target, kind = {"ok": True}, DONE[scene.language], "done"
    told = json.dumps(result, ensure_ascii=False)
    turns = [{"role": "assistant", "content": first.target}, {"role": "tool", "content": told}]
    return Sample(kind, scene.language, [*first.messages, *turns], first.tools, target)


def _closest(asked: Asked, call: toolcall.Call, scene: Scene) -> tuple[dict[str, Any], str] | None:
    """An error that tells the name the device knows, and the call with it."""
    args = asked.spec.args
    sought = {v for name, v in asked.arguments.items() if args[name].kind in _LOOKED_UP}
    texts = [(key, value) for key, value in call.arguments.items() if value in sought]
    if not texts or asked.spec.name.startswith(_CREATING):
        return None
    key, value = scene.rng.choice(texts)
    known = f"新{value}" if scene.language == "zh" else f"{value} {scene.rng.choice('23AB')}"
    better = toolcall.Call(call.name, {**call.arguments, key: known})
    return {"error": f"no {key} {value}", "closest": known}, toolcall.write([better])


def chain(chains: Sequence[Mapping[str, Any]], scene: Scene, crowd: Sequence[Spec]) -> list[Sample]:
    """A request that takes two calls: the first of them, and the second."""
    rng = scene.rng
    rule = rng.choice(chains)
    said: dict[str, Said] = {}
    for slot, kind in rule["slots"].items():
        said[slot] = _built(kind, said, rng) if kind.startswith("=") else scene.say(kind)
    by_name = {spec.name: spec for spec in pool.specs()}
    text = expand(rng.choice(rule[scene.language]), rng, lambda slot: said[slot].text)
    steps = [
        Asked(by_name[name], text, {arg: said[slot].value for arg, slot in arguments.items()})
        for name, arguments in (rule["first"], rule["then"])
    ]
    tools = requests.menu(steps, crowd, rng)
    written = [toolcall.write([tools[s.spec.name].call(s.arguments)]) for s in steps]
    turns = [("user", polished(text, scene))]
    first = requests.sample("chain", scene, tools, turns, written[0])
    result = {key: said[slot].value for key, slot in rule["result"].items()}
    told = json.dumps(result, ensure_ascii=False)
    turns += [("assistant", written[0]), ("tool", told)]
    return [first, requests.sample("chain", scene, tools, turns, written[1])]


def _built(kind: str, said: Mapping[str, Said], rng: Random) -> Said:
    """What a template after "=" makes of the slots before it: a path that holds a name."""
    text = expand(kind[1:], rng, lambda slot: said[slot].bare)
    return Said(text, text, text)
