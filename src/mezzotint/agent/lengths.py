"""Lengths of time that a request says: how long something takes, and how long before or after
something else. Words of English and Chinese; no tool, no store.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

from mezzotint.agent import when, when_words

_LENGTH = re.compile(
    r"(?:\bfor|,|\blasting|\btakes?) (?:(?P<half>half an)"
    r"|(?P<n>\d+|an?|one|two|three|four|five|six|ten|fifteen|twenty|thirty|forty|forty-five|fifty))"
    r" (?P<unit>min(?:ute)?s?|h(?:ou)?rs?)\b(?P<more> and a half)?"
    r"|(?:(?P<halfzh>半)个?|(?P<nzh>\d+|[一二两三四五六七八九十]+)个?(?P<morezh>半)?)"
    r"(?P<unitzh>分钟|小时|钟头)(?![以之]?后)",
    re.IGNORECASE,
)
_POINTS = re.compile(r"(?:that|it|this|then|to)\b", re.IGNORECASE)
_CLOCK = (
    r"(?:half past |quarter (?:past|to) )?(?:\d\d?(?:[:.]\d\d)?|one|two|three|four|five|six|seven"
    r"|eight|nine|ten|eleven|twelve|noon)(?: ?[ap]\.?m\b\.?)?"
)
_CLOCK_ZH = (
    r"(?:[早上中下午晚]{2})?[\d一二三四五六七八九十两]+点(?:半|[\d一二三四五六七八九十]+分?)?"
)
SPAN = re.compile(
    rf"\b(?P<a>{_CLOCK})\s*(?:to|till|until|-|–)\s*(?P<b>{_CLOCK})(?![\w%])"
    rf"|(?P<azh>{_CLOCK_ZH})[到至](?P<bzh>{_CLOCK_ZH})",
    re.IGNORECASE,
)
_OFFSET = re.compile(
    r"\b(?:(?P<half>half an)"
    r"|(?P<n>\d+|an?|one|two|three|four|five|ten|fifteen|twenty|thirty|forty-five))"
    r" (?P<unit>min(?:ute)?s?|h(?:ou)?rs?|days?)(?P<more> and a half)? "
    r"(?P<side>before|ahead|earlier|prior|after|later)\b"
    r"|(?P<beforezh>提前)?"
    r"(?:(?P<halfzh>半)个?|(?P<nzh>\d+|[一二两三四五六七八九十]+)个?(?P<morezh>半)?)"
    r"(?P<unitzh>分钟|小时|钟头|天)(?P<sidezh>[以之]?前|[以之]?后)?",
    re.IGNORECASE,
)


def lasting(text: str, now: datetime) -> tuple[time, int] | None:
    """When a text says that something begins, and its minutes, if it says when it ends ("two to
    half past three"); what both say of the half of the day the end says."""
    for match in SPAN.finditer(text):
        first, last = (match["azh"], match["bzh"]) if match["azh"] else (match["a"], match["b"])
        late = re.search(r"[ap]\.?m", last, re.IGNORECASE)
        if late and not re.search(r"[ap]\.?m", first, re.IGNORECASE):
            first = f"{first} {late[0]}"
        part = re.match("[早上中下午晚]{2}", first)
        last = f"{part[0]}{last}" if part and not re.match("[早上中下午晚]{2}", last) else last
        lead = "" if match["azh"] else "at "
        begin, end = (when.leading(lead + said, now).clock for said in (first, last))
        if begin and end:
            length = (end.hour - begin.hour) * 60 + end.minute - begin.minute
            length += 720 if length <= 0 else 0
            if 0 < length <= 720:
                return begin, length
    return None


def offset(text: str) -> timedelta | None:
    """How long before (negative) or after something a text says, if it does."""
    for match in _OFFSET.finditer(text):
        side = match["side"] or match["beforezh"] or match["sidezh"]
        if not side:
            continue
        half, number = match["half"] or match["halfzh"], match["n"] or match["nzh"]
        amount = 0.5 if half else float(when_words.number(number))
        amount += 0.5 if match["more"] or match["morezh"] else 0
        unit = (match["unit"] or match["unitzh"]).casefold()
        hours = 24.0 if unit[0] in "d天" else 1.0 if unit[0] in "h小钟" else 1 / 60
        before = side in ("before", "ahead", "earlier", "prior", "提前") or side[-1] == "前"
        return timedelta(hours=amount * hours * (-1 if before else 1))
    return None


def anchored(text: str) -> tuple[str, str]:
    """What a text says before a distance and after it ("stretch", "the run" of "stretch an hour
    before the run"); all of it and "" if it says none, or none of a thing that it names."""
    for match in _OFFSET.finditer(text):
        thing = re.split(r"[,;.!?]", text[match.end() :])[0].strip()
        if match["side"] in ("before", "after") and thing and not _POINTS.match(thing):
            return text[: match.start()].strip(" ,"), thing
    return text, ""


def minutes(text: str) -> list[int]:
    """Lengths of time that a text says, in minutes."""
    found = []
    for match in _LENGTH.finditer(text):
        half, number = match["half"] or match["halfzh"], match["n"] or match["nzh"]
        amount = 0.5 if half else float(when_words.number(number))
        amount += 0.5 if match["more"] or match["morezh"] else 0
        hour = (match["unit"] or match["unitzh"]).casefold().startswith(("h", "小", "钟"))
        found.append(int(amount * (60 if hour else 1)))
    return found
