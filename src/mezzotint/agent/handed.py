"""The words that an order only hands on: what a mail should say, what to be reminded of.

"Tell Ben that I'll be late" has "I'll be late"; such a span is copied by the loop, not written by
the model. The rest of an order is what it is about. This file knows words of English and Chinese.
"""

from __future__ import annotations

import re

HAN = re.compile("[㐀-鿿]")
MARKED_ZH = re.compile(
    r"说(?![明话法过])(?:一声|一下)?|告诉[他她]们?|内容是|[补加写记]一[句条](?!提醒)"
)
_MESSAGE_ZH = re.compile("[发写回信就跟给]|告诉|通知|邮件|转告")
_NO_CLAUSE = (
    r"(?!(?:day|one|time|week|morning|evening|night|event|meeting|mail|e-?mail|message|note|file"
    r"|folder|reminder|appointment|thing|stuff|man|guy|woman|person|place|list|number|light|door"
    r"|same|is|was|on|off|to|for|in|at|up|down)\b)"
)
_TELLS = (
    r"(?:e?-?mail|write|tell|inform|let|know|message|note|say|reply|answer|respond|text|remind|draft"
    r"|send|jot|record|add|mention|drop|line|shoot|ping|word|down|put|announce|warn)"
)
_REPORTS = re.compile(
    r"\b(?:saying(?: that)?|to say(?: that)?|says?(?: that)?"
    rf"|{_TELLS}\b.*?\bthat {_NO_CLAUSE})\s*:?\s*(?P<said>.+)"
    r"|\b(?:answer|reply|respond|write|email|mail)\b[^,]*, that (?P<reply>.+)"
    r"|\b(?:tell|inform|let) (?!me\b)[\w'.-]+(?: (?-i:[A-Z])[\w'.-]+)?(?: know)? (?:that )?"
    r"(?!by\b|to\b|about\b|know\b)(?P<told>.+)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"[“\"「](?P<said>[^”\"」]+)[”\"」]")
_AFTER_COLON = re.compile(r"[:：]\s*(?P<said>.+)", re.DOTALL)
REMIND = re.compile(
    r"\b(?:remind me|reminder)\b(?P<when>.*?)\b(?:that to|to|that)\s+(?P<task>.+)|提醒我(?P<zh>.+)",
    re.IGNORECASE | re.DOTALL,
)
_MORE = re.compile(
    r"\b(?:about|regarding|concerning|mentioning|that says)\b.*?(?=\b(?:to|in|into|at|for)\b|$)"
    r"|关于[^的]+的",
    re.IGNORECASE,
)
_SEARCH = re.compile(
    r"\b(?:look (?:up|for)|find(?: out)?|search(?: for)?)\b|查找|搜索|[查找搜](?:到|一下)?",
    re.IGNORECASE,
)
_BACK_PERSON = re.compile(r"\b(?:him|her|them)\b|[他她]们?(?!们)", re.IGNORECASE)


def content(text: str) -> str:
    """The words that a part only hands on: quoted, after a colon, or reported; "" if none."""
    for pattern in (_QUOTED, _AFTER_COLON, MARKED_ZH if HAN.search(text) else _REPORTS):
        if pattern is MARKED_ZH:
            found = pattern.search(text)
            said = text[found.end() :] if found and _hands_on(text, found) else ""
        else:
            found = pattern.search(text)
            said = next((s for s in found.groupdict().values() if s), "") if found else ""
        if said := said.strip(" ，,:："):
            return _ended(said)
    return ""


def _hands_on(text: str, marked: re.Match[str]) -> bool:
    """Whether a Chinese word that words follow makes them a message: what somebody else says is
    none ("理发店说…")."""
    return marked[0][0] != "说" or _MESSAGE_ZH.search(text[: marked.start()]) is not None


def task(text: str) -> tuple[str, str]:
    """What a part asks to be reminded of, and the rest of it; both "" if it asks no such thing."""
    found = REMIND.search(text)
    if not found:
        return "", ""
    said = found["task"] or found["zh"]
    return _ended(said.strip(" ，,:：")), f"{text[: found.start()]} {found['when'] or ''}"


def subject(text: str) -> str:
    """What a part is about: without the words that it hands on, or that only say more of a
    thing ("the mail *about the trip*"), or that begin any search."""
    return _SEARCH.sub(" ", _MORE.sub(" ", unhanded(text)))


def unhanded(text: str) -> str:
    """A part without the words that it hands on."""
    handed = content(text)
    return text.replace(handed, " ") if handed else text


def searches(text: str) -> bool:
    """Whether a part is to search for something."""
    return bool(_SEARCH.search(text))


def topic(text: str) -> str:
    """What a part only says that something is about."""
    return " ".join(match[0] for match in _MORE.finditer(text))


def names_person_before(text: str) -> bool:
    """Whether a part speaks of somebody only as him, her or them."""
    return bool(_BACK_PERSON.search(text))


def _ended(said: str) -> str:
    return re.sub(r"(?:,? please|吧)?[.!。！”\"\s]*$", "", said)
