"""Mail on an IMAP server, through imap-tools.

A mail is known by its folder, the folder's UIDVALIDITY and its UID. Changes are journalled as
values of named places, so that an undo is one more change of the same kind:

    mail/FOLDER/MESSAGE-ID          the bytes of a mail that was added
    move/FROM/TO/MESSAGE-ID         in which of the two folders it is
    flag/FOLDER/NAME/MESSAGE-ID     yes or no

A Message-ID is the sender's to choose: what two mails of a folder claim, neither is moved by.
"""

from __future__ import annotations

import imaplib
import re
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from mezzotint.agent.journal import Run
from mezzotint.agent.packs import mail_message
from mezzotint.agent.packs.mail_account import TIMEOUT, Account, Server
from mezzotint.agent.packs.mail_store import OURS, ROLES, Mail, Query, role
from mezzotint.errors import BackendError, MezzotintError, UsageError

if TYPE_CHECKING:
    from imap_tools import BaseMailBox

PLACE = "imap"
_SPECIAL = {"\\sent": "sent", "\\drafts": "drafts", "\\trash": "trash", "\\archive": "archive"}
_SPECIAL |= {"\\junk": "spam", "\\inbox": "inbox"}
_FLAGS = {"seen": "\\Seen", "flagged": "\\Flagged"}


