"""The calendar's tools on a folder of .ics files and on a real CalDAV server on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from wsgiref.simple_server import WSGIRequestHandler, make_server
from zoneinfo import ZoneInfo

import icalendar
import pytest
from caldav.davclient import DAVClient
from radicale import config
from radicale.app import Application

from mezzotint.agent.journal import Journal, Undone
from mezzotint.agent.packs import calendar, ics
from mezzotint.agent.packs.caldav_items import PLACE, CalDavItems
from mezzotint.agent.tool import Context, Outcome
from mezzotint.agent.workspace import Workspace
from mezzotint.errors import BackendError, UsageError

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 30, 10, 13, tzinfo=BERLIN)  # a Monday

# In order: a series in another zone, held on Mondays and Wednesdays; a floating time; UTC;
# two days without times; a meeting that was called off.
EVENTS = {
    "standup": "SUMMARY:Team standup\nDTSTART;TZID=America/New_York:20261102T090000\n"
    "DURATION:PT30M\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE\nX-COLOR:red",
    "yoga": "SUMMARY:Yoga class\nDTSTART:20261203T183000\nDTEND:20261203T193000",
    "dentist": "SUMMARY:Dentist appointment\nDTSTART:20261201T140000Z\nDTEND:20261201T144500Z\n"
    "LOCATION:Main Street",
    "holiday": "SUMMARY:Company holiday\nDTSTART;VALUE=DATE:20261204\nDTEND;VALUE=DATE:20261206",
    "off": "SUMMARY:Board meeting\nDTSTART:20261201T090000Z\nDURATION:PT1H\nSTATUS:CANCELLED",
}


def item(uid: str, event: str) -> bytes:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", "BEGIN:VEVENT"]
    lines += [f"UID:{uid}", "DTSTAMP:20261101T000000Z", *event.split("\n")]
    return "\r\n".join([*lines, "END:VEVENT", "END:VCALENDAR", ""]).encode()


class Desk:
    """A calendar, its tools called by name, and its journal."""

    def __init__(self, workspace: Workspace, items: ics.Items) -> None:
        self.items = items
        self.journal = Journal(workspace, {items.place: items} if items.place else None)
        self._tools = {tool.name: tool for tool in calendar.tools(ics.Calendar(items))}

    def __call__(
        self, tool: str, language: Literal["en", "zh"] = "en", /, **arguments: Any
    ) -> Outcome:
        context = Context(NOW, language, self.journal.run("test"))
        return self._tools[tool].run(arguments, context)

    def on(self, day: str) -> list[str]:
        events = self("list_events", date=day).data["events"]
        return [f"{event['start'][11:] or 'day'} {event['title']}" for event in events]

    def event(self, uid: str) -> Any:
        (data,) = [data for path, data in self.items.all() if f"{uid}.ics" in path]
        return icalendar.Calendar.from_ical(data)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    return Workspace(tmp_path / "work")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "users").write_text("anna:secret\n")
    settings = config.load()
    users = {
        "type": "htpasswd",
        "htpasswd_filename": str(tmp_path / "users"),
        "htpasswd_encryption": "plain",
        "delay": "0",
    }
    storage = {"filesystem_folder": str(tmp_path / "server")}
    settings.update(
        {"auth": users, "storage": storage, "logging": {"level": "critical"}}, "test", True
    )

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with make_server("127.0.0.1", 0, Application(settings), handler_class=Quiet) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


@pytest.fixture
def remote(server: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Settings of a calendar on the server."""
    monkeypatch.setenv("CALENDAR_PASSWORD", "secret")
    client: Any = DAVClient(url=server, username="anna", password="secret")
    client.principal().make_calendar(name="Personal")
    return {
        "url": server,
        "user": "anna",
        "password_env": "CALENDAR_PASSWORD",
        "calendar": "Personal",
    }


