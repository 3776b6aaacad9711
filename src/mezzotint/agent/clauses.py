"""The parts of a request: orders, what they hand on, and the words that they only report.

"Move the review to four and tell Ben that I'll be late" is two orders, and the second one has
words to hand on: "I'll be late". What such a span says is copied by the loop, not written by
the model. This file knows words of English and Chinese; no tool, no store, no model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mezzotint.agent.handed import HAN, MARKED_ZH, REMIND, content, names_person_before, unhanded

# Words that begin an order. Those that only look something up are apart.
_LOOKS = frozenset(
    re.findall(
        r"\w+",
        "browse check dig display fetch find get grab list look open pull read search see show",
    )
)
_ACTS = frozenset(
    re.findall(
        r"\w+",
        "add answer archive arrange ask bin block book bring bump call cancel change charge chuck"
        " clean close complete copy crank create cut decline delete dim ditch draft drop edit"
        " email enter erase extend file fill flag forward get give heat inform jot keep kill let"
        " lift lock log lower mail make mark message move nag note notify nudge open park pass"
        " pause pencil pick ping plan play pop postpone prepare push put raise record remind"
        " remove rename reply reschedule respond resume roll save schedule scrap send set share"
        " shift shoot shut skip start stick stop store switch take tell text throw tick toss trash"
        " turn unlock unmark update vacuum warm water write",
    )
)
VERBS = _LOOKS | _ACTS
_EITHER = frozenset(["open", "get"])
_POLITE = (
    r"(?:(?:please|then|also|and|or|but|now|just|so|hey|hi|ok|okay|oh|afterwards|after that|next"
    r"|finally|first|(?:could|can|would|will) (?:you|u)|ugh|quick|you (?:can|may|should)"
    r"|i(?:'d| would) like you to"
    r"|i (?:want|need) you to|go ahead and|don't forget to|remember to|be so kind and|kindly)\b"
    r"[ ,]*)*"
)
_STARTS = re.compile(rf"\s*{_POLITE}(?P<verb>[a-z]+)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SWITCHED = re.compile(r"^(?:\S+ ){1,4}(?:on|off)(?: please)?$", re.IGNORECASE)
_OPENS_ZH = "(?:你|请|麻烦|帮我|替我|给我|先|再|然后|并且|并|接着|顺便|另外|还有|同时|最后|也|就)*"
_LOOKS_ZH = re.compile(rf"\s*{_OPENS_ZH}(?:查|找|搜|看|读|念|列|翻|瞧)")
_ACTS_ZH = re.compile(
    rf"^\s*{_OPENS_ZH}(?:把|将|给|帮|提醒|记|写|发|加|新建|创建|取消|删|改|移|挪|关|开|打开|调|锁|设"
    r"|放|播|暂停|回复|转发|通知|告诉|标记|标为|归档|保存|推迟|提前|充电|打扫|拉|勾|存|抄|添加|安排|约)"
)
_DONE_ZH = re.compile(
    r"(?:关|打开|开|锁|调|改|挪|移|推迟|提前|放|拉|勾)(?:了|掉|上|下|到|成|高|低|一下)"
    r"|加(?:上|个|到|入|一)|记(?:个|到|下|一)|写(?:个|封|到|一)|发(?:个|封|给)"
)
# "Find it and delete it" in one breath.
_FOUND_ZH = re.compile(
    r"[找查搜](?:出来|到)(?:就|再|并)?(?:给?我)?(?:删|移|挪|归|标|转|回复|发|改|放)"
)
# "I've quit yoga" tells why; "it has to be moved" does not.
_STATES = re.compile(
    r"\b(?:i|we)(?:['’](?:ve|m|s|re)| have| has| had| am| was| were| is| are)\b"
    r"(?! to\b)|我.*了$",
    re.IGNORECASE,
)
_STRONG_ZH = re.compile(r"(?:再|然后|顺便|另外|并且|同时|接着|最后|还有|也)")
# A full stop ends a sentence where a space follows, and not an abbreviation.
_ENDS = re.compile(
    r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\b[ap]\.m)\.(?=\s|$)|[;!?；。！？\n]"
)
_JOINTS = re.compile(
    r",\s*(?:and\s+)?(?:then\s+)?|\s+(?:and|then)\s+(?:then\s+|also\s+)?|(?<=\w):\s+|\s+[-–—]\s+"
    r"|[，,]|(?<=[㐀-鿿])(?=然后|再(?!见|次)|顺便|并且|另外)",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"^\W*(?:please )?(?:reply|answer|respond|write|e-?mail|mail|message|text|send)\b"
    r"|回复|写信|发邮件",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:it|them|those|these|that (?:one|mail|e-?mail|message|note|file|event|address|number))\b"
    r"|\b(?:that|this)$",
    re.IGNORECASE,
)
_BACK_ZH = re.compile(
    r"[它]们?|(?:把|将)?(?:这|那)(?!周|个?月|天|里|样|么|会|几|个?星期|早|晚)[封条个份张]?(?![㐀-鿿]*?[：说])"
    rf"|^\s*{_OPENS_ZH}(?:记|写|存|抄|发|转|加|保存|放|移|归|标|转发|告诉|回复)"
    r"[㐀-鿿]{0,2}?(?:到|进|给|在|为|成|档)"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One part. looks, acts: what the order may be for; neither: it is none. back: it speaks of
    what an earlier part finds, and says no words of its own. core: the order without what is
    said around it."""

    text: str
    looks: bool = False
    acts: bool = False
    back: bool = False
    core: str = ""

    @property
    def order(self) -> bool:
        return self.looks or self.acts


