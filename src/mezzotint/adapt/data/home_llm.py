"""Samples from home-llm's piles (MIT): actions, refusals and second tries in a home.

The devices of a home are listed in the prompt, and a call names them as they are listed there.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data.requests import Sample

_MARKED = re.compile(r"<\w+>")
_TWICE = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)


@dataclass(frozen=True)
class Homes:
    """The piles of home-llm. devices: friendly name by id, such as "light.hall"."""

    devices: Mapping[str, str]
    actions: Sequence[Mapping[str, str]]
    templates: Sequence[Mapping[str, str]]
    refusals: Sequence[Mapping[str, str]]
    failures: Sequence[Mapping[str, str]]


def read(folder: Path) -> Homes:
    def pile(name: str) -> list[dict[str, str]]:
        file = folder / "home_llm_piles_en" / f"pile_of_{name}.csv"
        return list(csv.DictReader(file.read_text("utf-8").splitlines()))

    devices = {row["device_name"]: row["description"] for row in pile("device_names")}
    return Homes(
        devices,
        [row for row in pile("specific_actions") if _names(row, devices)],
        [row for row in pile("templated_actions") if _fillable(row["phrase"])],
        pile("refusals"),
        [row for row in pile("failed_tool_calls") if _meant(row, devices)],
    )


def _id(row: Mapping[str, str], key: str) -> str:
    return f"{row['service_name'].split('.')[0]}.{row[key]}"


def _names(row: Mapping[str, str], devices: Mapping[str, str]) -> bool:
    """Whether the device's listed name has the words of its id, which the request has too."""
    listed = devices.get(_id(row, "device_name"), "").lower().split()
    return bool(listed) and set(row["device_name"].split("_")) <= set(listed)


def _meant(row: Mapping[str, str], devices: Mapping[str, str]) -> bool:
    """Whether the device exists and the service is what the request says."""
    toggled = row["service_name"].endswith("toggle") == ("toggle" in row["phrase"].lower())
    return row["correct_device_name"] in devices and toggled


def _fillable(phrase: str) -> bool:
    return _MARKED.findall(phrase) == ["<device_name>"]


def draw(homes: Homes) -> Callable[[Random], Sample | None]:
    """An action, a refusal or a second try, in a home of devices with their states."""

    def one(rng: Random) -> Sample | None:
        kind = rng.random()
        if kind < 0.35:
            row = rng.choice(homes.actions)
            return _action(homes, row["service_name"], _id(row, "device_name"), row["phrase"], rng)
        if kind < 0.7:
            row = rng.choice(homes.templates)
            fitting = [i for i in homes.devices if i.split(".")[0] == row["device_type"]]
            if not fitting:
                return None
            device = rng.choice(fitting)
            phrase = row["phrase"].replace("<device_name>", homes.devices[device].lower())
            return _action(homes, f"{row['device_type']}.{row['service']}", device, phrase, rng)
        if kind < 0.85:
            return _refusal(homes, rng.choice(homes.refusals), rng)
        return _second_try(homes, rng.choice(homes.failures), rng)

    return one


def _action(homes: Homes, service: str, device: str, phrase: str, rng: Random) -> Sample:
    tools, arg = _services(service, rng)
    call = toolcall.write([toolcall.Call(service, {arg: homes.devices[device]})])
    state = _told(homes, [device], rng)
    return _sample("home action", tools, state, [("user", _clean(phrase))], call)