class Imap:
    """The mail of an account that has an IMAP server: a store, and a place of the journal.

    One connection, made when it is first needed and again if it is lost. Raises BackendError
    if imap-tools is missing, and from every method if the server does not answer rightly.
    """

    def __init__(self, account: Account) -> None:
        try:
            import imap_tools
        except ImportError:
            raise BackendError(
                "mail on a server needs the imap-tools package", "pip install 'mezzotint[servers]'"
            ) from None
        self._imap: Any = imap_tools
        self._account = account
        self._lock = threading.RLock()
        self._box: BaseMailBox | None = None

    def close(self) -> None:
        """End the connection, if there is one; the next use makes a new one."""
        with self._lock:
            box, self._box = self._box, None
            if box is not None:
                with suppress(imaplib.IMAP4.error, OSError, self._imap.errors.ImapToolsError):
                    box.logout()

    def folders(self) -> list[str]:
        with self._session() as box:
            return list(_names(box))

    def search(self, query: Query, folders: Sequence[str], limit: int) -> list[Mail]:
        found: list[Mail] = []
        with self._session() as box:
            names = _names(box)
            for folder in folders:
                if name := names.get(folder):
                    box.folder.set(name, readonly=True)
                    uids = self._uids(box, self._criteria(query, folder))[-limit:]
                    found += self._fetched(box, folder, name, uids, "HEADER")
        return sorted(found, key=lambda mail: mail.time, reverse=True)[:limit]

    def find(self, id: str) -> Mail | None:
        validity, uid, folder = (unquote(part) for part in id.split("/"))
        with self._session() as box:
            name = _names(box).get(folder)
            if name is None or str(_validity(box, name)) != validity:
                return None
            box.folder.set(name, readonly=True)
            return next(iter(self._fetched(box, folder, name, [uid], "")), None)

    def add(self, run: Run, folder: str, message: EmailMessage) -> None:
        path = _path("mail", folder, _identity(message))
        run.write(path, mail_message.written(message, "\r\n"), PLACE)

    def move(self, run: Run, mail: Mail, folder: str) -> None:
        path = _path("move", mail.folder, folder, _identity(mail.message))
        run.write(path, folder.encode(), PLACE)

    def mark(self, run: Run, mail: Mail, flag: str, value: bool) -> None:
        path = _path("flag", mail.folder, flag, _identity(mail.message))
        run.write(path, b"yes" if value else b"no", PLACE)

    def read(self, path: str) -> bytes | None:
        """What a named place of the journal holds now."""
        kind, folder, *more, identity = map(unquote, path.split("/"))
        with self._session() as box:
            uid = self._at(box, folder, identity)
            if kind == "move":
                here = folder if uid else more[0] if self._at(box, more[0], identity) else ""
                return here.encode() or None
            part = "" if kind == "mail" else "HEADER"
            for _, flags, data in _fetch(box, [uid] if uid else [], part):
                return data if kind == "mail" else b"yes" if _FLAGS[more[0]] in flags else b"no"
            return None

    def put(self, path: str, data: bytes | None) -> None:
        """Change what a named place holds: add, move, mark, or remove what was added."""
        kind, folder, *more, identity = map(unquote, path.split("/"))
        with self._session() as box:
            if kind == "mail" and data is not None:
                flags = ["\\Seen", "\\Draft"] if folder == "drafts" else ["\\Seen"]
                box.append(data, self._made(box, folder), flag_set=flags)
                return
            if kind == "move":
                source, target = (more[0], folder) if data == folder.encode() else (folder, more[0])
                uid = self._at(box, source, identity)
                _move(box, _there(uid, source), self._made(box, target), _names(box)[source])
                return
            uid = _there(self._at(box, folder, identity), folder)
            box.folder.set(_names(box)[folder])
            if kind == "flag":
                _flag(box, uid, _FLAGS[more[0]], data == b"yes")
            else:
                _expunge(box, uid)

    def _at(self, box: BaseMailBox, folder: str, identity: str) -> str | None:
        """The UID of the mail with a Message-ID in a folder."""
        name = _names(box).get(folder)
        if name is None:
            return None
        box.folder.set(name, readonly=True)
        uids = self._uids(box, str(self._imap.A(header=[self._imap.H("Message-ID", identity)])))
        if len(uids) > 1:
            raise UsageError(f"{len(uids)} mails in {folder} have the Message-ID {identity}")
        return uids[0] if uids else None

    def _made(self, box: BaseMailBox, folder: str) -> str:
        """The server's name of a folder, which is made if it is missing."""
        names = _names(box)
        if folder not in names:
            names[folder] = folder.title() if folder in ROLES else folder
            box.folder.create(names[folder])
        return names[folder]

    def _criteria(self, query: Query, folder: str) -> str:
        key, both, either = "to" if folder in OURS else "from_", self._imap.A, self._imap.O
        people = [both(**{key: list(query.people)})] if query.people else []
        people += [both(**{key: address}) for address in query.addresses]
        wanted = [either(*people) if len(people) > 1 else people[0]] if people else []
        wanted += [both(text=list(query.about))] if query.about else []
        return str(both(*wanted)) if wanted else "ALL"

    def _uids(self, box: BaseMailBox, criteria: str) -> list[str]:
        return box.uids(criteria, "US-ASCII" if criteria.isascii() else "UTF-8")

    def _fetched(
        self, box: BaseMailBox, folder: str, name: str, uids: list[str], part: str
    ) -> list[Mail]:
        validity = _validity(box, name)
        return [
            Mail(
                id=_path(str(validity), uid, folder),
                folder=folder,
                message=mail_message.parse(data),
                seen="\\Seen" in flags,
                flagged="\\Flagged" in flags,
            )
            for uid, flags, data in _fetch(box, uids, part)
        ]

    @contextmanager
    def _session(self) -> Iterator[BaseMailBox]:
        with self._lock:
            try:
                yield self._connected()
            except MezzotintError:
                raise
            except (imaplib.IMAP4.error, OSError, self._imap.errors.ImapToolsError) as e:
                self.close()
                raise BackendError(f"the mail server did not answer rightly: {e}") from None

    def _connected(self) -> BaseMailBox:
        if self._box is not None:
            with suppress(imaplib.IMAP4.error, OSError):
                self._box.client.noop()
                return self._box
            self.close()  # the server has ended it
        server = self._account.imap
        if server is None:
            raise UsageError("no imap server is set", "name one in [mail] of settings.toml")
        login = self._account.login
        box = self._open(server)
        if login:
            try:
                box.login(*login, initial_folder=None)
            except self._imap.MailboxLoginError:
                box.client.shutdown()
                raise BackendError("the mail server did not accept user and password") from None
        # What a server can do is asked again: most say more once they know the user.
        _, told = box.client.capability()
        box.client.capabilities = tuple(told[0].decode("ascii", "replace").upper().split())
        self._box = box
        return box

    def _open(self, server: Server) -> BaseMailBox:
        kinds = {"tls": "MailBox", "starttls": "MailBoxStartTls", "none": "MailBoxUnencrypted"}
        kind = getattr(self._imap, kinds[server.security])
        secure = {} if server.security == "none" else {"ssl_context": ssl.create_default_context()}
        box: BaseMailBox = kind(server.host, server.port, timeout=TIMEOUT, **secure)
        return box


