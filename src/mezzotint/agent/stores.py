"""All the tools of a workspace, over one journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from mezzotint.agent.journal import Journal, Place, Undone
from mezzotint.agent.packs import calendar, car, contacts, files, home, mail, notes, reminders
from mezzotint.agent.tool import Tool
from mezzotint.agent.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Stores:
    """tools: of every pack. journal: what they write through. Close them, or use `with`: a
    server's connection is held until then."""

    tools: tuple[Tool, ...]
    journal: Journal
    close: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def undo(workspace: Workspace) -> Undone:
    """Take back the last run that changed something. Raises as `open_stores` does."""
    with open_stores(workspace) as stores:
        return stores.journal.undo()


def open_stores(workspace: Workspace) -> Stores:
    """The stores of a workspace, on its servers where its settings name some.

    Raises UsageError for settings that make no sense, MezzotintError if a server is away.
    """
    people, box = contacts.Contacts(workspace), mail.Mailbox.of(workspace)
    events = calendar.calendar_of(workspace)
    tools = (
        *calendar.tools(events),
        *mail.tools(box, people),
        *contacts.tools(people),
        *reminders.tools(workspace),
        *notes.tools(workspace),
        *files.tools(workspace),
        *home.tools(workspace),
        *car.tools(workspace),
    )
    places: dict[str, Place] = dict(box.places)
    if events.items.place:
        places[events.items.place] = events.items

    def close() -> None:
        box.close()
        events.items.close()

    return Stores(tools, Journal(workspace, places), close)