Kind = tuple[bool, bool]  # whether a part is an order to look something up, and to do something


class Judge:
    """What somebody who knows the tools can say of a part. This one knows none."""

    def evident(self, part: str) -> bool:
        """Whether a part certainly speaks of something that can be done. After reported words
        ("that I'm late and bring bread") only such a part is an order of its own."""
        return True

    def kind(self, part: str) -> Kind:
        """The kind of a part that no word of an order begins."""
        return False, False

    def asked(self, part: str) -> bool:
        """Whether a part is a question."""
        return False

    def same(self, part: str, following: str) -> bool:
        """Whether such a part only says more of the next one."""
        return False


def clauses(request: str, judge: Judge | None = None) -> list[Clause]:
    """The orders of a request, each with what is said around it; or all of it as one part."""
    judge = judge or Judge()
    parts = [part.strip() for part in _split(request, judge) if part.strip(" ,，")]
    made: list[Clause] = []
    context = ""
    ordered = any(any(_worded(part)) for part in parts)
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        looks, acts = _kind(part, judge)
        if ordered and not (any(_worded(part)) or judge.asked(part)):
            looks = False  # "the phone is ringing": it only tells why
            acts = acts and not _STATES.search(part)
        if (looks or acts) and _tells(part, following, acts, judge):
            context = _joined(context, part)
        elif made and _goes_on(made[-1], part):
            made[-1] = _with(made[-1], part)
        elif looks or acts:
            made.append(Clause(_joined(context, part), looks, acts, _is_back(part), part))
            context = ""
        elif made:
            made[-1] = _with(made[-1], part)
        else:
            context = _joined(context, part)
    return made or [Clause(request, core=request)]


def _goes_on(clause: Clause, part: str) -> bool:
    """Whether a part has the words for a mail that the order before it wants written ("reply to
    Anna and tell her yes")."""
    written = _WRITES.search(clause.core) is not None and not content(clause.text)
    return written and bool(content(part)) and names_person_before(unhanded(part))


def _tells(part: str, following: str, acts: bool, judge: Judge) -> bool:
    """Whether a part that no word of an order begins only tells why, or of what, the next is."""
    if any(_worded(part)) or not any(_kind(following, judge)):
        return False
    return (acts and _is_back(following)) or judge.same(part, following)


def _split(request: str, judge: Judge) -> list[str]:
    """At sentence ends; and at commas, colons and "and", where an order follows."""
    parts: list[str] = []
    for sentence in _ENDS.split(request):
        start = 0
        for joint in _JOINTS.finditer(sentence):
            before, after = sentence[start : joint.start()], sentence[joint.end() :]
            if before.strip() and _opens(before, ":" in joint[0], after, judge):
                parts.append(before)
                start = joint.end()
        parts.append(sentence[start:])
    return parts


def _opens(before: str, colon: bool, after: str, judge: Judge) -> bool:
    """Whether what follows a joint is an order of its own."""
    if colon and any(_kind(before, judge)):
        return False  # what "note:" is followed by is its text
    head = next((after[: m.start()] for m in _JOINTS.finditer(after) if m.start()), after)
    if not any(_kind(head, judge)):
        return False
    if HAN.search(head[:2]):
        if MARKED_ZH.match(head):
            return False
        return not content(before) or bool(_STRONG_ZH.match(head)) or judge.evident(head)
    return not content(before) or judge.evident(head)


def _kind(part: str, judge: Judge) -> Kind:
    """Whether a part is an order to look something up, and whether one to do something."""
    worded = _worded(part)
    return worded if any(worded) else judge.kind(part)


def _worded(part: str) -> Kind:
    """The kind of a part by the word that begins it."""
    if HAN.search(part):
        looks = bool(_LOOKS_ZH.match(part))
        if looks and _FOUND_ZH.search(part):
            return False, True
        return looks, not looks and any(p.search(part) for p in (_ACTS_ZH, _DONE_ZH, REMIND))
    found = _STARTS.match(part)
    verb, rest = (found["verb"].lower(), found["rest"].lower()) if found else ("", "")
    if verb in ("tell", "give", "let") and re.match(r"\s*me\b", rest):
        return True, False
    if verb in _EITHER:
        return True, True
    if verb == "check" and re.search(r"\boff\b", rest):
        return False, True
    looks = verb in _LOOKS
    acts = verb in _ACTS or bool(_SWITCHED.match(part))
    return looks, acts and not looks


def _is_back(part: str) -> bool:
    if content(part):
        return False
    if _FOUND_ZH.search(part):
        return True
    return bool((_BACK_ZH if HAN.search(part) else _BACK).search(part))


def _with(clause: Clause, part: str) -> Clause:
    return replace(clause, text=_joined(clause.text, part))


def _joined(one: str, other: str) -> str:
    return f"{one}, {other}" if one and other else one or other
