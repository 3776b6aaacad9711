"""What a plain order names: the words that are left when all others are accounted for.

"Put dinner with Anna in my calendar for Friday" has the word for the deed, a day, and where it
is to stand; what is left is one run of words, the title. A small model copies such a run worse than
this file finds it. An order with more in it than one run ("I can't make it, so …") is not plain:
there is nothing here for it, and the model reads it. This file knows words of English and
Chinese, no tool and no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from mezzotint.agent import when
from mezzotint.agent.clauses import VERBS
from mezzotint.agent.handed import HAN, content
from mezzotint.agent.lengths import SPAN

# Words for where things are kept, which are no part of their names.
_KINDS = (
    "calendar diary agenda schedule event entry reminder task todo to-do list note notes file"
    " document folder directory contact contacts mail email e-mail message inbox mailbox scene"
)
_BEFORE = (
    "please pls can could would will you i i'd id want need like to the a an my our me for about of"
    " called named titled new up down off on out back in into away from that this hey hi ok okay"
    " just now also then and go ahead regarding some music by"
)
_AFTER = (
    "please pls thanks now again for to at on in into from by as it me my the our a an up down off"
    " out back away over this too then"
)
# Words that begin another thought: a run with one of them is no name.
_OTHER = (
    "i i'm i've you he she it we they me him us them her his their is are was were be been has have"
    " had will would can can't could should must please because so but if when where which who that"
    " this there then not don't doesn't isn't instead and to into as at in on from by"
)


def _any(words: str) -> str:
    return "|".join(words.split())


_QUESTION = re.compile(
    r"(?:what time|what day|when|what|where)(?:'s| is| are| was)?\b", re.IGNORECASE
)
_LEAD = re.compile(
    rf"(?:(?:with the (?:name|title)|{_any(_BEFORE)}|{_any(_KINDS)})\b[ ,:]*)*", re.IGNORECASE
)
_TRAIL = re.compile(
    rf"(?:[ ,]*\b(?:(?:at )?(?:the )?same (?:time|hour)|thank you|{_any(_AFTER)}|{_any(_KINDS)})"
    r"(?: of mine)?)*[ ,.!?]*$",
    re.IGNORECASE,
)
_THOUGHT = re.compile(rf"[,;:.!?()]|\b(?:{_any(_OTHER)})\b", re.IGNORECASE)
# "The recipe file in Downloads can be deleted", "my lunch with Ben has to be moved".
_PASSIVE = re.compile(
    r"(?P<named>(?:the|my|our)\b[^,;:.!?]*?)(?: (?:in|from|on) [\w ]+?)?"
    r" (?:can|could|should|must|may|has to|have to|needs to|need to) (?:be \w+ed|go)\b",
    re.IGNORECASE,
)
_BRIEF = 6  # words of what is stated
_LEAD_ZH = re.compile(
    r"(?:请|麻烦|帮我|替我|给我|你|把|将|给|在|到|(?:我的?)?(?:日历|日程|提醒|笔记|文件夹?)[里上中]?|新的?"
    r"|(?:加|添加|新建|创建|安排|新增|建立?|设|取消掉?|删除?掉?|移动|推迟|提前|找|查|搜索?|打开|看|读"
    r"|列出|放|播放)(?:一下|一[个条份首]|[个条份上下到入首])?|一?[个条份场次]|名为|叫做?|关于|的|[，,\s])+"
)
_TRAIL_ZH = re.compile(
    r"(?:[，,\s]|改到|改成|改为|改期到?|改|可以|能|推迟到?|提前到?|[挪移]到?|取消掉?|删[掉除]?|勾掉|去掉|标为完成|完成了?"
    r"|[加放记写添排](?:到|进|在|入)?(?:我的?)?(?:日历|日程)[里上中]?|[这那]?[条个份]|的?(?:提醒|文件夹?|笔记|日程)"
    r"|到|吧|了|一下|在哪[里儿]?|是?什么时候|几点|[。！？!?])+$"
)
_THOUGHT_ZH = re.compile("[，,。；;：:！!？?“”]|我|你|他|她|它|已经|不|就|再|还|可以|那|这|把|到")


def named(text: str, values: Iterable[object], now: datetime) -> str:
    """The one run of words that a plain order names; "" if it has none or more in it. values:
    what is known of it already."""
    left = text.replace(content(text) or "\0", " ")
    for value in values:
        if isinstance(value, str) and value:
            left = re.sub(rf"{re.escape(value)}(?:'s)?", " ", left, flags=re.IGNORECASE)
    left = SPAN.sub(" ", left)
    for _ in range(3):
        left = when.split(left, now)[1]
    left = " ".join(left.split())
    return _chinese(left) if HAN.search(left) else _english(left)


def stated(text: str, now: datetime) -> str:
    """What a text says that is to be noted: "dinner with Anna on Friday, put that in"."""
    left = text.strip(" ,，")
    for _ in range(3):
        left = when.split(left, now)[1]
    left = " ".join(left.split()).strip(" ,，.。")
    if HAN.search(left):
        return "" if _THOUGHT_ZH.search(left) else left
    left = _TRAIL.sub("", left[_LEAD.match(left).end() :])  # type: ignore[union-attr]
    return "" if _THOUGHT.search(left) or len(left.split()) > _BRIEF else left


def _english(left: str) -> str:
    if passive := _PASSIVE.match(left):
        run = _TRAIL.sub("", passive["named"][_LEAD.match(passive["named"]).end() :])  # type: ignore[union-attr]
        return "" if _THOUGHT.search(run) else run
    rest = left[_LEAD.match(left).end() :]  # type: ignore[union-attr]
    verb, _, after = rest.partition(" ")
    if asked := _QUESTION.match(left):
        after = left[asked.end() :].lstrip()
    elif verb.casefold() not in VERBS:
        return ""
    after = after[_LEAD.match(after).end() :]  # type: ignore[union-attr]
    run = _TRAIL.sub("", after)
    return "" if _THOUGHT.search(run) else run


def _chinese(left: str) -> str:
    lead = _LEAD_ZH.match(left)
    rest = left[lead.end() :] if lead else left
    run = _TRAIL_ZH.sub("", rest)
    if (not lead and run == rest) or _THOUGHT_ZH.search(run):
        return ""
    return run
