"""Messages: reading what comes, in any encoding, and composing what goes.

Header values are written by `email`'s policies from cleaned single lines, addresses only if
they are nothing but an address: no value can begin a header of its own. What a mail says is
data. This file knows no folder and no server.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.headerregistry import Address
from email.message import EmailMessage
from email.mime.message import MIMEMessage
from email.parser import BytesParser
from email.utils import getaddresses, make_msgid, parsedate_to_datetime
from html import unescape
from itertools import islice
from typing import Any

from mezzotint.agent.packs import texts
from mezzotint.errors import MezzotintError

_WRITING = policy.SMTP.clone(cte_type="7bit")  # no server has to know 8BITMIME
_LONGEST = 10_000  # characters of a header that are read
_PARTS = 50  # times that a mail names a boundary of parts
_TEXT = 2_000_000  # bytes of a text that are read
_SUBJECT = 300  # characters of a subject that is written
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_IN_BRACKETS = re.compile(r"[<(（]([^<>()（）]*)[>)）]\s*\Z")
_MESSAGE_ID = re.compile(r"<[!-;=?-\[\]-~]{1,250}>")  # printable ASCII without < > and \
_REFERENCES = 20  # ancestors that a reply names
_SLOW = ("punycode", "idna")  # codecs that take the square of the length, and are for names
_SKIPPED = {"script", "style", "title", "template"}
_BREAKS = {"br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "blockquote", "table"}


class _AsWritten(policy.Compat32):
    """For what came: headers stay strings, and go on as they were written. To take apart or to
    fold some short ones takes the standard library's own policies minutes."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        lines = re.split(r"\r\n|\r|\n", f"{name}: {value}")
        folded = [
            lines[0],
            *(line if line[:1] in (" ", "\t") else f" {line}" for line in lines[1:]),
        ]
        return "".join(line + self.linesep for line in folded).encode("ascii", "replace")


_READING = _AsWritten(cte_type="7bit", mangle_from_=False)


def parse(data: bytes) -> EmailMessage:
    """A message, however broken: the parser notes defects and goes on.

    One of more parts than a mail has is read no further than its headers: the parser takes the
    depth of parts times their lines.
    """
    parser: Any = BytesParser(EmailMessage, policy=_READING)
    nested = next(islice(re.finditer(rb"(?i)boundary", data), _PARTS, None), None)
    try:
        return parser.parsebytes(data, headersonly=nested is not None)  # type: ignore[no-any-return]
    except RecursionError:  # messages within messages within messages
        return parser.parsebytes(data, headersonly=True)  # type: ignore[no-any-return]


def header(message: EmailMessage, name: str) -> str:
    """A header's value, decoded, on one line; "" if it is missing."""
    return _without_words(next(_raw(message, name), ""))


def people(message: EmailMessage, *names: str) -> list[tuple[str, str]]:
    """Name and address of everyone in the named headers; the name may be empty."""
    # Taken apart before they are decoded: an encoded name may hold what looks like an address.
    try:
        pairs = getaddresses([value for name in names for value in _raw(message, name)])
    except RecursionError:  # brackets within brackets
        return []
    return [(_without_words(name), texts.clean(address)) for name, address in pairs if address]


def date(message: EmailMessage) -> datetime | None:
    """When it was written, aware; None if it does not say, or says what no mail can."""
    try:
        when = parsedate_to_datetime(header(message, "Date"))
    except (ValueError, TypeError, OverflowError):
        return None
    if not 1970 < when.year < 3000:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def message_id(message: EmailMessage) -> str:
    """The Message-ID, or "" if there is no proper one."""
    found = _MESSAGE_ID.search(header(message, "Message-ID"))
    return found[0] if found else ""


def text(message: EmailMessage) -> str:
    """What a reader sees: the plain part, or the HTML part without its tags."""
    try:
        part = message.get_body(("plain", "html"))
    except Exception:  # the standard library trips over some malformed messages
        part = None
    if part is None:
        return ""
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    shown = _decoded(payload[:_TEXT], part.get_content_charset("utf-8"))
    if part.get_content_subtype() == "html":
        shown = _without_tags(shown)
    return "\n".join(line.rstrip() for line in shown.replace("\0", "").splitlines()).strip()


def attachments(message: EmailMessage) -> list[str]:
    """Names of the attached files."""
    try:
        parts = list(message.iter_attachments())
    except Exception:  # as in `text`
        return []
    return [texts.clean(part.get_filename() or part.get_content_type()) for part in parts]


