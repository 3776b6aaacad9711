"""The calendar's tools. Each finds the event itself, and asks when several fit.

An event is named by its title, which may hold when it is ("tomorrow's dentist appointment");
of a series the next occurrence is meant. Sentences are composed from what the calendar holds
after the change. How events are kept is `ics`.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Annotated

from pydantic import Field

from mezzotint.agent import names, when
from mezzotint.agent.packs import ics
from mezzotint.agent.packs.ics import Calendar, Occurrence, Start
from mezzotint.agent.tool import Context, Effect, Outcome, Problem, Tool
from mezzotint.agent.when import Day, Said, When
from mezzotint.agent.workspace import Workspace

FOLDER = "calendar"

_HORIZONS = (60, 400)  # days ahead that are searched for a title, the near ones first
_ANY = ("", "appointment", "meeting", "event", "日程", "会议", "预约", "安排")  # no name
_USUAL = 60  # minutes of an event whose length is not said

Minutes = Annotated[int, Field(gt=0, le=7 * 24 * 60)]


def tools(calendar: Calendar) -> list[Tool]:
    """The tools on one calendar."""
    pack = _Pack(calendar)

    def titles(text: str) -> list[str]:
        return names.said_in(text, calendar.titles(), whole=True)

    # A server would be asked at every step.
    near = isinstance(calendar.items, ics.Folder)
    known, things = ({"title": titles}, {"title": calendar.titles}) if near else ({}, {})
    return [
        Tool.of(pack.create_event, Effect.WRITES),
        Tool.of(pack.list_events, Effect.READS),
        Tool.of(pack.find_event, Effect.READS, known=known, things=things),
        Tool.of(pack.move_event, Effect.WRITES, known=known, things=things),
        Tool.of(pack.cancel_event, Effect.WRITES, known=known, things=things),
    ]


def calendar_of(workspace: Workspace) -> Calendar:
    """The calendar that a workspace's settings name, on a server or in its folder."""
    settings = workspace.settings("calendar")
    if settings:
        from mezzotint.agent.packs.caldav_items import CalDavItems

        return Calendar(CalDavItems(settings))
    return Calendar(ics.Folder(workspace, FOLDER))


