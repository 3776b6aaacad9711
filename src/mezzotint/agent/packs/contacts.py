"""The address book: a folder of vCards, and its tools. Other packs find people through it.

A file may hold several cards; what a card holds beyond what is shown here is kept as it is.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Annotated, Any

import vobject
from pydantic import Field

from mezzotint.agent import names
from mezzotint.agent.packs.texts import clean
from mezzotint.agent.tool import Context, Effect, Outcome, Problem, Tool
from mezzotint.agent.workspace import Workspace

FOLDER = "contacts"
_WHICH = ("give a phone number or an email", "请给出电话或邮箱")

Email = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")]
Phone = Annotated[str, Field(pattern=r"^[+(]?[0-9][0-9 ()./-]{2,}$")]


@dataclass(frozen=True, slots=True)
class Contact:
    """A person. number: which card of the file `path`, from 0. Missing values are empty."""

    path: str
    number: int
    name: str
    nickname: str
    email: str
    phone: str
    address: str

    @property
    def label(self) -> str:
        detail = self.email or self.phone
        return f"{self.name} ({detail})" if detail else self.name


class Contacts:
    """The people of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def all(self) -> list[Contact]:
        return [
            _contact(path, number, card)
            for path in self._workspace.files(FOLDER)
            if path.endswith(".vcf")
            for number, card in enumerate(self.cards(path))
        ]

    def find(self, name: str, context: Context, argument: str = "name") -> Contact:
        """The person that a name or nickname means. Raises Problem for none or several."""
        people = self.all()
        if not names.fitting(name, people, lambda c: c.name):
            known = [c for c in people if c.nickname]
            if called := names.fitting(name, known, lambda c: c.nickname):
                people = called
                return names.only(name, people, lambda c: c.nickname, context, argument, _label)
        return names.only(name, people, lambda c: c.name, context, argument, _label)

    def said(self, text: str) -> list[str]:
        """Which of the people a text names, as it names them."""
        known = (name for one in self.all() for name in (one.name, one.nickname) if name)
        return names.said_in(text, known)

    def cards(self, path: str) -> list[Any]:
        """The cards of a file; none if it is no vCard file."""
        text = (self._workspace.read(path) or b"").decode("utf-8", "replace")
        try:
            return [c for c in vobject.readComponents(text) if c.name == "VCARD"]
        except vobject.base.VObjectError:
            return []


def tools(contacts: Contacts) -> list[Tool]:
    pack = _Pack(contacts)
    return [
        Tool.of(pack.find_contact, Effect.READS, known={"name": contacts.said}),
        Tool.of(pack.add_contact, Effect.WRITES),
        Tool.of(pack.update_contact, Effect.WRITES, known={"name": contacts.said}),
    ]


class _Pack:
    def __init__(self, contacts: Contacts) -> None:
        self._contacts = contacts

    def find_contact(self, name: str, *, context: Context) -> Outcome:
        """Look up a contact's phone, email or address."""
        found = self._contacts.find(name, context)
        return Outcome(_line(found, context), _data(found))

    def add_contact(
        self, name: str, phone: Phone = "", email: Email = "", *, context: Context
    ) -> Outcome:
        """Add a person to the contacts."""
        if not phone and not email:
            raise Problem(context.say(*_WHICH), argument="email")
        for one in self._contacts.all():
            if names.words(one.name) == names.words(name):
                raise Problem(
                    context.say(f"{one.label} is there already", f"通讯录里已有{one.label}")
                )
        card: Any = vobject.vCard()
        card.add("fn").value = name.strip()
        given, _, family = name.strip().rpartition(" ")
        card.add("n").value = vobject.vcard.Name(family=family, given=given)
        _set(card, phone, email)
        path = f"{FOLDER}/{uuid.uuid4()}.vcf"
        self._write(path, [card], context)
        made = self._again(path, 0)
        said = context.say(f"Added {_line(made, context)}", f"已添加联系人{_line(made, context)}")
        return Outcome(said, _data(made))

    def update_contact(
        self, name: str, phone: Phone = "", email: Email = "", *, context: Context
    ) -> Outcome:
        """Change a contact's phone number or email."""
        if not phone and not email:
            raise Problem(context.say(*_WHICH), argument="email")
        found = self._contacts.find(name, context)
        cards = self._contacts.cards(found.path)
        _set(cards[found.number], phone, email)
        self._write(found.path, cards, context)
        made = self._again(found.path, found.number)
        said = context.say(f"Changed {_line(made, context)}", f"已更新{_line(made, context)}")
        return Outcome(said, _data(made))

    def _write(self, path: str, cards: list[Any], context: Context) -> None:
        text = "".join(card.serialize(validate=False) for card in cards)
        context.writing().write(path, text.encode("utf-8"))

    def _again(self, path: str, number: int) -> Contact:
        return _contact(path, number, self._contacts.cards(path)[number])


def _contact(path: str, number: int, card: Any) -> Contact:
    def first(name: str) -> str:
        found = card.contents.get(name)
        return clean(str(found[0].value)) if found else ""

    return Contact(
        path=path,
        number=number,
        name=first("fn"),
        nickname=first("nickname"),
        email=first("email"),
        phone=first("tel"),
        address=clean(first("adr").replace(",", " ")),
    )


def _set(card: Any, phone: str, email: str) -> None:
    """Give a card this first phone number and email; an empty one stays as it was."""
    for name, value in (("tel", phone), ("email", email)):
        if not value:
            continue
        if name in card.contents:
            card.contents[name][0].value = value
        else:
            card.add(name).value = value


def _label(contact: Contact) -> str:
    return contact.label


def _line(contact: Contact, context: Context) -> str:
    details = [d for d in (contact.email, contact.phone, contact.address) if d]
    return context.say(
        f"{contact.name}: {', '.join(details) or 'no details'}.",
        f"{contact.name}：{'，'.join(details) or '没有联系方式'}。",
    )


def _data(contact: Contact) -> dict[str, str]:
    values = {
        "name": contact.name,
        "email": contact.email,
        "phone": contact.phone,
        "address": contact.address,
    }
    return {key: value for key, value in values.items() if value}
