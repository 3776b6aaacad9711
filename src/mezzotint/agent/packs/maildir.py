"""Mail in the workspace: a Maildir++ folder, as other mail programs keep it.

    mail/{cur,new,tmp}          the inbox
    mail/.Sent/{cur,new,tmp}    a folder; a visible one (mail/Sent/cur) counts too

A mail is one file, and its flags are in its name, so every change is a write or a rename that
the journal can take back. Names come from listings, and are opened without following links.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from email.message import EmailMessage

from mezzotint.agent.journal import Run
from mezzotint.agent.packs import mail_message, texts
from mezzotint.agent.packs.mail_store import ROLES, Mail, Query, role
from mezzotint.agent.workspace import Workspace
from mezzotint.errors import UsageError

FOLDER = "mail"
_INFO = "!2," if os.name == "nt" else ":2,"
_LETTERS = {"seen": "S", "flagged": "F"}
_PATIENCE = 3.0  # seconds that a search may take
_LARGEST = 25 << 20  # bytes of a mail that is read


@dataclass(frozen=True)
class Maildir:
    """The Maildir `mail` of a workspace. An id is the part of a file's name that stays."""

    workspace: Workspace

    def folders(self) -> list[str]:
        return list(self._places())

    def search(self, query: Query, folders: Sequence[str], limit: int) -> list[Mail]:
        deadline, found = time.monotonic() + _PATIENCE, []
        for folder in folders:
            fitting = 0
            for path in sorted(self._files(folder), key=_arrival, reverse=True):
                mail = self._mail(path, folder)
                if mail is not None and _fits(mail, query):
                    found.append(mail)
                    fitting += 1
                if fitting == limit or time.monotonic() > deadline:
                    break
        return sorted(found, key=lambda mail: mail.time, reverse=True)[:limit]

    def find(self, id: str) -> Mail | None:
        for folder in self.folders():
            for path in self._files(folder):
                if _id(path) == id:
                    return self._mail(path, folder)
        return None

    def add(self, run: Run, folder: str, message: EmailMessage) -> None:
        place = self._places().get(folder) or _new_place(folder)
        for part in ("cur", "new", "tmp"):
            run.folder(f"{place}/{part}")
        name = f"{time.time():.6f}.{os.getpid()}{secrets.token_hex(4)}.mezzotint"
        flags = "DS" if folder == "drafts" else "S"
        run.write(f"{place}/cur/{name}{_INFO}{flags}", mail_message.written(message, "\n"))

    def move(self, run: Run, mail: Mail, folder: str) -> None:
        place = self._places().get(folder) or _new_place(folder)
        for part in ("cur", "new", "tmp"):
            run.folder(f"{place}/{part}")
        path = self._path(mail)
        run.move(path, f"{place}/cur/{_id(path)}{_INFO}{_flags(path)}")

    def mark(self, run: Run, mail: Mail, flag: str, value: bool) -> None:
        path, letter = self._path(mail), _LETTERS[flag]
        flags = set(_flags(path)) - {letter} | ({letter} if value else set())
        place = self._places()[mail.folder]
        wanted = f"{place}/cur/{_id(path)}{_INFO}{''.join(sorted(flags))}"
        if wanted != path:
            run.move(path, wanted)

    def _places(self) -> dict[str, str]:
        """Role or name of every folder, and its path in the workspace."""
        places = {"inbox": FOLDER}
        root = self.workspace.path(FOLDER)
        with os.scandir(root) if root.is_dir() else nullcontext(()) as entries:
            inside = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        for name in inside:
            path = f"{FOLDER}/{name}"
            if name not in ("cur", "new", "tmp") and self.workspace.is_folder(f"{path}/cur"):
                shown = name.removeprefix(".")
                places.setdefault(role(shown) or shown, path)
        return places

    def _files(self, folder: str) -> Iterator[str]:
        place = self._places().get(folder)
        for part in ("new", "cur") if place else ():
            for name in self.workspace.names(f"{place}/{part}"):
                yield f"{place}/{part}/{name}"

    def _path(self, mail: Mail) -> str:
        found = [path for path in self._files(mail.folder) if _id(path) == mail.id]
        if not found:
            raise UsageError(f"the mail {mail.subject!r} is no longer in {mail.folder}")
        return found[0]

    def _mail(self, path: str, folder: str) -> Mail | None:
        status = self.workspace.status(path)
        if status is None or status.st_size > _LARGEST:
            return None
        try:
            data = self.workspace.read(path)
        except UsageError:
            return None  # a link or a folder, which no mail is
        flags = _flags(path)
        if data is None:
            return None
        return Mail(_id(path), folder, mail_message.parse(data), "S" in flags, "F" in flags)


def _fits(mail: Mail, query: Query) -> bool:
    if query.people or query.addresses:
        others = mail.others
        named = query.people and any(texts.holds(f"{n} {a}", query.people) for n, a in others)
        if not named and not any(a.lower() in query.addresses for _, a in others):
            return False
    if not query.about or texts.holds(mail.subject, query.about):
        return True
    return texts.holds(f"{mail.subject}\n{mail_message.text(mail.message)}", query.about)


def _new_place(folder: str) -> str:
    return f"{FOLDER}/.{folder.title() if folder in ROLES else folder}"


def _id(path: str) -> str:
    return path.rpartition("/")[2].partition(_INFO)[0]


def _flags(path: str) -> str:
    return path.rpartition("/")[2].partition(_INFO)[2]


def _arrival(path: str) -> float:
    """Seconds, as the name begins with in every program that keeps to the standard."""
    found = re.match(r"\d+(\.\d+)?", path.rpartition("/")[2])
    return float(found[0]) if found else 0.0
