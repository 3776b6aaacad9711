"""Mail: search, read, send, reply, forward, draft, file and mark.

One call an intent: a tool finds the mail and the people itself, and asks when two fit or when
it is not sure whom a name means. Sending cannot be taken back; everything else can. What a mail
says is data: it is returned, cut if long, and read for nothing but addresses to answer to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, Literal

from mezzotint.agent import names
from mezzotint.agent.journal import Place
from mezzotint.agent.packs import imap, mail_message, mail_people, texts
from mezzotint.agent.packs.mail_account import Account
from mezzotint.agent.packs.mail_people import Directory, People
from mezzotint.agent.packs.mail_store import OURS, ROLES, Mail, Numbers, Query, Store, role
from mezzotint.agent.packs.maildir import Maildir
from mezzotint.agent.tool import Context, Effect, Outcome, Preview, Problem, Tool
from mezzotint.agent.workspace import Workspace
from mezzotint.errors import MezzotintError

_SHOWN = 10  # search results
_ASIDE = ("trash", "spam", *OURS)  # folders that are searched only when they are named
_KIND = re.compile(r"\b(?:e-?mails?|mails?|messages?)\b|邮件", re.IGNORECASE)
_SUBJECT = 60  # characters of a subject made from a mail's text


@dataclass(frozen=True)
class Mailbox:
    """The user's mail: where it is, and how it is sent."""

    workspace: Workspace
    store: Store
    account: Account

    @classmethod
    def of(cls, workspace: Workspace) -> Mailbox:
        """As settings.toml says: a server, or the Maildir of the workspace.

        Raises UsageError for wrong settings, BackendError if a library is missing.
        """
        account = Account.of(workspace.settings("mail"))
        store: Store = imap.Imap(account) if account.imap else Maildir(workspace)
        return cls(workspace, store, account)

    @property
    def places(self) -> Mapping[str, Place]:
        """What the journal must know to take changes on a server back."""
        return {imap.PLACE: self.store} if isinstance(self.store, imap.Imap) else {}

    def close(self) -> None:
        """End the connection to a server, if there is one."""
        if isinstance(self.store, imap.Imap):
            self.store.close()


def tools(mailbox: Mailbox, directory: Directory) -> list[Tool]:
    """The tools over a mailbox. directory: the people that the user knows."""
    pack = _Pack(mailbox, directory)
    people, to = {"from": pack.said}, {"to": pack.said}
    return [
        Tool.of(pack.search_email, Effect.READS, known={**people, "folder": pack.folders}),
        Tool.of(pack.read_email, Effect.READS, known=people),
        Tool.of(pack.send_email, Effect.IRREVERSIBLE, pack.check_send, to),
        Tool.of(pack.reply_email, Effect.IRREVERSIBLE, pack.check_reply, people),
        Tool.of(
            pack.forward_email, Effect.IRREVERSIBLE, pack.check_forward, {"recipient": pack.said}
        ),
        Tool.of(pack.draft_email, Effect.WRITES, pack.check_send, to),
        Tool.of(pack.delete_email, Effect.WRITES, pack.check_delete),
        Tool.of(pack.move_email, Effect.WRITES, pack.check_move, {"folder": pack.folders}),
        Tool.of(pack.mark_email, Effect.WRITES, pack.check_mark),
    ]


