"""What a mail store is to the tools, whether a Maildir or a server, and the numbers of mails.

A store finds, adds, moves and marks; every change goes through the run, so that it can be
undone. Folders are known by their role (inbox, sent, …) where they have one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from typing import Protocol

from mezzotint.agent.journal import Run
from mezzotint.agent.packs import mail_message, texts
from mezzotint.agent.workspace import INTERNAL, Workspace

ROLES: Mapping[str, tuple[str, ...]] = {
    "inbox": ("inbox", "收件箱"),
    "sent": ("sent", "sent items", "sent messages", "sent mail", "已发送", "已发送邮件"),
    "drafts": ("drafts", "draft", "草稿箱", "草稿"),
    "trash": (
        "trash",
        "bin",
        "deleted items",
        "deleted messages",
        "回收站",
        "已删除",
        "已删除邮件",
    ),
    "archive": ("archive", "archives", "归档", "存档"),
    "spam": ("spam", "junk", "junk email", "junk e-mail", "垃圾邮件", "垃圾箱"),
}
OURS = ("sent", "drafts")  # folders of mails by the user: the other party is who they are to
FLAGS = ("seen", "flagged")


def role(name: str) -> str:
    """The role of a folder by its name, or "" if it has none."""
    folded = texts.folded(name).strip()
    return next((role for role, names in ROLES.items() if folded in names), "")


@dataclass(frozen=True, slots=True)
class Mail:
    """id: the store's own name for it, which finds it again. folder: as the store is asked for
    it. date: aware, or None if the mail has no proper one. message: perhaps only its headers."""

    id: str
    folder: str
    message: EmailMessage
    seen: bool = False
    flagged: bool = False

    @property
    def subject(self) -> str:
        return mail_message.header(self.message, "Subject")

    @property
    def date(self) -> datetime | None:
        return mail_message.date(self.message)

    @property
    def time(self) -> float:
        """Its date in seconds, for sorting; mails without one are the oldest."""
        date = self.date
        return date.timestamp() if date else 0.0

    @property
    def others(self) -> list[tuple[str, str]]:
        """Name and address of whom it is from, or of whom it is to if the user wrote it."""
        return mail_message.people(self.message, "To" if self.folder in OURS else "From")


@dataclass(frozen=True, slots=True)
class Query:
    """Mails that fit all of it. people: terms in the name or address of the other party, or
    else one of `addresses` is theirs. about: terms in the subject or the text."""

    people: Sequence[str] = ()
    addresses: Sequence[str] = ()
    about: Sequence[str] = ()


class Store(Protocol):
    def folders(self) -> list[str]:
        """Every folder: its role, or else its own name. The store is asked with these."""

    def search(self, query: Query, folders: Sequence[str], limit: int) -> list[Mail]:
        """The newest mails that fit, at most `limit`. A folder that is not there is empty."""

    def find(self, id: str) -> Mail | None:
        """One mail, whole."""

    def add(self, run: Run, folder: str, message: EmailMessage) -> None:
        """Put a mail in a folder, which is made if need be, as one that was read."""

    def move(self, run: Run, mail: Mail, folder: str) -> None: ...

    def mark(self, run: Run, mail: Mail, flag: str, value: bool) -> None:
        """Set or clear one of FLAGS."""


class Numbers:
    """The numbers by which the user and the model speak of mails: given in the order of first
    showing, from 100, and kept, so that a number in a transcript stays what it was.

    account: whose mails; the numbers of another account mean nothing in this one.
    """

    def __init__(self, workspace: Workspace, account: str) -> None:
        self._workspace = workspace
        self._account = account

    def of(self, ids: Sequence[str]) -> list[int]:
        rows = [(self._account, id) for id in ids]
        with closing(self._open()) as table, table:
            table.executemany("INSERT OR IGNORE INTO mail(account, id) VALUES (?, ?)", rows)
            find = "SELECT number FROM mail WHERE account = ? AND id = ?"
            return [table.execute(find, row).fetchone()[0] for row in rows]

    def id(self, number: int) -> str | None:
        find = "SELECT id FROM mail WHERE number = ? AND account = ?"
        with closing(self._open()) as table:
            row = table.execute(find, (number, self._account)).fetchone()
        return row[0] if row else None

    def _open(self) -> sqlite3.Connection:
        self._workspace.make_folder(INTERNAL)
        table = sqlite3.connect(self._workspace.path(f"{INTERNAL}/mail.sqlite"))
        with table:
            table.execute(
                "CREATE TABLE IF NOT EXISTS mail"
                "(number INTEGER PRIMARY KEY, account TEXT, id TEXT, UNIQUE(account, id))"
            )
            table.execute("INSERT OR IGNORE INTO mail VALUES (99, '', '')")  # the first gets 100
        return table
