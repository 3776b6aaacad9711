"""Devices with a state in one JSON file: what the simulated home and car are made of.

    {"rooms": {"office": "书房"},
     "devices": [{"kind": "light", "name": "desk lamp", "chinese": "台灯", "room": "office",
                  "state": {"on": false, "brightness": 40}}, …]}

Finds the devices that are meant, by their names in both languages, and says a state in words.
Which states make sense for which kind is the packs' affair.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mezzotint.agent import names
from mezzotint.agent.tool import Context, Outcome, Problem
from mezzotint.agent.workspace import Workspace
from mezzotint.errors import UsageError

State = dict[str, Any]

_NOUNS = {  # all devices of a kind, in a room or in the home
    **dict.fromkeys(("light", "lights", "lamp", "lamps", "灯", "灯光"), "light"),
    **dict.fromkeys(("fan", "fans", "风扇"), "fan"),
    **dict.fromkeys(("blinds", "curtains", "shutters", "窗帘"), "cover"),
    **dict.fromkeys(("door", "doors", "门"), "lock"),
}
_ALL = ("all", "every", "所", "有", "全", "部")
_FLAGS = {  # a state that is yes or no: English and Chinese, each for no and yes
    "on": (("off", "on"), ("关", "开")),
    "locked": (("unlocked", "locked"), ("未锁", "已锁")),
    "playing": (("paused", "playing"), ("暂停", "播放中")),
    "charging": (("not charging", "charging"), ("未充电", "充电中")),
}
_VALUES = {  # any other state
    "brightness": ("{}%", "亮度{}%"),
    "temperature": ("{}°C", "{}°C"),
    "position": ("{}% open", "打开{}%"),
    "volume": ("volume {}%", "音量{}%"),
    "charge": ("charged {}%", "电量{}%"),
    "limit": ("up to {}%", "充到{}%"),
    "pressure": ("{} bar", "{}巴"),
    "start": ("from {}", "{}开始"),
}
_CHINESE = {
    "heat": "制热",
    "cool": "制冷",
    "auto": "自动",
    "fan": "送风",
    "dry": "除湿",
    "low": "低",
    "medium": "中",
    "high": "高",
    "cleaning": "清扫",
    "red": "红色",
    "blue": "蓝色",
    "green": "绿色",
    "yellow": "黄色",
    "purple": "紫色",
    "orange": "橙色",
    "pink": "粉色",
    "white": "白色",
    "warm white": "暖白色",
    "turquoise": "青绿色",
}


@dataclass(frozen=True, slots=True)
class Device:
    """kind: light, lock, … room: a key of the rooms, empty where it matters not."""

    kind: str
    name: str
    chinese: str
    room: str
    state: State

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.name, self.room


class Devices:
    """The devices of a JSON file of the workspace."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        self._workspace, self._path = workspace, path

    def content(self) -> dict[str, Any]:
        """The whole file. Raises UsageError if it is not there or not right."""
        try:
            content: dict[str, Any] = json.loads(self._workspace.read(self._path) or b"null")
            return {"rooms": {}, "scenes": []} | content | {"devices": content["devices"]}
        except (ValueError, TypeError, KeyError):
            raise UsageError(f"the workspace has no {self._path} that lists devices") from None

    def all(self, kinds: Sequence[str] = ()) -> list[Device]:
        """The devices of some kinds, or of every."""
        devices = [Device(**entry) for entry in self.content()["devices"]]
        return [device for device in devices if not kinds or device.kind in kinds]

    def find(
        self,
        name: str,
        context: Context,
        argument: str,
        kinds: Sequence[str] = (),
        room: str | None = None,
    ) -> list[Device]:
        """The devices meant: one by its name, or all of a kind by its noun.

        Raises Problem if none is, or if several are and neither a room nor "all" was said.
        """
        pool = self.all(kinds)
        wanted, name = self._place(name, room, context)
        if wanted:
            pool = [device for device in pool if device.room == wanted] or pool
        said = names.words(name)
        noun = "".join(word for word in said if word not in _ALL)
        kind = [device for device in pool if device.kind == _NOUNS.get(noun)]
        if kind and (wanted or len(noun) < len("".join(said))):
            return kind
        found = names.fitting(name, pool, lambda d: d.name)
        found = found or names.fitting(name, pool, lambda d: d.chinese) or kind
        labels = [self.label(device, context) for device in found or pool]
        if not found:
            names.missing(name, labels, context, argument)
        if len(found) > 1:
            names.several(name, labels, context, argument)
        return found

    def in_room(self, kind: str, room: str | None, context: Context) -> list[Device]:
        """The devices of a kind in a room, or anywhere. Raises Problem if there is none."""
        wanted = room and self.room(room, context)
        found = [d for d in self.all([kind]) if not wanted or d.room == wanted]
        if not found:
            raise Problem(context.say(f"no {kind} {room or ''}".strip(), "没有这样的设备"))
        return found

    def room(self, name: str, context: Context) -> str:
        """The key of a room. Raises Problem for one that there is not."""
        rooms: dict[str, str] = self.content()["rooms"]
        found = names.fitting(name, list(rooms), str)
        found = found or names.fitting(name, list(rooms), rooms.__getitem__)
        if not found:
            names.missing(name, [context.say(e, z) for e, z in rooms.items()], context, "room")
        return found[0]

    def said(self, kinds: Sequence[str], text: str) -> list[str]:
        """Which devices of some kinds a text names, as it names them; none if there are none."""
        with suppress(UsageError):
            known = (name for device in self.all(kinds) for name in (device.name, device.chinese))
            return names.said_in(text, known, kind=True)
        return []

    def said_rooms(self, text: str) -> list[str]:
        """Which rooms a text names; none if there are none."""
        with suppress(UsageError):
            rooms: dict[str, str] = self.content()["rooms"]
            return names.said_in(text, [*rooms, *rooms.values()], kind=True)
        return []

    def change(self, devices: Sequence[Device], state: State, context: Context) -> Outcome:
        """Give devices a state; the outcome tells what they are then, read again."""
        content = self.content()
        keys = {device.key for device in devices}
        for entry in content["devices"]:
            if Device(**entry).key in keys:
                entry["state"] |= state
        self.write(content, context)
        return self.tell([device for device in self.all() if device.key in keys], context)

    def write(self, content: Mapping[str, Any], context: Context) -> None:
        data = json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8")
        context.writing().write(self._path, data)

    def tell(self, devices: Sequence[Device], context: Context) -> Outcome:
        """What devices are now, in words and as JSON."""
        between, then = context.say(": ", "："), context.say("; ", "；")
        lines = [f"{self.label(d, context)}{between}{self._words(d, context)}" for d in devices]
        said = then.join(lines)
        data: Any = [{"name": d.name, "room": d.room} | d.state for d in devices]
        return Outcome(
            said=context.say(f"{said[:1].upper()}{said[1:]}.", f"{said}。"),
            data=data[0] if len(data) == 1 else {"devices": data},
        )

    def label(self, device: Device, context: Context) -> str:
        """A device with its room; as a choice it picks this one."""
        room = self.content()["rooms"].get(device.room, "")
        return context.say(f"{device.room} {device.name}".strip(), room + device.chinese)

    def _place(self, name: str, room: str | None, context: Context) -> tuple[str, str]:
        """The room that is said, alone or at the head of a name; and the name without it."""
        if room:
            return self.room(room, context), name
        for key, chinese in self.content()["rooms"].items():
            for head in (key, f"the {key}", chinese):
                rest = name.casefold().removeprefix(head)
                if rest != name.casefold() and names.words(rest):
                    return key, rest
        return "", name

    def _words(self, device: Device, context: Context) -> str:
        """A state in words: "on, 40%, warm white"; 开，亮度40%，暖白色."""
        chinese = context.language == "zh"
        words = _CHINESE | self.content()["rooms"]
        said = []
        off = device.state.get("on") is False
        for key, value in device.state.items():
            if off and key != "on":
                continue
            if key in _FLAGS:
                said.append(_FLAGS[key][chinese][bool(value)])
            elif value not in (None, ""):
                form = _VALUES.get(key, ("{}", "{}"))[chinese]
                said.append(form.format(words.get(value, value) if chinese else value))
        return context.say(", ", "，").join(said)
