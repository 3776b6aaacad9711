"""What the stores hold, as far as a user would call it different.

Names of files, uids, stamps and message ids are left out; texts are compared without case,
outer punctuation and spacing. An event is each time that it happens, however the calendar came
to it. This file reads stores and knows no scenario.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from typing import Any

from mezzotint.agent.packs import calendar, car, contacts, home, ics, notes, reminders, texts
from mezzotint.agent.packs import files as file_pack
from mezzotint.agent.packs.devices import Devices
from mezzotint.agent.packs.mail_message import people, text
from mezzotint.agent.packs.mail_store import Query
from mezzotint.agent.packs.maildir import Maildir
from mezzotint.agent.workspace import Workspace
from mezzotint.bench.scenarios.suite import NOW

SENT = "sent"  # the folder that an act which cannot be undone leads to
_BACK, _DAYS = 14, 194  # from when, and for how long, events are looked at
_MOST = 1000  # mails of a folder


@dataclass(frozen=True, slots=True)
class Record:
    """One thing in a store. key: what must be right to the letter. text: what a user or model
    may word in several ways."""

    store: str
    key: tuple[str, ...]
    text: str = ""


State = Counter[Record]


def snapshot(workspace: Workspace) -> State:
    """All records of a workspace; the same one may be there twice."""
    zone = NOW.tzinfo
    assert zone is not None
    return Counter(
        [
            *_events(workspace, zone),
            *_reminders(workspace, zone),
            *_contacts(workspace),
            *_mails(workspace),
            *_notes(workspace),
            *_files(workspace, file_pack.ROOT),
            *_devices(workspace, "home", home.STATE),
            *_devices(workspace, "car", car.STATE),
        ]
    )


def plain(text: str) -> str:
    """A text without what writers do differently: case, width, spacing, outer punctuation."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return re.sub(r"^\W+|\W+$", "", folded)


def _events(workspace: Workspace, zone: tzinfo) -> Iterator[Record]:
    span = ics.days(NOW.date() - timedelta(days=_BACK), _DAYS, zone)
    for one in calendar.calendar_of(workspace).between(*span):
        key = (one.start.isoformat(), one.end.isoformat(), plain(one.location))
        yield Record("events", key, plain(one.title))


def _reminders(workspace: Workspace, zone: tzinfo) -> Iterator[Record]:
    for path in workspace.files(reminders.FOLDER):
        found: Any = ics.parsed(workspace.read(path))
        for todo in found.todos if found else ():
            due = ics.moment((todo.get("DUE") or todo["DTSTART"]).dt, zone)
            often = todo["RRULE"].to_ical().decode() if "RRULE" in todo else ""
            key = (f"{due:%Y-%m-%d %H:%M}", often, str(todo.get("STATUS", "")))
            yield Record("reminders", key, plain(str(todo.get("SUMMARY", ""))))


def _contacts(workspace: Workspace) -> Iterator[Record]:
    for one in contacts.Contacts(workspace).all():
        phone = re.sub(r"\D", "", one.phone)
        names = (plain(one.name), plain(one.nickname))
        yield Record("contacts", (*names, one.email.casefold(), phone, plain(one.address)))


def _mails(workspace: Workspace) -> Iterator[Record]:
    box = Maildir(workspace)
    for folder in box.folders():
        for mail in box.search(Query(), [folder], _MOST):
            sides = [
                ",".join(sorted(address.casefold() for _, address in people(mail.message, side)))
                for side in ("From", "To")
            ]
            marks = f"{'seen' * mail.seen} {'flagged' * mail.flagged}".strip()
            said = f"{plain(mail.subject)}\n{plain(text(mail.message))}"
            yield Record("mails", (folder, *sides, marks), said)


def _notes(workspace: Workspace) -> Iterator[Record]:
    for path in workspace.files(notes.FOLDER):
        yield Record("notes", (), plain(texts.decoded(workspace.read(path) or b"") or path))


def _files(workspace: Workspace, folder: str) -> Iterator[Record]:
    for name in workspace.names(folder):
        path = f"{folder}/{name}"
        if workspace.is_folder(path):
            yield Record("files", (f"{path.casefold()}/",))
            yield from _files(workspace, path)
        else:
            data = workspace.read(path) or b""
            yield Record("files", (path.casefold(),), plain(texts.decoded(data) or data.hex()))


def _devices(workspace: Workspace, store: str, path: str) -> Iterator[Record]:
    for one in Devices(workspace, path).all():
        state = json.dumps(one.state, sort_keys=True, ensure_ascii=False)
        yield Record(store, (*one.key, state))
