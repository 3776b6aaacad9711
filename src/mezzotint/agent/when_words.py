"""The words for dates and times, in English and Chinese: a small grammar of patterns.

Each pattern finds one way to say a day, a time of day, or a while from now; what it matched is
taken out of the text and the rest is left. Why not a library: dateparser 1.5 understands
neither 明天下午四点 and 二十分钟后 nor "half past four", with both languages switched on. This
file knows words; what a tool does with a moment is `when`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS_ZH = ("周一", "周二", "周三", "周四", "周五", "周六", "周日")
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
NEAR = {
    "en": {-1: "yesterday", 0: "today", 1: "tomorrow"},
    "zh": {-1: "昨天", 0: "今天", 1: "明天", 2: "后天"},
}
_AHEAD = {
    "the day after tomorrow": 2,
    "day after tomorrow": 2,
    **{word: ahead for ahead, word in NEAR["en"].items()},
    "大后天": 3,
    "后天": 2,
    "明天": 1,
    "今天": 0,
    "昨天": -1,
}
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_DIGITS = "零一二三四五六七八九"

# Hour of a part of the day that is said alone, and whether it is after noon.
_PARTS = {
    "morning": (9, False),
    "afternoon": (15, True),
    "evening": (19, True),
    "night": (20, True),
    "凌晨": (3, False),
    "早上": (8, False),
    "早晨": (8, False),
    "上午": (9, False),
    "中午": (12, True),
    "下午": (15, True),
    "傍晚": (18, True),
    "晚上": (19, True),
}
_SHORT = (  # said as one word, read as two
    (r"\b(?:tmrw|tmr|tomoz)\b", "tomorrow"),
    (r"\btonight\b", "today evening"),
    (r"\bthis (morning|afternoon|evening)\b", r"today \1"),
    (r"今晚", "今天晚上"),
    (r"明晚", "明天晚上"),
    (r"今早", "今天早上"),
    (r"明早", "明天早上"),
    (r"星期|礼拜", "周"),
    (r"周天", "周日"),
)
_H = rf"\d+|(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_ONES[1:])}))?|{'|'.join(_TEENS + _ONES)}"
_N = rf"an?|{_H}"
_NZ = r"\d+|[零一二两三四五六七八九十]+"
_DAY = "|".join(f"{name}|{name[:3]}" for name in WEEKDAYS)
_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS)
_PART = "morning|afternoon|evening|night"
_PART_ZH = "凌晨|早上|早晨|上午|中午|下午|傍晚|晚上"
_LEFT = re.compile(r"\b(?:on|at|the|for|of|in|by|from|this|next|coming|to)\b|['’]s\b|[的在于,，.]")

Found = tuple[date | None, time | None]
Rule = tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Found]]


def find(text: str, now: datetime) -> tuple[date | None, time | None, str]:
    """The day and the time of day said in `text`, and the text without them."""
    rest = text
    for short, long in _SHORT:
        rest = re.sub(short, long, rest, flags=re.IGNORECASE)
    day, clock = None, None
    for pattern, read in _RULES:
        match = pattern.search(rest)
        if not match:
            continue
        try:
            found_day, found_clock = read(match, now)
        except ValueError:  # the 31st of February, 25 o'clock
            continue
        if day and found_day:
            if read is not _weekday or day.weekday() != found_day.weekday():
                continue
            found_day = day  # "Friday 11 December" is one day
        if clock and found_clock:
            if read is not _part:
                continue
            found_clock = _within(clock, match)  # "at eight this evening" is one time
            clock = None
        day, clock = found_day or day, found_clock or clock
        rest = f"{rest[: match.start()]} {rest[match.end() :]}"
    if day is None and clock is None:
        return None, None, text
    return day, clock, " ".join(rest.split())


def left(rest: str) -> str:
    """What of a rest is more than small words."""
    return _LEFT.sub("", rest.lower()).strip()


def number(text: str) -> int:
    """A numeral, or a number below 100 in English or Chinese words."""
    text = text.lower()
    if text.isdigit():
        return int(text)
    if text in ("a", "an"):
        return 1
    if text in _TEENS:
        return 10 + _TEENS.index(text)
    if text in _ONES:
        return _ONES.index(text)
    if text.isascii():
        tens, _, ones = text.replace(" ", "-").partition("-")
        return 20 + 10 * _TENS.index(tens) + (_ONES.index(ones) if ones else 0)
    tens, ten, ones = text.replace("两", "二").rpartition("十")
    high = (_DIGITS.index(tens) if tens else 1) * 10 if ten else 0
    return high + (int("".join(str(_DIGITS.index(c)) for c in ones)) if ones else 0)


def _exact(moment: datetime) -> Found:
    return moment.date(), moment.time().replace(second=0, microsecond=0)


def _in_a_while(match: re.Match[str], now: datetime) -> Found:
    amount = 0.5 if match["half"] else number(match["n"]) + (0.5 if match["and"] else 0)
    unit = match["unit"].lower()
    minutes = amount * (60 if unit.startswith(("h", "小", "钟")) else 1)
    later = now.astimezone(UTC) + timedelta(minutes=minutes)
    return _exact(later.astimezone(now.tzinfo))


def _in_days(match: re.Match[str], now: datetime) -> Found:
    weeks = match["unit"].lower().startswith(("week", "周"))
    return now.date() + timedelta(days=number(match["n"]) * (7 if weeks else 1)), None


def _near(match: re.Match[str], now: datetime) -> Found:
    return now.date() + timedelta(days=_AHEAD[match[0].lower()]), None


def _weekday(match: re.Match[str], now: datetime) -> Found:
    name, which = match["day"].lower(), (match["which"] or "").lower()
    if name[0] == "周" or name in "一二三四五六日":
        wanted = "一二三四五六日".index(name[-1])
    else:
        wanted = next(i for i, day in enumerate(WEEKDAYS) if day.startswith(name))
    today = now.date()
    monday = today - timedelta(days=today.weekday())
    if which in ("next", "下", "下个"):
        return monday + timedelta(days=7 + wanted), None
    if which in ("last", "past"):
        return today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1), None
    if which in ("上", "上个"):
        return monday + timedelta(days=wanted - 7), None
    if which in ("本", "这", "这个"):
        return monday + timedelta(days=wanted), None
    return today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1), None


def _calendar(match: re.Match[str], now: datetime) -> Found:
    """A day of a named month: of the next year if it has passed in this one."""
    name = match["month"].lower()
    if name[0].isalpha() and name.isascii():
        month = next(i for i, full in enumerate(MONTHS, 1) if full.startswith(name))
    else:
        month = number(name)
    day, year = number(match["day"]), match["year"]
    found = date(int(year) if year else now.year, month, day)
    if not year and found < now.date():
        found = date(now.year + 1, month, day)
    return found, None


def _of_this_month(match: re.Match[str], now: datetime) -> Found:
    """The 5th, 5号: of the next month if it has passed in this one."""
    day = number(match["day"])
    found = now.date().replace(day=day)
    if found < now.date():
        found = (found.replace(day=1) + timedelta(days=32)).replace(day=day)
    return found, None


def _iso(match: re.Match[str], now: datetime) -> Found:
    return date.fromisoformat(match[0]), None


def _clock(match: re.Match[str], now: datetime) -> Found:
    groups = match.groupdict()
    hour, minute = number(groups["h"]), _minute(groups.get("m"))
    part = (groups.get("part") or groups.get("part2") or "").lower()
    half = (groups.get("half") or "").lower().replace(".", "")
    to = (groups.get("to") or "").lower()
    late = half == "pm" or (part in _PARTS and _PARTS[part][1])
    early = half == "am" or (part in _PARTS and not late)
    if part in ("night", "晚上") and hour == 12:
        raise ValueError("of which day, people differ")
    if late and hour < 12 and not (part == "中午" and hour > 10):
        hour += 12
    elif early and hour == 12:
        hour = 0
    elif not late and not early and groups.get("guess", ":") != ":" and 1 <= hour <= 6:
        hour += 12  # "at 4" without more is the afternoon
    moment = datetime.combine(now.date(), time(hour))
    moment += timedelta(minutes=-minute if to == "to" else minute)
    return None, moment.time()


def _minute(text: str | None) -> int:
    if not text:
        return 0
    said = text.lower().strip().rstrip("分")
    return {"half": 30, "半": 30, "quarter": 15, "一刻": 15, "三刻": 45}.get(said) or number(said)


def _named(match: re.Match[str], now: datetime) -> Found:
    return None, time(12 if match[1].lower() in ("noon", "正午") else 0)


def _part(match: re.Match[str], now: datetime) -> Found:
    return None, time(_PARTS[match["part"].lower()][0])


def _within(clock: time, match: re.Match[str]) -> time:
    """A time of day, in the half of the day that a part of it is in."""
    late = _PARTS[match["part"].lower()][1]
    return clock.replace(hour=clock.hour + 12) if late and 0 < clock.hour < 12 else clock


_HALF = r"(?P<half>[ap]\.?m\b\.?)"
_RULES: tuple[Rule, ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (
            rf"\bin (?:(?P<half>half an)|(?P<n>{_N})) (?P<unit>min(?:ute)?s?|h(?:ou)?rs?)\b"
            r"(?P<and> and a half)?",
            _in_a_while,
        ),
        (
            rf"(?:(?P<half>半)个?|(?P<n>{_NZ})个?(?P<and>半)?)(?P<unit>分钟|小时|钟头)(?:以|之)?后",
            _in_a_while,
        ),
        (rf"\bin (?P<n>{_N}) (?P<unit>days?|weeks?)\b", _in_days),
        (rf"(?P<n>{_NZ})个?(?P<unit>天|周)(?:以|之)?后", _in_days),
        (r"\b\d{4}-\d\d-\d\d\b", _iso),
        (rf"\b(?:{'|'.join(w for w in _AHEAD if w.isascii())})\b", _near),
        ("|".join(w for w in _AHEAD if not w.isascii()), _near),
        (
            rf"\b(?P<month>{_MONTH})\.? (?P<day>\d+)(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}})\b)?",
            _calendar,
        ),
        (
            rf"\b(?P<day>\d+)(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})\b"
            r"(?:,? (?P<year>\d{4})\b)?",
            _calendar,
        ),
        (rf"(?:(?P<year>\d{{4}})年)?(?P<month>{_NZ})月(?P<day>{_NZ})[日号]", _calendar),
        (r"\bthe (?P<day>\d+)(?:st|nd|rd|th)\b", _of_this_month),
        (rf"(?P<day>{_NZ})号", _of_this_month),
        (rf"\b(?:(?P<which>next|this|coming|last|past) )?(?P<day>{_DAY})\b", _weekday),
        (r"(?P<which>下个?|上个?|本|这个?)?(?P<day>周[一二三四五六日])", _weekday),
        (r"\b(noon|midnight)\b|(正午|午夜)", _named),
        (
            rf"\b(?P<m>half|quarter|{_H}) (?P<to>past|to) (?P<h>{_H})\b(?: (?:in the|at) "
            rf"(?P<part>{_PART})\b)?(?: ?{_HALF})?(?P<guess>)",
            _clock,
        ),
        (
            rf"(?:\b(?P<part>{_PART}) )?(?:\bat )?\b(?P<h>\d\d?|{_H})(?:[:.](?P<m>\d\d))? ?{_HALF}",
            _clock,
        ),
        (
            rf"(?:\b(?P<part>{_PART}) (?:at )?)?\b(?P<h>\d\d?):(?P<m>\d\d)(?::\d\d)?\b"
            rf"(?: (?:in the|at) (?P<part2>{_PART})\b)?",
            _clock,
        ),
        (
            rf"(?P<part>{_PART_ZH})?的?(?P<h>{_NZ})(?P<guess>点钟?|:(?=\d\d))"
            rf"(?P<m>半|一刻|三刻|(?:{_NZ})分?)?整?",
            _clock,
        ),
        (rf"\b(?P<h>{_H}) (?:o['’]clock )?(?:in the|at) (?P<part>{_PART})\b", _clock),
        (rf"\b(?P<part>{_PART}) at (?P<h>{_H})\b", _clock),
        (rf"\b(?P<h>{_H}) o['’]clock\b(?P<guess>)", _clock),
        (rf"\bat (?P<h>{_H})(?P<guess>)(?=$|\s)", _clock),
        (rf"(?:\bin the )?\b(?P<part>{_PART})\b", _part),
        (rf"(?P<part>{_PART_ZH})", _part),
    )
)