class _Pack:
    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar

    def create_event(
        self,
        title: str,
        start: Said,
        duration: Minutes = _USUAL,
        location: str = "",
        *,
        context: Context,
    ) -> Outcome:
        """Create a calendar event.

        duration: length in minutes
        """
        first, last = _span(start, duration, context)
        _not_past(first, context)
        for one in self._on(ics.day(first), context):
            if one.title == title and one.start == first:
                line = _line(one, context)
                raise Problem(context.say(f"{line}: is there already", f"日历里已经有{line}"))
        uid = self._calendar.create(context.writing(), title, first, last, location)
        made = self._again(uid, first, context)
        where = f" ({made.location})" if made.location else ""
        said = context.say(
            f"Added {made.title}{where}, {_time(made, context)}.",
            f"已添加{_time(made, context)}的{made.title}{where}。",
        )
        return Outcome(said + self._overlaps(made, context), _data(made))

    def list_events(self, date: Day, *, context: Context) -> Outcome:
        """List the calendar events of a day."""
        found = self._on(date, context)
        day = when.say_day(date, context.now, context.language)
        if not found:
            return Outcome(
                context.say(f"Nothing is in the calendar for {day}.", f"{day}没有日程。"),
                {"events": []},
            )
        lines = [_within_day(occurrence, context) for occurrence in found]
        said = context.say(
            f"{day[0].upper()}{day[1:]}: {'; '.join(lines)}.", f"{day}：{'；'.join(lines)}。"
        )
        return Outcome(said, {"events": [_data(occurrence) for occurrence in found]})

    def find_event(self, title: str, date: Day | None = None, *, context: Context) -> Outcome:
        """Tell when a calendar event is."""
        found = self._find(title, context, date)
        where = f" ({found.location})" if found.location else ""
        said = context.say(
            f"{found.title}{where} is {_time(found, context)}.",
            f"{found.title}{where}：{_time(found, context)}。",
        )
        return Outcome(said, _data(found))

    def move_event(self, title: str, start: Said, *, context: Context) -> Outcome:
        """Move a calendar event to another time."""
        old, new = self._move(title, start, context)
        self._calendar.move(context.writing(), old, new)
        moved = self._again(old.uid, new, context)
        said = context.say(
            f"Moved {moved.title} from {_time(old, context)} to {_time(moved, context)}"
            f"{_one_of(old, context)}.",
            f"已把{_time(old, context)}的{moved.title}改到{_time(moved, context)}"
            f"{_one_of(old, context)}。",
        )
        return Outcome(said + self._overlaps(moved, context), _data(moved))

    def cancel_event(
        self,
        title: str,
        date: Day | None = None,
        series: bool = False,
        *,
        context: Context,
    ) -> Outcome:
        """Cancel a calendar event.

        series: all of a repeated event
        """
        found = self._find(title, context, date)
        self._calendar.cancel(context.writing(), found, series)
        rest = "" if series else _one_of(found, context)
        whole = series and found.series
        said = context.say(
            f"Cancelled {'all of ' if whole else ''}{found.title}"
            f"{'' if whole else ', ' + _time(found, context)}{rest}.",
            f"已取消{'全部' if whole else _time(found, context) + '的'}{found.title}{rest}。",
        )
        return Outcome(said, _data(found))

    def _move(self, title: str, start: When, context: Context) -> tuple[Occurrence, Start]:
        """The occurrence that is meant, and its new start."""
        found = self._find(title, context)
        new: Start = start.day or ics.day(found.start)
        if not found.all_day:
            assert isinstance(found.start, datetime)
            clock = start.clock or found.start.time()
            new = datetime.combine(new, clock, context.now.tzinfo)
        if new == found.start:
            raise Problem(
                context.say(
                    f"{found.title} is {_time(found, context)} already",
                    f"{found.title}本来就是{_time(found, context)}",
                ),
                argument="start",
            )
        _not_past(new, context)
        return found, new

    def _find(self, title: str, context: Context, day: date | None = None) -> Occurrence:
        """The one occurrence that a title means, which may hold a day and a time of day.

        Raises Problem if none or several do, or the one that does is at another time.
        """
        said, rest = when.split(title, context.now)
        then, name = When(day or said.day, said.clock), rest if said != When() else title
        found = self._at(then, name, context) if then != When() else self._ahead(name, context)
        if not found and said != When():  # "Sunday lunch" may be what it is called
            found = [o for o in self._ahead(title, context) if names.holds(o.title, title)]
        lines = [_line(occurrence, context) for occurrence in found]
        if len(set(lines)) > 1:
            names.several(title, lines, context, "title")
        if found:
            return found[0]
        if then != When() and (others := self._ahead(name, context)):
            lines = [_line(occurrence, context) for occurrence in others]
            raise Problem(
                context.say(f"not then: {'; '.join(lines)}", f"时间不符：{'；'.join(lines)}"),
                choices=lines,
                argument="title",
            )
        names.missing(title, self._calendar.titles(), context, "title")

    def _at(self, then: When, name: str, context: Context) -> list[Occurrence]:
        """What is called `name` then; all that is then, if the name says no more than that."""
        since, count = (then.day, 1) if then.day else (context.now.date(), 7)
        near = self._calendar.between(*ics.days(since, count, context.now.tzinfo))
        near = [occurrence for occurrence in near if _is_at(occurrence, then)]
        if "".join(names.words(name)) in _ANY:
            return _next(near, context)
        return _next(names.fitting(name, near, _title), context)

    def _ahead(self, name: str, context: Context) -> list[Occurrence]:
        """What is called `name` from today on: of each event the next, the near ones first."""
        for horizon in _HORIZONS:
            span = ics.days(context.now.date(), horizon, context.now.tzinfo)
            near = self._calendar.between(*span, lambda title: names.alike(name, title))
            if found := names.fitting(name, near, _title):
                return _next(found, context)
        return []

    def _on(self, day: date, context: Context) -> list[Occurrence]:
        return self._calendar.between(*ics.days(day, 1, context.now.tzinfo))

    def _again(self, uid: str, start: Start, context: Context) -> Occurrence:
        """The occurrence as the calendar holds it now. Raises Problem if it does not."""
        for occurrence in self._on(ics.day(start), context):
            if occurrence.uid == uid and occurrence.start == start:
                return occurrence
        raise Problem(context.say("the calendar did not keep the change", "日历没有保存更改"))

    def _overlaps(self, event: Occurrence, context: Context) -> str:
        if event.all_day:
            return ""
        zone = context.now.tzinfo
        assert zone is not None
        found = self._calendar.between(ics.moment(event.start, zone), ics.moment(event.end, zone))
        others = [_line(o, context) for o in found if o.uid != event.uid and not o.all_day]
        if not others:
            return ""
        return context.say(f" It overlaps {'; '.join(others)}.", f"与{'、'.join(others)}冲突。")


