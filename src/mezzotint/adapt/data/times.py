"""Dates, times and lengths as people say them, in English and Chinese, with their values.

Every function returns a `Said` whose value is what a tool wants: ISO 8601 for dates and
times, minutes or seconds for lengths. "Friday" is the first Friday after today; 下周五 is
the Friday of the next week, Monday being its first day.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [
    *["January", "February", "March", "April", "May", "June", "July"],
    *["August", "September", "October", "November", "December"],
]
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_DIGITS = "零一二三四五六七八九"


class Said(NamedTuple):
    """What is said with its preposition, and without; and what it means."""

    text: str
    bare: str
    value: Any


def number(n: int, language: str, rng: Random, counting: bool = False) -> str:
    """A number below 100 as a numeral or in words. counting: 两 for 2, as before a measure."""
    if rng.random() < (0.75 if language == "en" else 0.6) or not 0 < n < 100:
        return str(n)
    if language == "en":
        return english(n)
    return "两" if counting and n == 2 else chinese(n)


def english(n: int) -> str:
    """0 ≤ n < 100 in English words."""
    if n < 20:
        return _SMALL[n]
    tens, ones = divmod(n, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


def chinese(n: int) -> str:
    """0 ≤ n < 100 in Chinese characters."""
    tens, ones = divmod(n, 10)
    if not tens:
        return _DIGITS[ones]
    return (_DIGITS[tens] if tens > 1 else "") + "十" + (_DIGITS[ones] if ones else "")


def date(language: str, rng: Random, now: datetime) -> Said:
    ahead, text, bare = (_date_zh if language == "zh" else _date_en)(rng, now)
    return Said(text, bare, f"{now + timedelta(days=ahead):%Y-%m-%d}")


def _date_en(rng: Random, now: datetime) -> tuple[int, str, str]:
    form = rng.choice(["day", "day", "week", "week", "week", "in", "calendar", "calendar"])
    if form == "day":
        ahead = rng.choice([0, 1, 1, 2])
        text = ["today", "tomorrow", "the day after tomorrow"][ahead]
        return ahead, text, text
    if form == "in":
        ahead = rng.choice([2, 3, 4, 5, 6, 7])
        text = "in a week" if ahead == 7 else f"in {number(ahead, 'en', rng)} days"
        return ahead, text, text
    ahead = rng.randint(1, 6 if form == "week" else 60)
    day = now + timedelta(days=ahead)
    if form == "week":
        bare = DAYS[day.weekday()]
        return ahead, f"{rng.choice(['on', 'on', 'this'])} {bare}", bare
    month = MONTHS[day.month - 1]
    forms = [
        f"{month} {day.day}",
        f"{month} {ordinal(day.day)}",
        f"the {ordinal(day.day)} of {month}",
    ]
    bare = rng.choice(forms)
    return ahead, f"on {bare}", bare


def ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _date_zh(rng: Random, now: datetime) -> tuple[int, str, str]:
    form = rng.choice(["day", "day", "week", "week", "next", "in", "calendar"])
    if form == "day":
        ahead = rng.choice([0, 1, 1, 2])
        text = ["今天", "明天", "后天"][ahead]
    elif form == "in":
        ahead = rng.randint(2, 7)
        text = f"{number(ahead, 'zh', rng, counting=True)}天后"
    elif form == "next":
        ahead = 7 - now.weekday() + rng.randint(0, 6)
        text = f"下{rng.choice(['周', '星期'])}{_weekday_zh(now, ahead)}"
    else:
        ahead = rng.randint(1, 6 if form == "week" else 60)
        day = now + timedelta(days=ahead)
        text = (
            f"{rng.choice(['周', '星期'])}{_weekday_zh(now, ahead)}"
            if form == "week"
            else f"{day.month}月{day.day}{rng.choice('号日')}"
        )
    return ahead, text, text


def _weekday_zh(now: datetime, ahead: int) -> str:
    return "一二三四五六日"[(now.weekday() + ahead) % 7]


def time(language: str, rng: Random) -> Said:
    hour = rng.randint(6, 22)
    minute = rng.choice([0, 0, 0, 15, 30, 30, 45, rng.randrange(0, 60, 5)])
    bare = (_time_zh if language == "zh" else _time_en)(hour, minute, rng)
    return Said(bare if language == "zh" else f"at {bare}", bare, f"{hour:02}:{minute:02}")


def _time_en(hour: int, minute: int, rng: Random) -> str:
    if (hour, minute) == (12, 0):
        return "noon"
    form = rng.random()
    if form < 0.15:
        return f"{hour}:{minute:02}" if hour > 12 else f"{hour:02}:{minute:02}"
    half = "am" if hour < 12 else "pm"
    clock = f"{(hour - 1) % 12 + 1}" + (f":{minute:02}" if minute else "")
    if form < 0.3:
        part = "morning" if hour < 12 else "afternoon" if hour < 18 else "evening"
        return f"{clock} in the {part}"
    return f"{clock}{rng.choice([' ', ''])}{half}"


def _time_zh(hour: int, minute: int, rng: Random) -> str:
    if rng.random() < 0.15:
        return f"{hour:02}:{minute:02}"
    part = "早上" if hour < 9 else "上午" if hour < 12 else "中午" if hour == 12 else "下午"
    part = "晚上" if hour >= 18 else part
    clock = (hour - 1) % 12 + 1
    words = rng.random() < 0.4
    spoken = ("两" if clock == 2 else chinese(clock)) if words else str(clock)
    if minute == 30 and rng.random() < 0.7:
        return f"{part}{spoken}点半"
    tail = ("零" if minute < 10 else "") + chinese(minute) if words else f"{minute:02}"
    tail = f"{tail}分" if minute else ""
    return f"{part}{spoken}点{tail}"


def moment(language: str, rng: Random, now: datetime) -> Said:
    """A date with a time, or a little while from now."""
    if rng.random() < 0.15:
        minutes, bare = _length(language, rng, [10, 15, 20, 30, 45, 60, 120, 180])
        text = f"{bare}后" if language == "zh" else f"in {bare}"
        return Said(text, text, f"{now + timedelta(minutes=minutes):%Y-%m-%dT%H:%M}")
    day, clock = date(language, rng, now), time(language, rng)
    if day.value == f"{now:%Y-%m-%d}" and clock.value <= f"{now:%H:%M}":
        return moment(language, rng, now)
    value = f"{day.value}T{clock.value}"
    if language == "zh":
        return Said(day.bare + clock.bare, day.bare + clock.bare, value)
    if rng.random() < 0.5 and not day.bare.startswith("in "):
        return Said(f"{clock.text} {day.text}", f"{clock.bare} {day.text}", value)
    return Said(f"{day.text} {clock.text}", f"{day.bare} {clock.text}", value)


def minutes(language: str, rng: Random) -> Said:
    """A length whose value is in whole minutes."""
    choices = [
        1,
        2,
        3,
        5,
        8,
        10,
        12,
        15,
        20,
        25,
        30,
        40,
        45,
        50,
        60,
        90,
        120,
        180,
        rng.randint(2, 59),
    ]
    value, text = _length(language, rng, choices)
    return Said(text, text, value)


def _length(language: str, rng: Random, choices: list[int]) -> tuple[int, str]:
    n = rng.choice(choices)
    zh = language == "zh"
    special = {30: "半小时", 60: "一小时", 90: "一个半小时", 120: "两小时", 180: "三小时"}
    said = {30: "half an hour", 60: "an hour", 90: "an hour and a half"}
    said |= {120: "two hours", 180: "three hours"}
    if n >= 60 or (n == 30 and rng.random() < 0.4):
        return n, (special if zh else said)[n]
    count = number(n, language, rng, counting=True)
    return n, f"{count}分钟" if zh else f"{count} minute{'' if n == 1 else 's'}"


def seconds(language: str, rng: Random, limits: tuple[int, int]) -> Said:
    """A place in a recording, or a short length, whose value is in whole seconds."""
    low, high = limits
    n = rng.randint(low, rng.choice([min(59, high), high]))
    whole, rest = divmod(n, 60)
    if whole:
        spoken = f"{whole}分{rest:02}秒" if language == "zh" and rest else f"{whole}:{rest:02}"
        return Said(spoken, spoken, n)
    spoken = f"{n}秒" if language == "zh" else f"{n} second{'' if n == 1 else 's'}"
    return Said(spoken, spoken, n)
