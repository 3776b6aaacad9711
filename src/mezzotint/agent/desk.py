"""All the built-in tools over one workspace, with the journal that they write through."""

from __future__ import annotations

from dataclasses import dataclass

from mezzotint.agent.journal import Journal, Place
from mezzotint.agent.packs import calendar, car, contacts, files, home, mail, notes, reminders
from mezzotint.agent.tool import Tool
from mezzotint.agent.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Desk:
    """tools: of every store that the workspace has. journal: knows the servers too."""

    tools: tuple[Tool, ...]
    journal: Journal


def open_desk(workspace: Workspace) -> Desk:
    """The tools as the workspace's settings.toml says. A home and a car only if it has one.

    Raises UsageError for wrong settings, BackendError if a server or a library is missing.
    """
    people = contacts.Contacts(workspace)
    events = calendar.calendar_of(workspace)
    mailbox = mail.Mailbox.of(workspace)
    tools = [
        *calendar.tools(events),
        *contacts.tools(people),
        *mail.tools(mailbox, people.find),
        *reminders.tools(workspace),
        *notes.tools(workspace),
        *files.tools(workspace),
    ]
    for pack in (home, car):
        if workspace.status(pack.STATE) is not None:
            tools += pack.tools(workspace)
    places: dict[str, Place] = dict(mailbox.places)
    if events.items.place:
        places[events.items.place] = events.items
    return Desk(tuple(tools), Journal(workspace, places))