def _names(box: BaseMailBox) -> dict[str, str]:
    """Role or name of every folder, and the server's name of it."""
    names: dict[str, str] = {}
    for folder in box.folder.list():
        flags = [flag.lower() for flag in folder.flags]
        if "\\noselect" in flags or "\\all" in flags:
            continue
        special = next((_SPECIAL[flag] for flag in flags if flag in _SPECIAL), "")
        last = folder.name.rpartition(folder.delim)[2] if folder.delim else folder.name
        names.setdefault(special or role(last) or folder.name, folder.name)
    return names


def _validity(box: BaseMailBox, name: str) -> int:
    return box.folder.status(name, ["UIDVALIDITY"])["UIDVALIDITY"]


def _fetch(box: BaseMailBox, uids: list[str], part: str) -> Iterator[tuple[str, list[str], bytes]]:
    """UID, flags and bytes of mails of the open folder, or of the named part of them.

    In one request, and as the bytes are: the library asks for each and takes them apart.
    """
    if not uids:
        return
    status, answer = box.client.uid("FETCH", ",".join(uids), f"(UID FLAGS BODY.PEEK[{part}])")
    if status != "OK":
        raise BackendError(f"the mail server refused to show mails: {answer!r}")
    for item, after in zip(answer, [*answer[1:], b""], strict=True):
        if isinstance(item, tuple):
            told = item[0] + (after if isinstance(after, bytes) else b"")
            if uid := re.search(rb"UID (\d+)", told):
                yield uid[1].decode(), [f.decode() for f in imaplib.ParseFlags(told)], item[1]


def _move(box: BaseMailBox, uid: str, target: str, source: str) -> None:
    box.folder.set(source)
    if "MOVE" in box.client.capabilities:
        box.move([uid], target)
    else:
        box.copy([uid], target)
        _expunge(box, uid)


def _expunge(box: BaseMailBox, uid: str) -> None:
    """Remove one mail of the open folder. A server that cannot remove just one, keeps it
    marked as deleted: a plain EXPUNGE would take what other programs marked, too."""
    _flag(box, uid, "\\Deleted", True)
    if "UIDPLUS" in box.client.capabilities:
        box.client.uid("EXPUNGE", uid)


def _flag(box: BaseMailBox, uid: str, flag: str, value: bool) -> None:
    """Not the library's own, which expunges whatever is marked as deleted."""
    status, answer = box.client.uid(
        "STORE", uid, f"{'+' if value else '-'}FLAGS.SILENT", f"({flag})"
    )
    if status != "OK":
        raise BackendError(f"the mail server refused to change a flag: {answer!r}")


def _identity(message: EmailMessage) -> str:
    identity = mail_message.message_id(message)
    if not identity:
        raise UsageError("the mail has no Message-ID, so the change could not be undone")
    return identity


def _there(uid: str | None, folder: str) -> str:
    if uid is None:
        raise UsageError(f"the mail is no longer in {folder}")
    return uid


def _path(*parts: str) -> str:
    return "/".join(quote(part, safe="") for part in parts)