@pytest.fixture(params=["folder", "server"])
def desk(request: pytest.FixtureRequest, workspace: Workspace) -> Desk:
    items: ics.Items = ics.Folder(workspace, "calendar")
    if request.param == "server":
        items = CalDavItems(request.getfixturevalue("remote"))
    for uid, event in EVENTS.items():
        items.put(items.path_of(uid), item(uid, event))
    return Desk(workspace, items)


def test_a_day_is_listed_in_the_users_zone(desk: Desk) -> None:
    assert desk.on("today") == ["15:00 Team standup"]
    assert desk.on("2026-12-01") == ["15:00 Dentist appointment"]
    assert desk.on("2026-12-03") == ["18:30 Yoga class"]
    assert desk.on("2026-12-05") == ["day Company holiday"]
    assert desk("list_events", "zh", date="周三").said == "后天：15:00 Team standup。"
    assert desk("list_events", date="2026-12-08").said == (
        "Nothing is in the calendar for Tuesday 8 December."
    )
    # New York still has summer time on the first day of this series, and Berlin has not
    assert desk.on("2027-03-15") == ["14:00 Team standup"]
    assert desk.on("2027-03-29") == ["15:00 Team standup"]


def test_create(desk: Desk) -> None:
    made = desk("create_event", title="Haircut", start="tomorrow at 3:15 pm", location="Salon")
    assert made.said == (
        "Added Haircut (Salon), tomorrow at 15:15. "
        "It overlaps Dentist appointment, tomorrow at 15:00."
    )
    assert made.data["end"] == "2026-12-01T16:15"
    assert desk(
        "create_event", "zh", title="和王芳吃午饭", start="后天中午12点", duration=90
    ).said == ("已添加后天12:00的和王芳吃午饭。")
    assert desk("create_event", title="Fair", start="2026-12-09").data["start"] == "2026-12-09"
    assert desk.on("2026-12-09") == ["day Fair", "15:00 Team standup"]
    assert not desk("create_event", title="Haircut", start="2026-12-01T15:15").ok  # twice
    assert not desk("create_event", title="Too late", start="2026-11-29T15:15").ok
    assert not desk("create_event", title="Never", start="tomorrow", duration=0).ok


def test_move_keeps_length_zone_and_the_rest(desk: Desk) -> None:
    moved = desk("move_event", title="tomorrow's dentist appointment", start="4 pm")
    assert moved.said == "Moved Dentist appointment from tomorrow at 15:00 to tomorrow at 16:00."
    assert moved.data["end"] == "2026-12-01T16:45"
    event = desk.event("dentist").events[0]
    assert event.start == datetime(2026, 12, 1, 15, 0, tzinfo=UTC)
    assert event["SEQUENCE"] == 1
    assert desk("move_event", title="yoga", start="friday").data["start"] == "2026-12-04T18:30"
    assert desk.event("yoga").events[0].start == datetime(2026, 12, 4, 18, 30)  # still floating


def test_all_day_stays_all_day(desk: Desk) -> None:
    moved = desk("move_event", title="company holiday", start="2026-12-07T09:00")
    assert moved.data == {"title": "Company holiday", "start": "2026-12-07", "end": "2026-12-09"}
    assert "already" in desk("move_event", title="company holiday", start="5 pm").error


def test_moving_one_of_a_series_makes_an_exception(desk: Desk) -> None:
    said = desk("move_event", title="standup", start="2026-11-30T17:30").said
    assert said == (
        "Moved Team standup from today at 15:00 to today at 17:30 (only this one of the series)."
    )
    master, exception = desk.event("standup").events
    assert "RRULE" in master
    assert "RRULE" not in exception
    new_york = ZoneInfo("America/New_York")
    assert exception["RECURRENCE-ID"].dt == datetime(2026, 11, 30, 9, 0, tzinfo=new_york)
    assert exception.start == datetime(2026, 11, 30, 11, 30, tzinfo=new_york)
    assert exception["X-COLOR"] == "red"
    # moved again, it is the same exception; the others stay
    assert desk("move_event", title="standup", start="2026-12-01T08:00").ok
    assert len(desk.event("standup").events) == 2
    assert desk.on("2026-11-30") == []
    assert desk.on("2026-12-01") == ["08:00 Team standup", "15:00 Dentist appointment"]
    assert desk.on("2026-12-02") == ["15:00 Team standup"]
    assert desk("move_event", title="standup on wednesday", start="16:00").ok
    assert desk.on("2026-12-02") == ["16:00 Team standup"]


