"""Whom a mail goes to: names, addresses, several of either; and whom an answer goes to.

Better one question too many than a mail to the wrong person: where a name means two people, or
says more than the contact's name does, the user is asked. This file knows no store.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Protocol

from mezzotint.agent import names
from mezzotint.agent.packs import mail_message
from mezzotint.agent.tool import Context, Problem

_ADDRESSES = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


class Person(Protocol):
    """A contact, as far as mail is concerned. label: the name with what tells it from others."""

    @property
    def name(self) -> str: ...
    @property
    def nickname(self) -> str: ...
    @property
    def email(self) -> str: ...
    @property
    def label(self) -> str: ...


class Directory(Protocol):
    """The people that the user knows."""

    def all(self) -> Sequence[Person]: ...

    def find(self, name: str, context: Context, argument: str = "name") -> Person:
        """The person that a name means. Raises Problem, for the argument, for none or two."""


@dataclass(frozen=True)
class People:
    """How names become addresses."""

    _directory: Directory

    def said(self, text: str) -> list[str]:
        """Whom of the people that the user knows a text names, and addresses in it."""
        known = [name for one in self._directory.all() for name in (one.name, one.nickname)]
        return [*names.said_in(text, filter(None, known)), *_ADDRESSES.findall(text)]

    def labelled(self, address: str) -> str:
        """An address with the name of whose it is, if the user knows that."""
        same = (p.name for p in self._directory.all() if p.email.casefold() == address.casefold())
        name = next(same, "")
        return f"{name} <{address}>" if name else address

    def addresses(self, said: str, context: Context, argument: str) -> list[str]:
        """The addresses of one or several people, as they are said."""
        parts = [part for part in re.split(r"[,;，；、\n]|\s+and\s+", said) if part.strip()]
        if not parts:
            raise Problem(context.say("to whom?", "发给谁？"), argument=argument)
        found = [one for part in parts for one in self._joined(part, context, argument)]
        return list(dict.fromkeys(found))

    def _joined(self, said: str, context: Context, argument: str) -> list[str]:
        """One person, or several joined by 和: also a syllable of names, which come first.
        What is left of such a name, one character, names nobody."""
        try:
            return [self.address(said, context, argument)]
        except Problem as e:
            problem = e
        for joint in re.finditer("[和跟与]", said):
            one, others = said[: joint.start()].strip(), said[joint.end() :].strip()
            if len(one) > 1 and len(others) > 1:
                try:
                    first = self.address(one, context, argument)
                    return [first, *self._joined(others, context, argument)]
                except Problem as e:
                    problem = e
        raise problem

    def address(self, said: str, context: Context, argument: str) -> str:
        """The address that `said` is, or that a contact of that name has. More words than the
        name has may make it somebody else ("Anna's boss"): the user is asked."""
        said = said.strip()
        if "@" in said:
            address = mail_message.address_in(said)
            if not address:
                raise Problem(
                    context.say(f"{said} is not an address", f"{said}不是邮箱地址"),
                    argument=argument,
                )
            return address
        try:
            person = self._directory.find(said, context, "contact")
        except Problem as e:
            raise Problem(
                e.outcome.error,
                closest=e.outcome.closest,
                choices=e.outcome.choices,
                argument=argument,
            ) from None
        address, known = mail_message.address_in(person.email), names.words(person.name)
        if not address:
            raise Problem(
                context.say(f"{person.name} has no email address", f"{person.name}没有邮箱"),
                argument=argument,
            )
        extra = set(names.words(said)) - {*known, *names.words(person.nickname)}
        if extra and len(names.words(said)) > len(known):
            names.several(said, [person.label], context, argument)
        return address


def answering(message: EmailMessage, context: Context) -> str:
    """Where an answer goes. A mail that wants it elsewhere than where it came from may be
    from someone else than it says: the user decides."""
    sender = [address for _, address in mail_message.people(message, "From")]
    wanted = [address for _, address in mail_message.people(message, "Reply-To")] or sender
    valid = [address for address in wanted if mail_message.address_in(address) == address]
    if not valid:
        raise Problem(
            context.say("it has no address to answer to", "它没有可回复的地址"), argument="to"
        )
    if set(wanted) != set(sender):
        choices = list(dict.fromkeys(sender[:1] + valid))
        raise Problem(
            context.say(
                f"it came from {sender[0] if sender else '?'}, "
                f"but asks for answers to {', '.join(valid)}",
                f"它来自{sender[0] if sender else '?'}，却要求回复到{'、'.join(valid)}",
            ),
            choices=choices,
            argument="to",
        )
    return valid[0]
