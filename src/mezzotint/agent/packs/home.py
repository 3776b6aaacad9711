"""A simulated home: lights, switches, thermostats, locks, covers, a vacuum, music.

Its state is home/state.json. The tools are those of a real home, so that what works here can
be put before one; every sentence tells what the state is after the change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from mezzotint.agent import names
from mezzotint.agent.packs.devices import Device, Devices, State
from mezzotint.agent.tool import Context, Effect, Names, Outcome, Tool
from mezzotint.agent.workspace import Workspace

STATE = "home/state.json"

Percent = Annotated[int, Field(ge=0, le=100)]
Degrees = Annotated[int, Field(ge=5, le=35)]
Color = Literal[
    "red", "blue", "green", "yellow", "purple", "orange", "pink", "white", "warm white", "turquoise"
]
Mode = Literal["heat", "cool", "auto", "fan", "dry"]
Level = Literal["low", "medium", "high"]
_SWITCHED = ("light", "switch", "fan", "media", "vacuum")


def tools(workspace: Workspace) -> list[Tool]:
    devices = Devices(workspace, STATE)
    home = _Home(devices)

    def known(argument: str, *kinds: str) -> dict[str, Names]:
        return {argument: partial(devices.said, kinds), "room": devices.said_rooms}

    room: dict[str, Names] = {"room": devices.said_rooms}
    writing: list[tuple[Callable[..., Outcome], dict[str, Names]]] = [
        (home.set_light, known("light", "light")),
        (home.switch_device, known("device", *_SWITCHED)),
        (home.set_thermostat, room),
        (home.lock_door, {"door": partial(devices.said, ("lock",))}),
        (home.set_cover, known("cover", "cover")),
        (home.start_vacuum, room),
        (home.activate_scene, {}),
        (home.play_music, room),
        (home.pause_media, room),
        (home.set_volume, room),
    ]
    return [
        *(Tool.of(function, Effect.WRITES, known=names) for function, names in writing),
        Tool.of(home.get_device, Effect.READS, known=known("device")),
    ]


class _Home:
    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def set_light(
        self,
        light: str,
        room: str | None = None,
        brightness: Percent | None = None,
        color: Color | None = None,
        *,
        context: Context,
    ) -> Outcome:
        """Set a light's brightness or color."""
        found = self._devices.find(light, context, "light", ["light"], room)
        state: State = {"on": brightness != 0}
        if brightness is not None:
            state["brightness"] = brightness
        if color:
            state["color"] = color
        return self._devices.change(found, state, context)

    def switch_device(
        self, device: str, on: bool, room: str | None = None, *, context: Context
    ) -> Outcome:
        """Switch a device on or off; on is true to switch it on."""
        found = self._devices.find(device, context, "device", _SWITCHED, room)
        return self._devices.change(found, {"on": on}, context)

    def set_thermostat(
        self,
        temperature: Degrees,
        room: str | None = None,
        mode: Mode | None = None,
        *,
        context: Context,
    ) -> Outcome:
        """Set the thermostat."""
        found = self._devices.in_room("thermostat", room, context)
        state: State = {"temperature": temperature} | ({"mode": mode} if mode else {})
        return self._devices.change(found, state, context)

    def lock_door(self, door: str, locked: bool, *, context: Context) -> Outcome:
        """Lock or unlock a door; locked is true to lock it."""
        found = self._devices.find(door, context, "door", ["lock"])
        return self._devices.change(found, {"locked": locked}, context)

    def set_cover(
        self, cover: str, position: Percent, room: str | None = None, *, context: Context
    ) -> Outcome:
        """Move blinds or curtains; 100 is fully open."""
        found = self._devices.find(cover, context, "cover", ["cover"], room)
        return self._devices.change(found, {"position": position}, context)

    def start_vacuum(self, room: str, mode: Level | None = None, *, context: Context) -> Outcome:
        """Let the robot vacuum clean a room."""
        found = self._devices.in_room("vacuum", None, context)
        where = self._devices.room(room, context)
        state: State = {"on": True, "doing": "cleaning", "where": where}
        return self._devices.change(found, state | ({"power": mode} if mode else {}), context)

    def activate_scene(self, scene: str, *, context: Context) -> Outcome:
        """Activate a scene of the home."""
        content = self._devices.content()
        called = context.say("name", "chinese")
        wanted: Any = names.only(scene, content["scenes"], lambda s: s[called], context, "scene")
        changed = set()
        for entry in content["devices"]:
            for rule in wanted["devices"]:
                if all(entry[key] == rule[key] for key in ("kind", "room") if key in rule):
                    entry["state"] |= rule["state"]
                    changed.add(Device(**entry).key)
        self._devices.write(content, context)
        now = [device for device in self._devices.all() if device.key in changed]
        told = self._devices.tell(now, context).said
        said = context.say(f"Scene {wanted[called]}. {told}", f"{wanted[called]}场景。{told}")
        return Outcome(said, {"scene": wanted["name"]})

    def play_music(
        self,
        song: str | None = None,
        artist: str | None = None,
        genre: str | None = None,
        *,
        context: Context,
    ) -> Outcome:
        """Play a song, an artist or a genre."""
        found = self._devices.in_room("media", None, context)[:1]
        what = " – ".join(part for part in (artist, song, genre) if part)
        state: State = {"on": True, "playing": True} | ({"title": what} if what else {})
        return self._devices.change(found, state, context)

    def pause_media(self, room: str | None = None, *, context: Context) -> Outcome:
        """Pause what is playing."""
        return self._devices.change(
            self._devices.in_room("media", room, context), {"playing": False}, context
        )

    def set_volume(self, level: Percent, room: str | None = None, *, context: Context) -> Outcome:
        """Set the volume in percent."""
        return self._devices.change(
            self._devices.in_room("media", room, context), {"volume": level}, context
        )

    def get_device(self, device: str, room: str | None = None, *, context: Context) -> Outcome:
        """Tell the state of a device, a light or a door."""
        found = self._devices.find(device, context, "device", room=room)
        return self._devices.tell(found, context)