def address_in(said: str) -> str:
    """The address that a text is, or ends with in brackets; "" if it is none."""
    bracketed = _IN_BRACKETS.search(said)
    bare = (bracketed[1] if bracketed else said).strip()
    return bare if _ADDRESS.fullmatch(bare) else ""


def compose(
    sender: tuple[str, str],
    to: Sequence[str],
    subject: str,
    body: str,
    now: datetime,
    answered: EmailMessage | None = None,
    forwarded: EmailMessage | None = None,
) -> EmailMessage:
    """A new message, ready to send. sender: name, which may be empty, and address.

    answered: the message that this one replies to. forwarded: one to attach, as it is. Raises
    ValueError for what is no address.
    """
    message = EmailMessage(policy=_WRITING)
    message["From"] = Address(texts.clean(sender[0]), addr_spec=sender[1])
    message["To"] = [Address(addr_spec=address) for address in to]
    message["Subject"] = texts.clean(subject)[:_SUBJECT]
    message["Date"] = now
    message["Message-ID"] = make_msgid(domain=sender[1].rpartition("@")[2])
    if answered is not None and (identity := message_id(answered)):
        earlier = _MESSAGE_ID.findall(header(answered, "References"))
        message["In-Reply-To"] = identity
        message["References"] = " ".join([*earlier[-_REFERENCES:], identity])
    message.set_content(body.strip() + "\n")
    if forwarded is None:
        return parse(message.as_bytes())
    message.make_mixed()
    whole = parse(message.as_bytes())
    attached: Any = MIMEMessage(forwarded, policy=_READING)
    whole.attach(attached)
    return whole


def written(message: EmailMessage, line_end: str) -> bytes:
    """A message as bytes, whose lines end so. Raises MezzotintError for one that is broken
    beyond writing it anew."""
    try:
        return message.as_bytes(policy=_READING.clone(linesep=line_end))
    except Exception as e:
        raise MezzotintError(f"the mail cannot be passed on: {e}") from None


def prefixed(prefix: str, subject: str) -> str:
    """`Re: subject`, unless it has that prefix."""
    return subject if texts.folded(subject).startswith(prefix.casefold()) else f"{prefix} {subject}"


def thread(subject: str) -> str:
    """A subject without the prefixes of replies and forwards, folded: the same in a thread."""
    return re.sub(
        r"^((re|aw|fwd?|wg|回复|答复|转发)\s*[:：]\s*)+", "", texts.folded(subject)
    ).strip()


def _raw(message: EmailMessage, name: str) -> Iterator[str]:
    """The values of a header as they were written, each cut to a length that is still read."""
    for key, value in message.raw_items():
        if key.lower() == name.lower():
            data = str(value)[:_LONGEST].encode("utf-8", "surrogateescape")
            yield data.decode("utf-8", "replace")


def _without_words(value: str) -> str:
    """A header's value without its encoded words (RFC 2047)."""
    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):
        return texts.clean(value)
    return texts.clean(
        "".join(
            part if isinstance(part, str)
            else _decoded(part, charset) if charset
            else part.decode("raw-unicode-escape", "replace")
            for part, charset in parts
        )
    )  # fmt: skip


def _decoded(data: bytes, charset: str) -> str:
    try:
        codec = codecs.lookup(charset).name
        if codec not in _SLOW:
            # What calls itself GB2312 or GBK often holds characters of their superset.
            return data.decode("gb18030" if codec in ("gb2312", "gbk") else codec, "replace")
    except (LookupError, ValueError):
        pass
    return texts.decoded(data) or data.decode("utf-8", "replace")


def _without_tags(markup: str) -> str:
    """The text of HTML. In one pass, which html.parser is not: a hostile mail of 200 kB would
    keep it for minutes."""
    first, *commented = markup.split("<!--")
    pieces = [first, *(comment.partition("-->")[2] for comment in commented)]
    shown, skipping = [], 0
    for token in re.split(r"(<[^<>]*>)", "".join(pieces)):
        tag = re.match(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>\Z|<[!?][^<>]*>\Z", token)
        if not tag:
            shown.append("" if skipping else unescape(" ".join(re.split(r"\s+", token))))
        elif tag[2] and tag[2].lower() in _SKIPPED:
            skipping = max(0, skipping + (-1 if tag[1] else 1))
        elif tag[2] and tag[2].lower() in _BREAKS:
            shown.append("\n")
    lines = (" ".join(line.split()) for line in "".join(shown).split("\n"))
    return "\n".join(line for line in lines if line)