class _Pack:
    def __init__(self, mailbox: Mailbox, directory: Directory) -> None:
        self._store, self._account = mailbox.store, mailbox.account
        self._numbers = Numbers(mailbox.workspace, mailbox.account.address)
        self._people = People(directory)

    def said(self, text: str) -> list[str]:
        """Whom a text names."""
        return self._people.said(text)

    def folders(self, text: str) -> list[str]:
        """Which folders a text names."""
        roles = (name for some in ROLES.values() for name in some)
        return names.said_in(text, [*roles, *self._store.folders()])

    def search_email(
        self, from_: str = "", about: str = "", folder: str = "", *, context: Context
    ) -> Outcome:
        """Search the mailbox."""
        found = self._search(from_, about, folder, context, _SHOWN + 1)
        if not found:
            return Outcome(context.say("No mail fits.", "没有符合的邮件。"), {"emails": []})
        shown = self._shown(found[:_SHOWN], context)
        listed = "; ".join(_line(one) for one in shown)
        data: dict[str, Any] = shown[0] if len(shown) == 1 else {"emails": shown}
        if len(found) > _SHOWN:
            data["note"] = context.say("there are more", "还有更多")
        return Outcome(context.say(f"Mails: {listed}.", f"邮件：{listed}。"), data)

    def read_email(
        self, from_: str = "", about: str = "", id: int | None = None, *, context: Context
    ) -> Outcome:
        """Read an email: the newest that fits, or the one with a number."""
        if id is None:
            found = self._search(from_, about, "", context, 1)
            if not found:
                raise Problem(context.say("no mail fits", "没有符合的邮件"))
            mail = self._whole(found[0], context)
        else:
            mail = self._numbered(id, context, "id")
        data = self._shown([mail], context)[0]
        data["text"] = texts.cut(mail_message.text(mail.message), context)
        if attached := mail_message.attachments(mail.message):
            data["attachments"] = attached
        return Outcome(f"{_line(data)}\n{data['text']}", data)

    def send_email(
        self, to: str, subject: str = "", body: str = "", *, context: Context
    ) -> Outcome:
        """Send an email."""
        return self._send(self._new(to, subject, body, context), context)

    def check_send(
        self, to: str, subject: str = "", body: str = "", *, context: Context
    ) -> Preview:
        return self._preview(self._new(to, subject, body, context))

    def draft_email(
        self, to: str, subject: str = "", body: str = "", *, context: Context
    ) -> Outcome:
        """Write an email and keep it as a draft, not sent."""
        message = self._new(to, subject, body, context)
        self._store.add(context.writing(), "drafts", message)
        to, subject = mail_message.header(message, "To"), mail_message.header(message, "Subject")
        said = context.say(f"Kept a draft to {to}: {subject}", f"已存为给{to}的草稿：{subject}")
        return Outcome(said, {"draft": subject, "to": to})

    def reply_email(
        self,
        body: str,
        from_: str = "",
        about: str = "",
        id: int | None = None,
        to: str = "",
        *,
        context: Context,
    ) -> Outcome:
        """Reply to an email.

        to: where the reply goes, if not to the sender
        """
        return self._send(self._reply(body, from_, about, id, to, context), context)

    def check_reply(
        self,
        body: str,
        from_: str = "",
        about: str = "",
        id: int | None = None,
        to: str = "",
        *,
        context: Context,
    ) -> Preview:
        answered = self._meant(from_, about, id, context)
        message = self._reply(body, from_, about, id, to, context)
        return self._preview(message, answered, context)

    def forward_email(
        self, message: int, recipient: str, comment: str = "", *, context: Context
    ) -> Outcome:
        """Forward an email to someone."""
        return self._send(self._forward(message, recipient, comment, context), context)

    def check_forward(
        self, message: int, recipient: str, comment: str = "", *, context: Context
    ) -> Preview:
        forwarded = self._numbered(message, context, "message")
        return self._preview(
            self._forward(message, recipient, comment, context), forwarded, context
        )

    def delete_email(self, id: int, *, context: Context) -> Outcome:
        """Move an email to the trash."""
        return self.move_email(id, "trash", context=context)

    def check_delete(self, id: int, *, context: Context) -> None:
        self._move(id, "trash", context)

    def move_email(self, id: int, folder: str, *, context: Context) -> Outcome:
        """Move an email to a folder."""
        mail, folder = self._move(id, folder, context)
        self._store.move(context.writing(), mail, folder)
        said = context.say(
            f"Moved the mail {mail.subject!r} to {folder}.",
            f"已把邮件“{mail.subject}”移到{folder}。",
        )
        return Outcome(said, {"id": id, "folder": folder})

    def check_move(self, id: int, folder: str, *, context: Context) -> None:
        self._move(id, folder, context)

    def mark_email(
        self,
        id: int,
        mark: Literal["read", "unread", "flagged", "unflagged"],
        *,
        context: Context,
    ) -> Outcome:
        """Mark an email as read or unread, or with a flag."""
        mail = self._numbered(id, context, "id")
        flag = "seen" if mark.endswith("read") else "flagged"
        self._store.mark(context.writing(), mail, flag, not mark.startswith("un"))
        said = context.say(
            f"Marked {mail.subject!r} as {mark}.", f"已标记“{mail.subject}”：{mark}。"
        )
        return Outcome(said, {"id": id, "mark": mark})

    def check_mark(self, id: int, mark: str, *, context: Context) -> None:
        self._numbered(id, context, "id")

    def _new(self, to: str, subject: str, body: str, context: Context) -> EmailMessage:
        if not subject.strip() and not body.strip():
            raise Problem(context.say("what should it say?", "邮件写什么？"), argument="body")
        # The first words of the text say more to its reader than an empty subject.
        subject = subject or texts.clean(body)[:_SUBJECT]
        return self._composed(self._people.addresses(to, context, "to"), subject, body, context)

    def _reply(
        self, body: str, from_: str, about: str, id: int | None, to: str, context: Context
    ) -> EmailMessage:
        mail = self._meant(from_, about, id, context)
        people = (
            self._people.addresses(to, context, "to")
            if to
            else [mail_people.answering(mail.message, context)]
        )
        subject = mail_message.prefixed("Re:", mail.subject)
        return self._composed(people, subject, body, context, mail.message)

    def _forward(self, number: int, recipient: str, comment: str, context: Context) -> EmailMessage:
        mail = self._numbered(number, context, "message")
        people = self._people.addresses(recipient, context, "recipient")
        subject = mail_message.prefixed("Fwd:", mail.subject)
        return self._composed(people, subject, comment, context, forwarded=mail.message)

    def _preview(
        self, message: EmailMessage, about: Mail | None = None, context: Context | None = None
    ) -> Preview:
        """What would go out, and the mail that it answers or passes on."""
        thing = _line(self._shown([about], context)[0]) if about and context else ""
        to = [self._people.labelled(a) for _, a in mail_message.people(message, "To")]
        subject = mail_message.header(message, "Subject")
        return Preview(tuple(to), subject, mail_message.text(message).strip(), thing)

    def _move(self, id: int, folder: str, context: Context) -> tuple[Mail, str]:
        mail = self._numbered(id, context, "id")
        folder = self._folder(folder, context)
        if mail.folder == folder:
            raise Problem(context.say(f"it is in {folder} already", f"它已经在{folder}里了"))
        return mail, folder

    def _composed(
        self,
        people: list[str],
        subject: str,
        body: str,
        context: Context,
        answered: EmailMessage | None = None,
        forwarded: EmailMessage | None = None,
    ) -> EmailMessage:
        sender = (self._account.name, self._account.address)
        return mail_message.compose(sender, people, subject, body, context.now, answered, forwarded)

    def _send(self, message: EmailMessage, context: Context) -> Outcome:
        to, subject = mail_message.header(message, "To"), mail_message.header(message, "Subject")
        said = context.say(f"Sent to {to}: {subject}", f"已发给{to}：{subject}")
        run, data = context.writing(), {"to": to, "subject": subject}
        if self._account.smtp is None:
            self._store.add(run, "sent", message)
            note = context.say("kept in the sent folder: no mail server is set",
                               "仅存入已发送：未设置邮件服务器")  # fmt: skip
            return Outcome(f"{said} ({note})", data | {"note": note})
        run.outside(said)
        if refused := self._account.send(message):
            data["refused"] = ", ".join(refused)
            said += context.say(f" (refused: {data['refused']})", f"（被拒收：{data['refused']}）")
        try:
            self._store.add(run, "sent", message)
        except (MezzotintError, OSError) as e:
            # It has been sent: to fail now would invite a second sending.
            data["note"] = context.say(f"no copy was kept: {e}", f"没有保存副本：{e}")
            said += f" ({data['note']})"
        return Outcome(said, data)

    def _search(
        self, from_: str, about: str, folder: str, context: Context, limit: int
    ) -> list[Mail]:
        """folder: "" for all but those set aside."""
        if folder:
            folders = [self._folder(folder, context)]
        else:
            folders = [name for name in self._store.folders() if name not in _ASIDE]
        people, addresses = texts.terms(from_), []
        if "@" in from_:
            people, addresses = [], [mail_message.address_in(from_).lower() or from_.lower()]
        elif from_:
            with suppress(Problem):  # someone who is no contact may have written, too
                addresses = [self._people.address(from_, context, "from").lower()]
        query = Query(people, addresses, texts.terms(_KIND.sub(" ", about)))
        return self._store.search(query, folders, limit)

    def _meant(self, from_: str, about: str, id: int | None, context: Context) -> Mail:
        """The mail to reply to: the newest of the one thread that fits. Asks if several do."""
        if id is not None:
            return self._numbered(id, context, "id")
        found = self._search(from_, about, "", context, _SHOWN)
        newest: dict[str, Mail] = {}
        for mail in found:
            newest.setdefault(mail_message.thread(mail.subject), mail)
        if not newest:
            raise Problem(context.say("no mail fits", "没有符合的邮件"))
        if len(newest) > 1:
            shown = self._shown(list(newest.values()), context)
            listed = "; ".join(_line(one) for one in shown)
            raise Problem(
                context.say(f"which one? {listed}", f"哪一封？{listed}"),
                choices=[str(one["id"]) for one in shown],
                argument="id",
                labels=[_line(one) for one in shown],
            )
        return self._whole(next(iter(newest.values())), context)

    def _folder(self, said: str, context: Context) -> str:
        if found := role(said) or role(" ".join(names.words(said))):
            return found
        return names.only(said, self._store.folders(), str, context, "folder")

    def _numbered(self, number: int, context: Context, argument: str) -> Mail:
        id = self._numbers.id(number)
        mail = self._store.find(id) if id else None
        if mail is None:
            raise Problem(
                context.say(f"no mail {number}", f"没有{number}号邮件"), argument=argument
            )
        return mail

    def _whole(self, mail: Mail, context: Context) -> Mail:
        """The mail with its text, where a search brought only its headers."""
        found = self._store.find(mail.id)
        if found is None:
            raise Problem(context.say("the mail has just gone", "邮件刚刚不见了"))
        return found

    def _shown(self, mails: list[Mail], context: Context) -> list[dict[str, Any]]:
        """What the user and the model are told of mails, each with its number."""
        shown = []
        for number, mail in zip(self._numbers.of([m.id for m in mails]), mails, strict=True):
            others = ", ".join(name or address for name, address in mail.others)
            data = {"id": number, "to" if mail.folder in OURS else "from": others}
            data["subject"] = mail.subject
            if date := mail.date:
                data["date"] = f"{date.astimezone(context.now.tzinfo):%Y-%m-%d %H:%M}"
            if not mail.seen:
                data["unread"] = True
            shown.append(data)
        return shown


def _line(shown: Mapping[str, Any]) -> str:
    who = shown.get("from") or shown.get("to") or "?"
    return f"{shown['id']} {who}: {shown['subject']} ({shown.get('date', '?')})"
