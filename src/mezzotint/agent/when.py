"""Dates and times as tools are given them: ISO from a model, or the user's own words.

`Day`, `Clock`, `Moment` and `Said` are types for a tool's arguments. Their schema is the date,
time or date-time that models write; their value is resolved against the now of the call's
context (`.now`, aware, in the user's time zone). "Friday" is the first Friday after today;
"next Friday" and 下周五 are the Friday of the next week, Monday being its first day. What is
ambiguous to a person too (12/1) is refused. This file knows no store and no tool; the words
are in `when_words`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

import tzlocal
from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from mezzotint.agent import when_words

_LONGEST = 12  # words, or Chinese characters, of a moment


@dataclass(frozen=True, slots=True)
class When:
    """A moment as far as it was said: a day, a time of day, or both."""

    day: date | None = None
    clock: time | None = None

    def at(self, now: datetime) -> datetime:
        """As a moment: a time alone is the next one that comes, a day alone its first minute."""
        moment = datetime.combine(self.day or now.date(), self.clock or time(), now.tzinfo)
        return moment + timedelta(days=1) if self.day is None and moment <= now else moment


def local_now() -> datetime:
    """Now, in the zone of this device: one with a name, which knows when clocks change."""
    return datetime.now(tzlocal.get_localzone())


def parse(text: str, now: datetime) -> When:
    """Raises ValueError for what is neither ISO 8601 nor understood."""
    when, rest = split(text, now)
    if when == When() or when_words.left(rest):
        raise ValueError(f"{text!r} is not a date or a time")
    return when


def leading(text: str, now: datetime) -> When:
    """The moment that a text begins with; an empty one if it begins with none."""
    words = re.findall(r"[㐀-鿿]|[^\s㐀-鿿]+\s*", text.lstrip())[:_LONGEST]
    for count in range(len(words), 0, -1):
        try:
            return parse("".join(words[:count]).strip(" ,.;!?，。；！？"), now)
        except ValueError:
            continue
    return When()


def split(text: str, now: datetime) -> tuple[When, str]:
    """The date and time said in a text, and the text without them.

    "tomorrow's dentist appointment" is tomorrow, and "dentist appointment".
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        day, clock, rest = when_words.find(text, now)
        return When(day, clock), rest
    if moment.tzinfo:
        moment = moment.astimezone(now.tzinfo)
    return When(moment.date(), moment.time() if ":" in text else None), ""


def later(moment: datetime, length: timedelta) -> datetime:
    """`length` of real time later, in the same zone: an hour is an hour when clocks change."""
    return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)


def say_day(day: date, now: datetime, language: str) -> str:
    """ "tomorrow", "Friday 4 December"; 明天, 12月4日周五."""
    near = when_words.NEAR[language].get((day - now.date()).days)
    if near:
        return near
    if language == "zh":
        text = f"{day.month}月{day.day}日{when_words.WEEKDAYS_ZH[day.weekday()]}"
        return text if day.year == now.year else f"{day.year}年{text}"
    month, weekday = when_words.MONTHS[day.month - 1], when_words.WEEKDAYS[day.weekday()]
    text = f"{weekday.capitalize()} {day.day} {month.capitalize()}"
    return text if day.year == now.year else f"{text} {day.year}"


def say(moment: datetime, now: datetime, language: str) -> str:
    """ "tomorrow at 16:00"; 明天16:00. In the zone of `now`."""
    local = moment.astimezone(now.tzinfo)
    day = say_day(local.date(), now, language)
    return f"{day}{local:%H:%M}" if language == "zh" else f"{day} at {local:%H:%M}"


def _said(value: Any, info: ValidationInfo) -> tuple[When, datetime]:
    now: datetime = info.context.now  # type: ignore[union-attr]
    return (value if isinstance(value, When) else parse(str(value), now)), now


def _when(value: Any, info: ValidationInfo) -> When:
    return _said(value, info)[0]


def _moment(value: Any, info: ValidationInfo) -> datetime:
    when, now = _said(value, info)
    return when.at(now)


def _day(value: Any, info: ValidationInfo) -> date:
    when, _ = _said(value, info)
    if when.day is None:
        raise ValueError(f"{value!r} names no day")
    return when.day


def _clock(value: Any, info: ValidationInfo) -> time:
    when, _ = _said(value, info)
    if when.clock is None:
        raise ValueError(f"{value!r} names no time of day")
    return when.clock


def _text(kind: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "format": kind})


Day = Annotated[date, PlainValidator(_day), _text("date")]
Clock = Annotated[time, PlainValidator(_clock), _text("time")]
Moment = Annotated[datetime, PlainValidator(_moment), _text("date-time")]
Said = Annotated[When, PlainValidator(_when), _text("date-time")]
