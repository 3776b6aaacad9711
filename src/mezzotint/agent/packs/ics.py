"""Events in iCalendar data: what occurs when, and edits of one event or one occurrence.

A calendar is items of .ics text under names: a folder, or a server's collection. Recurrence is
recurring-ical-events', parsing icalendar's; here is what RFC 5545 leaves to a client: one
occurrence is moved by an exception (RECURRENCE-ID) and cancelled by EXDATE, an event keeps its
zone, its length and whether it lasts all day. An item that cannot be parsed is left alone and
out. This file knows no requests and no languages.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Protocol

import icalendar
import recurring_ical_events

from mezzotint.agent.journal import Place, Run
from mezzotint.agent.packs.texts import clean
from mezzotint.agent.when import later
from mezzotint.agent.workspace import Workspace

Start = date | datetime
_REPEATS = ("RRULE", "RDATE", "EXDATE", "EXRULE")


class Items(Place, Protocol):
    """Where a calendar's items are. place: their name in the journal, "" for the workspace."""

    place: str

    def all(self) -> Iterable[tuple[str, bytes]]: ...

    def path_of(self, uid: str) -> str: ...

    def close(self) -> None: ...


class Folder:
    """Items as the .ics files of a folder of the workspace."""

    place = ""

    def __init__(self, workspace: Workspace, folder: str) -> None:
        self._workspace, self._folder = workspace, folder
        self.read, self.put = workspace.read, workspace.put

    def close(self) -> None:
        """A folder holds nothing open."""

    def all(self) -> Iterator[tuple[str, bytes]]:
        for path in self._workspace.files(self._folder):
            if path.endswith(".ics"):
                yield path, self.read(path) or b""

    def path_of(self, uid: str) -> str:
        return f"{self._folder}/{uid}.ics"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One time that an event happens.

    start, end: dates for all day (end is the day after the last), else in the user's zone.
    original: the start that the rule of its series gives, in the event's own zone.
    """

    path: str
    uid: str
    title: str
    start: Start
    end: Start
    location: str
    original: Start
    series: bool

    @property
    def all_day(self) -> bool:
        return not isinstance(self.start, datetime)


class Calendar:
    """The events of some items."""

    def __init__(self, items: Items) -> None:
        self.items = items

    def between(
        self, start: datetime, end: datetime, titled: Callable[[str], bool] = bool
    ) -> list[Occurrence]:
        """What happens at some time from `start` to `end`, aware in the user's zone, by start.

        titled: which titles matter. Working out when a series happens is slow.
        """
        zone = start.tzinfo
        assert zone is not None
        found = [
            occurrence
            for path, calendar in self._calendars()
            if any(map(titled, _titles(calendar)))
            for occurrence in _occurrences(path, calendar, start, end)
        ]
        return sorted(found, key=lambda o: (moment(o.start, zone), o.title))

    def titles(self) -> list[str]:
        """What events are called, past ones too."""
        return [title for _, calendar in self._calendars() for title in _titles(calendar)]

    def create(self, run: Run, title: str, start: Start, end: Start, location: str) -> str:
        """Add an event; its uid."""
        uid = str(uuid.uuid4())
        event = icalendar.Event.new(
            uid=uid, summary=title, start=start, end=end, location=location or None
        )
        run.write(self.items.path_of(uid), text_of(event), self.items.place)
        return uid

    def move(self, run: Run, occurrence: Occurrence, start: Start) -> None:
        """Let an occurrence begin at `start`, a date if it lasts all day."""
        calendar = self._calendar(occurrence.path)
        event = _exception(calendar, occurrence)
        if event is None:
            event = _master(calendar, occurrence.uid)
            if occurrence.series:
                event = _as_exception(event, occurrence.original)
                calendar.add_component(event)
        _set_times(event, occurrence, start)
        _touch(event)
        self._write(run, occurrence.path, calendar)

    def cancel(self, run: Run, occurrence: Occurrence, whole_series: bool = False) -> None:
        """Remove an occurrence; of a series only that one, unless the whole is meant."""
        calendar = self._calendar(occurrence.path)
        exception = _exception(calendar, occurrence)
        gone = [exception] if exception is not None else []
        if not occurrence.series or whole_series:
            gone = [event for event in calendar.events if str(event.get("UID")) == occurrence.uid]
        else:
            master = _master(calendar, occurrence.uid)
            master.add("exdate", occurrence.original)
            _touch(master)
        calendar.subcomponents = [c for c in calendar.subcomponents if not _among(c, gone)]
        if calendar.events:
            self._write(run, occurrence.path, calendar)
        else:
            run.delete(occurrence.path, self.items.place)

    def _calendar(self, path: str) -> icalendar.Calendar:
        calendar = parsed(self.items.read(path))
        if calendar is None:
            raise ValueError(f"{path} is not there any more")
        return calendar

    def _calendars(self) -> Iterator[tuple[str, icalendar.Calendar]]:
        for path, data in self.items.all():
            calendar = _read_only(data)
            if calendar is not None:
                yield path, calendar

    def _write(self, run: Run, path: str, calendar: icalendar.Calendar) -> None:
        run.write(path, calendar.to_ical(), self.items.place)


def moment(value: Start, zone: tzinfo) -> datetime:
    """A start as a moment in `zone`: a date is its midnight, a floating time is local."""
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return value.replace(tzinfo=zone) if value.tzinfo is None else value.astimezone(zone)


def day(value: Start) -> date:
    return value.date() if isinstance(value, datetime) else value


def parsed(data: bytes | None) -> icalendar.Calendar | None:
    """A calendar from its text; None for what is none."""
    try:
        calendar = icalendar.Calendar.from_ical(data or b"")
    except (ValueError, IndexError):
        return None
    return calendar if isinstance(calendar, icalendar.Calendar) else None


def _titles(calendar: icalendar.Calendar) -> list[str]:
    return [clean(str(event.get("SUMMARY", ""))) for event in calendar.events]


def _occurrences(
    path: str, calendar: icalendar.Calendar, start: datetime, end: datetime
) -> Iterator[Occurrence]:
    series = {str(e.get("UID")) for e in calendar.events if any(name in e for name in _REPEATS[:2])}
    found: Any = recurring_ical_events.of(calendar, skip_bad_series=True).between(start, end)
    for event in found:
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            continue
        uid = str(event.get("UID", ""))
        yield Occurrence(
            path=path,
            uid=uid,
            title=clean(str(event.get("SUMMARY", ""))),
            start=_local(event.start, start.tzinfo),
            end=_local(event.end, start.tzinfo),
            location=clean(str(event.get("LOCATION", ""))),
            original=event["RECURRENCE-ID"].dt,
            series=uid in series,
        )


@lru_cache(maxsize=4096)
def _read_only(data: bytes) -> icalendar.Calendar | None:
    """`parsed`, once for one text: the parser is slow. Not to be edited.

    Without events that repeat every minute or second: no life has them, and one that came by
    mail would keep the agent counting for hours.
    """
    calendar = parsed(data)
    if calendar is not None:
        calendar.subcomponents = [c for c in calendar.subcomponents if not _ceaseless(c)]
    return calendar


def _ceaseless(component: Any) -> bool:
    rules = component.get("RRULE", [])
    rules = rules if isinstance(rules, list) else [rules]
    return any(set(rule.get("FREQ", ())) & {"SECONDLY", "MINUTELY"} for rule in rules)


def text_of(component: Any) -> bytes:
    """An item of one new event or to-do, with the rules of its time zone."""
    calendar = icalendar.Calendar.new(prodid="-//Mezzotint//EN")
    calendar.add_component(component)
    year = component["DTSTART"].dt.year
    calendar.add_missing_timezones(date(year - 1, 1, 1), date(year + 20, 1, 1))
    text: bytes = calendar.to_ical()
    return text


def next_todo(todo: Any, after: datetime) -> datetime | None:
    """When a repeated to-do begins next after `after`, in that zone; None if it does not."""
    zone = after.tzinfo
    assert zone is not None
    calendar = icalendar.Calendar()
    calendar.add_component(todo)
    query: Any = recurring_ical_events.of(calendar, components=["VTODO"])
    found = query.between(after, after + timedelta(days=62))  # longer than any month
    starts = sorted(moment(one["DTSTART"].dt, zone) for one in found)
    return next((start for start in starts if start > after), None)


def _local(value: Start, zone: tzinfo | None) -> Start:
    assert zone is not None
    return moment(value, zone) if isinstance(value, datetime) else value


def _master(calendar: icalendar.Calendar, uid: str) -> Any:
    for event in calendar.events:
        if str(event.get("UID")) == uid and "RECURRENCE-ID" not in event:
            return event
    raise ValueError(f"no event {uid} in its item any more")


def _exception(calendar: icalendar.Calendar, occurrence: Occurrence) -> Any:
    """The component that already holds this occurrence apart from its series, or None."""
    event: Any
    for event in calendar.events:
        if (
            str(event.get("UID")) == occurrence.uid
            and "RECURRENCE-ID" in event
            and event["RECURRENCE-ID"].dt == occurrence.original
        ):
            return event
    return None


def _as_exception(master: Any, original: Start) -> Any:
    event = copy.deepcopy(master)
    for name in _REPEATS:
        event.pop(name, None)
    event.add("recurrence-id", original)
    return event


def _set_times(event: Any, occurrence: Occurrence, start: Start) -> None:
    """Begin at `start`, in the zone and for the length that the event had."""
    own = event["DTSTART"].dt
    end: Start
    if isinstance(start, datetime) and isinstance(occurrence.start, datetime):
        assert isinstance(occurrence.end, datetime)
        length = occurrence.end.astimezone(UTC) - occurrence.start.astimezone(UTC)
        end = _in_zone(later(start, length), own)
        start = _in_zone(start, own)
    else:
        end = start + (day(occurrence.end) - day(occurrence.start))
    _set(event, "dtstart", start)
    if "DURATION" not in event:
        _set(event, "dtend", end)


def _in_zone(value: datetime, own: Start) -> datetime:
    zone = own.tzinfo if isinstance(own, datetime) else None
    return value.astimezone(zone) if zone else value.replace(tzinfo=None)


def _touch(event: Any) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    _set(event, "sequence", int(event.get("SEQUENCE", 0)) + 1)
    _set(event, "dtstamp", now)
    _set(event, "last-modified", now)


def _set(event: Any, name: str, value: Any) -> None:
    event.pop(name, None)
    event.add(name, value)


def _among(component: Any, others: list[Any]) -> bool:
    """By identity: components compare equal by content."""
    return any(component is other for other in others)


def days(start: date, count: int, zone: tzinfo | None) -> tuple[datetime, datetime]:
    """From the first minute of a day to the first minute `count` days later."""
    first = datetime.combine(start, time(), zone)
    return first, datetime.combine(start + timedelta(days=count), time(), zone)
