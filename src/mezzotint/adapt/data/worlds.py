"""Small random lives for the agent's own tools to act on, so that results are real.

One folder is filled anew for each scene; its tools stay. It knows what a life is made of, and
what of it a request can name; it knows no wording.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from mezzotint.adapt.data import values
from mezzotint.adapt.data.values import Scene
from mezzotint.agent.demo import ME, fill
from mezzotint.agent.journal import Journal
from mezzotint.agent.packs.mail_store import Numbers
from mezzotint.agent.stores import open_stores
from mezzotint.agent.tool import Context, Tool
from mezzotint.agent.when import say_day
from mezzotint.agent.workspace import Workspace

Thing = dict[str, str]
_DAYS = 6  # days ahead that hold events and reminders
_STORED = {"contacts", "mails", "events", "reminders", "notes", "files"}
_KINDS = ("light", "switch", "switch", "fan", "media", "lock", "lock", "cover")


@dataclass
class World:
    """tools: the agent's, by name. things: of each kind, what a request can say of each.
    names: for a kind of value, the ones that exist here."""

    folder: Path
    scene: Scene = field(init=False)
    context: Context = field(init=False)
    things: dict[str, list[Thing]] = field(init=False)
    names: dict[str, list[str]] = field(init=False)
    tools: Mapping[str, Tool] = field(init=False)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / "settings.toml").write_text(f'[mail]\naddress = "{ME[1]}"\n', "utf-8")
        self._workspace = Workspace(self.folder)
        stores = open_stores(self._workspace)
        self.tools = {tool.name: tool for tool in stores.tools}
        self.journal = stores.journal

    def begin(self, scene: Scene, tools: Iterable[str]) -> None:
        """Another life, at the moment and in the language of `scene`; what `tools` look into
        is there, and the rest is only known by name."""
        self.scene, now = scene, scene.now.replace(tzinfo=UTC)
        self.context = Context(now, "zh" if scene.language == "zh" else "en")
        for part in self.folder.iterdir():
            shutil.rmtree(part) if part.is_dir() else part.unlink()
        self.things = {"lock": [], "switch": []}
        content = self._life()
        needed = {part for name in tools for part in _parts(name)}
        fill(self._workspace, now, content | {part: [] for part in _STORED - needed})
        shown = scene.rng.randint(0, 250)  # mails that were numbered before
        Numbers(self._workspace, "-").of([str(number) for number in range(shown)])
        self.names = _names(content, self.things, scene)

    def _life(self) -> dict[str, Any]:
        rng = self.scene.rng
        people = _some(self._person, 5, "name")
        contents: dict[str, Any] = {"contacts": people, "car": {"devices": []}}
        contents["mails"] = _some(partial(self._mail, people), rng.randint(4, 6), "subject")
        contents["events"] = _some(partial(self._dated, "title", "affair"), 7, "title")
        contents["reminders"] = _some(partial(self._dated, "task", "chore"), 4, "task")
        contents["notes"] = _some(self._note, 4, "title")
        contents["files"] = _some(self._file, 5, "path")
        contents["home"] = self._home()
        self.things["contact"] = [{"name": p["name"]} for p in people]
        self.things["event"] = [{"title": e["title"]} for e in contents["events"]]
        self.things["day"] = self._days(contents["events"])
        self.things["reminders"] = self._days(contents["reminders"])
        return contents

    def _person(self) -> dict[str, Any]:
        say = self.scene.word
        person = {"name": say("human"), "email": say("mailbox"), "phone": say("tel")}
        if self.scene.rng.random() < 0.3:
            person["address"] = say("address")
        return person

    def _mail(self, people: list[dict[str, Any]]) -> dict[str, Any]:
        scene, rng = self.scene, self.scene.rng
        about, fact = scene.word(rng.choice(["heading", "matter"])), scene.word("tidbit")
        stop = "。" if scene.language == "zh" else "."
        subject = about.removeprefix("the ")
        who = rng.choice(people[:3])["name"]
        thing = {"from": who, "about": about, "fact": fact + stop, "subject": subject}
        self.things.setdefault("mail", []).append(thing)
        moment = {"day": -rng.randint(1, 9), "time": scene.say("time").value}
        text = fact[0].upper() + fact[1:] + stop
        thing["fact"] = text
        return {"from": who, "subject": subject, "text": text, "seen": rng.random() < 0.6} | moment

    def _dated(self, key: str, kind: str) -> dict[str, Any]:
        scene, rng = self.scene, self.scene.rng
        clock = {"day": rng.randint(1, _DAYS), "time": scene.say("time").value}
        entry = {key: scene.word(kind)} | clock
        if key == "title":
            entry["minutes"] = rng.choice([30, 45, 60, 90])
            if rng.random() < 0.4:
                entry["location"] = scene.word("spot")
        return entry

    def _days(self, entries: list[dict[str, Any]]) -> list[Thing]:
        """The days of entries, as they are said; and now and then one that has none."""
        scene, found = self.scene, []
        for ahead in {entry["day"] for entry in entries} | {scene.rng.randint(1, _DAYS)}:
            day = (scene.now + timedelta(days=ahead)).date()
            spoken = say_day(day, self.context.now, scene.language)
            if ahead < 7 and scene.rng.random() < 0.6 and ahead > 1:
                zh = "周" + "一二三四五六日"[day.weekday()]
                spoken = zh if scene.language == "zh" else f"{day:%A}"
            named = scene.language == "en" and not spoken.startswith("t")
            found.append({"date": day.isoformat(), "day": f"on {spoken}" if named else spoken})
        return found

    def _note(self) -> dict[str, Any]:
        scene, rng = self.scene, self.scene.rng
        lines = [scene.word("tidbit") for _ in range(rng.randint(1, 2))]
        title = scene.word("pad")
        known = [word for word in _tidied(scene) if word in lines[0]]
        thing = {"title": title, "word": rng.choice(known)} if known else {"title": title}
        self.things.setdefault("note", []).append(thing)
        return {"title": title, "text": "\n".join(lines)}

    def _file(self) -> dict[str, Any]:
        scene, rng = self.scene, self.scene.rng
        stem, folder = scene.word("stub"), scene.word("dir")
        if rng.random() < 0.4 and self.things.get("file"):
            folder = rng.choice(self.things["file"])["folder"]
        path = f"{folder}/{stem.replace(' ', '_')}.{rng.choice(['txt', 'md', 'csv'])}"
        thing = {"stem": path.rpartition("/")[2].rpartition(".")[0], "folder": folder, "path": path}
        self.things.setdefault("file", []).append(thing)
        return {"path": path, "text": scene.word("tidbit") + "\n"}

    def _home(self) -> dict[str, Any]:
        table, rng = values.read_once("worlds.toml"), self.scene.rng
        zh = self.scene.language == "zh"
        rooms = dict(rng.sample(sorted(table["rooms"].items()), 4))
        devices: list[dict[str, Any]] = []
        for kind in _KINDS:
            name, chinese = rng.choice(table["devices"][kind])
            room = "" if kind == "lock" else rng.choice(list(rooms))
            if any(d["name"] == name for d in devices):
                continue
            named = {"lock": "locked", "cover": "position"}.get(kind, "on")
            state = {named: rng.choice([0, 100]) if kind == "cover" else rng.random() < 0.5}
            devices.append(
                {"kind": kind, "name": name, "chinese": chinese, "room": room, "state": state}
            )
            if kind in ("lock", "switch"):
                place = rooms[room] if room and zh else room
                self.things[kind].append({"device": chinese if zh else name, "room": place})
        return {"rooms": rooms, "devices": devices, "scenes": []}


def _parts(tool: str) -> tuple[str, ...]:
    """What of a life a tool looks into."""
    noun = tool.rpartition("_")[2].removesuffix("s")
    return {
        "email": ("mails", "contacts"),
        "file": ("files",),
        "folder": ("files",),
    }.get(noun, (f"{noun}s",))


def _some(make: Callable[[], dict[str, Any]], count: int, key: str) -> list[dict[str, Any]]:
    """That many, no two of one name."""
    found = {entry[key]: entry for entry in (make() for _ in range(count))}
    return list(found.values())


def _tidied(scene: Scene) -> list[str]:
    words: str = values.read_once("wide.toml")[scene.language]["tidied"]
    return words.split("|")


def _names(
    content: Mapping[str, Any], things: Mapping[str, list[Thing]], scene: Scene
) -> dict[str, list[str]]:
    home, zh = content["home"], scene.language == "zh"
    label = "chinese" if zh else "name"
    names = {
        "human": [p["name"] for p in content["contacts"]],
        "affair": [e["title"] for e in content["events"]],
        "chore": [r["task"] for r in content["reminders"]],
        "pad": [n["title"] for n in content["notes"]],
        "file": [f["path"].rpartition("/")[2] for f in content["files"]],
        "stub": [f["stem"] for f in things["file"]],
        "dir": [f["folder"] for f in things["file"]],
        "matter": [m["about"] for m in things["mail"]],
        "theme": [n["word"] for n in things["note"] if "word" in n],
        "room": list(home["rooms"].values() if zh else home["rooms"]),
        "appliance": [d[label] for d in home["devices"] if d["kind"] in ("switch", "fan", "media")],
    }
    for kind in ("light", "lock", "cover"):
        names[kind] = [d[label] for d in home["devices"] if d["kind"] == kind]
    return {kind: some for kind, some in names.items() if some}