def _title(occurrence: Occurrence) -> str:
    return occurrence.title


def _is_at(occurrence: Occurrence, said: When) -> bool:
    if said.day:
        last = ics.day(occurrence.end) - timedelta(days=1 if occurrence.all_day else 0)
        if not ics.day(occurrence.start) <= said.day <= max(last, ics.day(occurrence.start)):
            return False
    start = occurrence.start
    return not said.clock or (isinstance(start, datetime) and start.time() == said.clock)


def _next(found: list[Occurrence], context: Context) -> list[Occurrence]:
    """Of each event the first occurrence that is not over; what is over only if all is."""
    zone = context.now.tzinfo
    assert zone is not None
    ahead = [o for o in found if ics.moment(o.end, zone) > context.now] or found
    first: dict[str, Occurrence] = {}
    for occurrence in ahead:
        first.setdefault(occurrence.uid, occurrence)
    return list(first.values())


def _span(start: When, minutes: int, context: Context) -> tuple[Start, Start]:
    """Start and end of a new event; a day without a time is a day-long event."""
    if start.clock is None and start.day:
        return start.day, start.day + timedelta(days=1)
    moment = start.at(context.now)
    return moment, when.later(moment, timedelta(minutes=minutes))


def _not_past(start: Start, context: Context) -> None:
    past = start <= context.now if isinstance(start, datetime) else start < context.now.date()
    if past:
        day = _say(start, context)
        raise Problem(context.say(f"{day} is in the past", f"{day}已经过去了"))


def _say(value: Start, context: Context) -> str:
    if isinstance(value, datetime):
        return when.say(value, context.now, context.language)
    return when.say_day(value, context.now, context.language)


def _time(occurrence: Occurrence, context: Context) -> str:
    """When it is: "tomorrow at 16:00"; 明天16:00; with "all day" where it lasts so."""
    text = _say(occurrence.start, context)
    return text + context.say(" (all day)", "（全天）") if occurrence.all_day else text


def _line(occurrence: Occurrence, context: Context) -> str:
    """An occurrence in few words; as a title they mean this one."""
    return context.say(
        f"{occurrence.title}, {_time(occurrence, context)}",
        f"{_time(occurrence, context)}{occurrence.title}",
    )


def _within_day(occurrence: Occurrence, context: Context) -> str:
    start = occurrence.start
    clock = f"{start:%H:%M}" if isinstance(start, datetime) else context.say("all day", "全天")
    return f"{clock} {occurrence.title}"


def _one_of(occurrence: Occurrence, context: Context) -> str:
    return (
        context.say(" (only this one of the series)", "（仅这一次）") if occurrence.series else ""
    )


def _data(occurrence: Occurrence) -> dict[str, str]:
    """The event as JSON: ISO 8601 without seconds, in the user's zone."""

    def iso(value: Start) -> str:
        return f"{value:%Y-%m-%dT%H:%M}" if isinstance(value, datetime) else value.isoformat()

    data = {"title": occurrence.title, "start": iso(occurrence.start), "end": iso(occurrence.end)}
    return data | ({"location": occurrence.location} if occurrence.location else {})