def _refusal(homes: Homes, row: Mapping[str, str], rng: Random) -> Sample:
    """A device that is not there, or is already as it should be."""
    service, friendly = row["service_name"], row["friendly_name"]
    tools, _ = _services(service, rng)
    name = _lower(friendly.removeprefix("The "))
    phrase = re.sub(r"<device_name> (climate|cover)\b", "<device_name>", row["phrase"])
    phrase = phrase.replace("<device_name>", name)
    if _MARKED.search(phrase) or _TWICE.search(phrase):
        phrase = f"{service.split('.')[1].removesuffix('_cover').replace('_', ' ')} the {name}"
    be = "are" if name.endswith("s") else "is"
    if row["reason_type"] == "not_available":
        state, target = _told(homes, [], rng, besides=friendly), f"There {be} no {name} here."
    else:
        state = _told(homes, [], rng, stated=f"{friendly} ({row['desired_state']})")
        target = f"The {name} {be} already {row['desired_state']}."
    return _sample("refusal", tools, state, [("user", _clean(phrase))], target)


def _lower(name: str) -> str:
    """A name within a sentence: TV and PS5 keep their capitals."""
    return " ".join(word if word.isupper() else word.lower() for word in name.split())


def _second_try(homes: Homes, row: Mapping[str, str], rng: Random) -> Sample:
    """A call failed by a wrong name; the right one is on the list."""
    tools, arg = _services(row["service_name"], rng)
    right = homes.devices[row["correct_device_name"]]
    wrong = row["bad_device_name"].split(".")[-1].replace("_", " ")

    def call(name: str) -> str:
        return toolcall.write([toolcall.Call(row["service_name"], {arg: name})])

    error = json.dumps({"error": f"no device {wrong}"})
    turns = [("user", _clean(row["phrase"])), ("assistant", call(wrong)), ("tool", error)]
    state = _told(homes, [row["correct_device_name"]], rng, alone=True)
    return _sample("retry", tools, state, turns, call(right))


def _services(service: str, rng: Random) -> tuple[list[dict[str, Any]], str]:
    """The service as a tool among others of its kind, and the name of its argument."""
    arg = rng.choice(["device", "name", "target", "entity"])
    kinds = {name for name in _SERVICES if rng.random() < 0.3 and name != service}
    names = [service, *rng.sample(sorted(kinds), min(len(kinds), rng.randint(0, 4)))]
    rng.shuffle(names)
    parameters = {"type": "object", "properties": {arg: {"type": "string"}}, "required": [arg]}
    return [{"name": n, "description": "", "parameters": parameters} for n in names], arg


_SERVICES = [
    *("light.turn_on", "light.turn_off", "light.toggle", "switch.turn_on", "switch.turn_off"),
    *("fan.turn_on", "fan.turn_off", "fan.increase_speed", "fan.decrease_speed", "lock.lock"),
    *("lock.unlock", "blinds.open_cover", "blinds.close_cover", "garage_door.open_cover"),
    *("garage_door.close_cover", "vacuum.start", "vacuum.stop", "vacuum.return_to_base"),
    *("media_player.volume_up", "media_player.media_pause", "climate.turn_on", "climate.turn_off"),
]


def _told(
    homes: Homes,
    wanted: Sequence[str],
    rng: Random,
    besides: str = "",
    stated: str = "",
    alone: bool = False,
) -> str:
    """The list of devices: `wanted` and others, not `besides`. alone: none of its kind."""
    kinds = {device.split(".")[0] for device in wanted} if alone else set()
    others = [
        device
        for device, name in homes.devices.items()
        if device not in wanted and name != besides and device.split(".")[0] not in kinds
    ]
    chosen = [*wanted, *rng.sample(others, rng.randint(2, 6))]
    listed = [f"{homes.devices[i]} ({i.split('.')[0]})" for i in chosen]
    listed += [stated] if stated else []
    rng.shuffle(listed)
    return f"Devices: {', '.join(listed)}"


def _clean(phrase: str) -> str:
    return " ".join(phrase.replace('"', "").split())


def _sample(
    kind: str, tools: Sequence[Mapping[str, Any]], state: str, turns: Sequence[tuple[str, str]],
    target: str,
) -> Sample:  # fmt: skip
    messages = [{"role": "system", "content": toolcall.system(tools, state=state)}]
    messages += [{"role": role, "content": content} for role, content in turns]
    return Sample(kind, "en", messages, tools, target)
