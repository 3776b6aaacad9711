"""An account: where the user's mail is fetched and sent, and sending it.

    [mail]                                # settings.toml of the workspace
    address = "anna@example.org"
    name = "Anna Li"
    imap = "imaps://mail.example.org"     # without it, the mail is the Maildir of the workspace
    smtp = "smtps://mail.example.org"     # without it, nothing can leave this device
    user = "anna"                         # the address, if not said
    password_env = "MAIL_PASSWORD"        # the environment variable that has the password

imap:// and smtp:// begin in the clear and go over to TLS before the password is sent; only to
this very machine a connection may stay in the clear.
"""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, Literal
from urllib.parse import urlsplit

from mezzotint.agent.packs import mail_message
from mezzotint.errors import BackendError, UsageError

TIMEOUT = 20.0  # seconds for each answer of a server
_KEYS = ("address", "name", "imap", "smtp", "user", "password_env")
_PORTS = {"imaps": 993, "imap": 143, "smtps": 465, "smtp": 587}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    security: Literal["tls", "starttls", "none"]

    @classmethod
    def of(cls, url: str, kind: str) -> Server:
        """kind: imap or smtp. Raises UsageError for another kind of address."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in (kind, f"{kind}s") or not parts.hostname or parts.username:
            raise UsageError(
                f"[mail] {kind} is {url!r}", f"write it like {kind}s://mail.example.org"
            )
        plain = "none" if parts.hostname in _LOOPBACK else "starttls"
        security: Any = "tls" if parts.scheme.endswith("s") else plain
        return cls(parts.hostname, port or _PORTS[parts.scheme], security)


@dataclass(frozen=True)
class Account:
    """The user's mail. imap, smtp: None where there is no such server."""

    address: str = "me@localhost"
    name: str = ""
    imap: Server | None = None
    smtp: Server | None = None
    user: str = ""
    password_env: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Account:
        """From the table [mail]. Raises UsageError for an unknown key or a value of no use."""
        unknown = [key for key in settings if key not in _KEYS]
        if unknown or not all(isinstance(value, str) for value in settings.values()):
            what = f"has {unknown[0]!r}" if unknown else "has a value that is no text"
            raise UsageError(f"[mail] of settings.toml {what}", f"it takes {', '.join(_KEYS)}")
        given = dict(settings)
        address = given.get("address", cls.address)
        if mail_message.address_in(address) != address:
            raise UsageError(f"[mail] address is {address!r}, which is no address")
        for kind in ("imap", "smtp"):
            if kind in given:
                given[kind] = Server.of(given[kind], kind)
        return cls(**given)

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password, or None if the servers want none."""
        if not self.password_env:
            return None
        if self.password_env not in os.environ:
            raise UsageError(f"the environment has no {self.password_env}, mail's password_env")
        return self.user or self.address, os.environ[self.password_env]

    def send(self, message: EmailMessage) -> list[str]:
        """Send a message; the addresses that the server refused, while it took others.

        Raises BackendError if it was not sent to anybody.
        """
        if self.smtp is None:
            raise UsageError("no smtp server is set", "name one in [mail] of settings.toml")
        try:
            with _smtp(self.smtp) as server:
                if login := self.login:
                    server.login(*login)
                to = [address for _, address in mail_message.people(message, "To")]
                data = mail_message.written(message, "\r\n")
                return list(server.sendmail(self.address, to, data))
        except (smtplib.SMTPException, OSError) as e:
            raise BackendError(f"the mail was not sent: {_reason(e)}") from None


def _smtp(to: Server) -> smtplib.SMTP:
    if to.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(to.host, to.port, timeout=TIMEOUT, context=context)
    server = smtplib.SMTP(to.host, to.port, timeout=TIMEOUT)
    if to.security == "starttls":
        server.starttls(context=ssl.create_default_context())
    return server


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return "the server did not accept the user and password"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"the server refused {', '.join(error.recipients)}"
    return str(error) or type(error).__name__