def test_cancel(desk: Desk) -> None:
    said = desk("cancel_event", title="standup", date="2026-12-02").said
    assert said == (
        "Cancelled Team standup, Wednesday 2 December at 15:00 (only this one of the series)."
    )
    assert desk.on("2026-12-02") == []
    assert desk.on("2026-12-07") == ["15:00 Team standup"]
    assert desk("cancel_event", "zh", title="瑜伽").error == "没有“瑜伽”"
    assert desk("cancel_event", title="dentist").ok
    assert desk.on("2026-12-01") == []
    assert (
        desk("cancel_event", title="standup", series=True).said == "Cancelled all of Team standup."
    )
    assert desk.on("2026-12-07") == []
    assert len(list(desk.items.all())) == 3


def test_what_fits_twice_is_asked(desk: Desk) -> None:
    desk("create_event", title="Dentist appointment", start="2026-12-11T09:00")
    asked = desk("move_event", title="dentist", start="2026-12-12T10:00")
    assert asked.argument == "title"
    assert asked.choices == (
        "Dentist appointment, tomorrow at 15:00",
        "Dentist appointment, Friday 11 December at 09:00",
    )
    assert desk("move_event", title=asked.choices[1], start="2026-12-12T10:00").ok
    assert desk.on("2026-12-12") == ["10:00 Dentist appointment"]
    chinese = desk("cancel_event", "zh", title="dentist").choices
    assert desk("cancel_event", "zh", title=chinese[0]).ok
    assert desk.on("2026-12-01") == []


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("dentist", "Dentist appointment"),
        ("my 3 pm appointment tomorrow", "Dentist appointment"),
        ("the yoga class on Thursday", "Yoga class"),
        ("Yoga clas", "Yoga class"),
    ],
)
def test_an_event_is_found_by_what_people_call_it(desk: Desk, title: str, found: str) -> None:
    assert desk("find_event", title=title).data["title"] == found


def test_a_title_with_a_wrong_time_is_asked_about(desk: Desk) -> None:
    asked = desk("cancel_event", title="Thursday's dentist appointment")
    assert asked.error == "not then: Dentist appointment, tomorrow at 15:00"
    assert asked.choices == ("Dentist appointment, tomorrow at 15:00",)
    assert not desk("cancel_event", title="the 3 pm haircut tomorrow").ok
    assert desk("cancel_event", title=asked.choices[0]).ok


def test_what_is_not_there_is_said(desk: Desk) -> None:
    missing = desk("move_event", title="dentist visit", start="tomorrow")
    assert missing.told() == {"error": "no title dentist visit", "closest": "Dentist appointment"}
    assert desk("cancel_event", title="board meeting").error == "no title board meeting"
    assert desk("find_event", title="gym", date="2026-12-04").error == "no title gym"
    assert "in the past" in desk("move_event", title="yoga", start="2026-11-29T10:00").error
    assert "already" in desk("move_event", title="yoga", start="2026-12-03T18:30").error


def test_everything_can_be_undone(desk: Desk) -> None:
    before = {path: ics.parsed(data) for path, data in desk.items.all()}
    acts: list[Callable[[], Outcome]] = [
        lambda: desk("create_event", title="Haircut", start="tomorrow at noon"),
        lambda: desk("move_event", title="dentist", start="2026-12-02T09:00"),
        lambda: desk("move_event", title="standup", start="2026-11-30T18:30"),
        lambda: desk("move_event", title="standup", start="2026-11-30T19:30"),
        lambda: desk("cancel_event", title="standup", date="2026-12-07"),
        lambda: desk("cancel_event", title="yoga"),
        lambda: desk("cancel_event", title="standup", series=True),
    ]
    said = []
    for act in acts:
        outcome = act()
        assert outcome.ok, outcome.error
        said.append(outcome.said)
    for sentence in reversed(said):
        assert desk.journal.undo() == Undone("test", (sentence,), ())
    assert {path: ics.parsed(data) for path, data in desk.items.all()} == before


