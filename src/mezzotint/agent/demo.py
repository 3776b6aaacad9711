"""The demo workspace: a small life to try the agent on, made on the day it is first used.

What is in it is demo.toml, whose days count from today. A demo lives for a day: one that was
made earlier is made anew, because "tomorrow's appointment" must exist. A folder that this file
did not make is never touched.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from datetime import date, datetime, time, timedelta
from email.message import EmailMessage
from importlib.resources import files
from pathlib import Path
from typing import Any

import icalendar
import vobject
from filelock import FileLock

from mezzotint.agent.packs import calendar, car, contacts, home, ics, reminders
from mezzotint.agent.workspace import INTERNAL, Workspace
from mezzotint.store import home as store_home

ME = ("Alex Morgan", "alex.morgan@example.com")
_MADE = f"{INTERNAL}/demo"  # holds the day on which it was made


def open_demo(now: datetime, root: Path | None = None) -> Workspace:
    """The demo of today. now: aware. root: where, if not in the folder of the model store."""
    place = root or store_home() / "demo"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_name(f"{place.name}.lock")):
        if place.exists():
            workspace = Workspace(place)
            made = workspace.read(_MADE)
            if made is None or made.decode() == now.date().isoformat():
                return workspace
        unfinished = place.with_name(f"{place.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        fill(Workspace(unfinished), now)
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
    return Workspace(place)


def fill(workspace: Workspace, now: datetime, content: dict[str, Any] | None = None) -> None:
    """Write the demo's stores, or others of the form of demo.toml, into an empty workspace."""
    content = content or tomllib.loads((files(__package__) / "demo.toml").read_text("utf-8"))
    _put_contacts(workspace, content["contacts"])
    for number, event in enumerate(content["events"], 1):
        item = ics.text_of(_event(event, now, f"demo-event-{number}"))
        workspace.put(f"{calendar.FOLDER}/demo-event-{number}.ics", item)
    for number, one in enumerate(content["reminders"], 1):
        item = ics.text_of(_todo(one, now, f"demo-reminder-{number}"))
        workspace.put(f"{reminders.FOLDER}/demo-reminder-{number}.ics", item)
    _put_mails(workspace, content, now)
    for note in content["notes"]:
        text = f"# {note['title']}\n\n{note['text'].strip()}\n"
        workspace.put(f"notes/{note['title']}.md", text.encode("utf-8"))
    for file in content["files"]:
        workspace.put(f"files/{file['path']}", file["text"].encode("utf-8"))
    for path, state in ((home.STATE, content["home"]), (car.STATE, content["car"])):
        workspace.put(path, json.dumps(state, ensure_ascii=False, indent=1).encode("utf-8"))
    workspace.put("settings.toml", f'[mail]\nname = "{ME[0]}"\naddress = "{ME[1]}"\n'.encode())
    workspace.put(_MADE, now.date().isoformat().encode())


def _put_contacts(workspace: Workspace, people: list[dict[str, str]]) -> None:
    for number, person in enumerate(people, 1):
        card: Any = vobject.vCard()
        card.add("fn").value = person["name"]
        given, _, family = person["name"].rpartition(" ")
        card.add("n").value = vobject.vcard.Name(family=family, given=given)
        for name, key in (("email", "email"), ("tel", "phone"), ("nickname", "nickname")):
            if key in person:
                card.add(name).value = person[key]
        if "address" in person:
            street, _, city = person["address"].partition(";")
            card.add("adr").value = vobject.vcard.Address(street=street, city=city)
        path = f"{contacts.FOLDER}/demo-contact-{number}.vcf"
        workspace.put(path, card.serialize().encode("utf-8"))


def _day(entry: dict[str, Any], now: datetime) -> date:
    """The day of an entry; with a weekday, that day of the week it falls in."""
    day = now.date() + timedelta(days=entry["day"])
    return day + timedelta(days=entry.get("weekday", day.weekday()) - day.weekday())


def _moment(entry: dict[str, Any], now: datetime) -> datetime:
    return datetime.combine(_day(entry, now), time.fromisoformat(entry["time"]), now.tzinfo)


def _event(entry: dict[str, Any], now: datetime, uid: str) -> Any:
    start: ics.Start = _moment(entry, now) if "time" in entry else _day(entry, now)
    length = timedelta(minutes=entry["minutes"]) if "time" in entry else timedelta(days=1)
    event = icalendar.Event.new(
        uid=uid,
        summary=entry["title"],
        start=start,
        end=start + length,
        location=entry.get("location"),
        stamp=now,
    )
    if "repeat" in entry:
        event.add("rrule", entry["repeat"])
    return event


def _todo(entry: dict[str, Any], now: datetime, uid: str) -> Any:
    due = _moment(entry, now)
    todo = icalendar.Todo.new(uid=uid, summary=entry["task"], start=due, stamp=now)
    todo.add("due", due)
    if "repeat" in entry:
        todo.add("rrule", entry["repeat"])
    return todo


def _put_mails(workspace: Workspace, content: dict[str, Any], now: datetime) -> None:
    """A Maildir: the inbox, and folders beside it whose names begin with a dot."""
    addresses = {person["name"]: person.get("email", "") for person in content["contacts"]}
    for number, mail in enumerate(content["mails"], 1):
        moment = _moment(mail, now)
        mine = f"{ME[0]} <{ME[1]}>"
        message = EmailMessage()
        message["From"] = f"{mail['from']} <{addresses[mail['from']]}>" if "from" in mail else mine
        message["To"] = f"{mail['to']} <{addresses[mail['to']]}>" if "to" in mail else mine
        message["Subject"] = mail["subject"]
        message["Date"] = moment
        message["Message-ID"] = f"<demo-{number}@example.com>"
        message.set_content(mail["text"].strip() + "\n")
        folder = f"mail/.{mail['folder']}" if "folder" in mail else "mail"
        for part in ("cur", "new", "tmp"):
            workspace.make_folder(f"{folder}/{part}")
        flags = "S" if mail.get("seen") else ""
        name = f"{moment.timestamp():.0f}.demo{number}.mezzotint:2,{flags}"
        workspace.put(f"{folder}/cur/{name}", message.as_bytes())