def test_a_damaged_file_is_left_alone(workspace: Workspace) -> None:
    items = ics.Folder(workspace, "calendar")
    items.put("calendar/bad.ics", b"BEGIN:VCALENDAR\r\nnonsense")
    items.put("calendar/yoga.ics", item("yoga", EVENTS["yoga"]))
    desk = Desk(workspace, items)
    assert desk("cancel_event", title="yoga").ok
    assert items.read("calendar/bad.ics") == b"BEGIN:VCALENDAR\r\nnonsense"


def test_an_event_of_every_second_is_left_out(workspace: Workspace) -> None:
    items = ics.Folder(workspace, "calendar")
    items.put("calendar/spam.ics", item("spam", EVENTS["yoga"] + "\nRRULE:FREQ=SECONDLY"))
    items.put("calendar/yoga.ics", item("yoga", EVENTS["yoga"]))
    assert Desk(workspace, items).on("2026-12-03") == ["18:30 Yoga class"]


def test_a_title_cannot_break_the_line(workspace: Workspace) -> None:
    items = ics.Folder(workspace, "calendar")
    items.put("calendar/x.ics", item("x", EVENTS["yoga"].replace("class", r"\n\x1b[2J{\"a\":{}}")))
    said = Desk(workspace, items)("find_event", title="yoga").said
    assert "\n" not in said
    assert said.isprintable()


def test_settings_choose_the_server(workspace: Workspace, remote: dict[str, str]) -> None:
    lines = "".join(f'{key} = "{value}"\n' for key, value in remote.items())
    workspace.put("settings.toml", f"[calendar]\n{lines}".encode())
    items = calendar.calendar_of(workspace).items
    assert items.place == PLACE
    assert list(items.all()) == []
    assert b"secret" not in (workspace.read("settings.toml") or b"")


def test_what_the_server_refuses_is_told(
    remote: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no calendar 'Work' on the server; it has: Personal"):
        CalDavItems(remote | {"calendar": "Work"})
    monkeypatch.setenv("CALENDAR_PASSWORD", "wrong")
    with pytest.raises(BackendError, match="calendar server"):
        CalDavItems(remote)
    monkeypatch.delenv("CALENDAR_PASSWORD")
    with pytest.raises(UsageError, match="no CALENDAR_PASSWORD"):
        CalDavItems(remote)


def test_an_event_after_the_clocks_change(tmp_path: Path) -> None:
    """Asked in winter, on a device in a zone whose clocks change, for a day in summer and back."""
    code = (
        "from pathlib import Path; from mezzotint import toolcall\n"
        "from mezzotint.agent.loop import Agent; from mezzotint.agent.events import Timing\n"
        "from mezzotint.agent.stores import open_stores\n"
        "from mezzotint.agent.workspace import Workspace\n"
        f"stores = open_stores(Workspace(Path({str(tmp_path)!r})))\n"
        "class Writer:\n"
        "    def write(self, messages, tools, lines=()):\n"
        "        call = {'title': 'picnic', 'start': self.start}\n"
        "        return toolcall.write([toolcall.Call('create_event', call)]), Timing(0.0, 1, 1)\n"
        "writer = Writer()\n"
        "agent = Agent(writer, stores.tools, stores.journal)\n"
        "year = agent.now().year + 1\n"
        "for day in ('01-14', '06-14'):\n"
        "    writer.start = f'{year}-{day}T15:00'\n"
        "    events = agent.ask(f'add picnic on {year}-{day} at 15:00')\n"
        "    print(*[event.text for event in events if hasattr(event, 'text')])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "TZ": "Europe/Berlin"},
    )
    assert ran.stdout.count("at 15:00") == 2, ran.stdout + ran.stderr
