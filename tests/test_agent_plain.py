"""What a request decides by itself: names, options, moments, what nobody spoke of."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from mezzotint.agent import plain
from mezzotint.agent.choose import Chooser
from mezzotint.agent.demo import fill
from mezzotint.agent.ground import Moments
from mezzotint.agent.lengths import anchored, lasting, offset
from mezzotint.agent.stores import Stores, open_stores
from mezzotint.agent.tool import Context, language_of
from mezzotint.agent.turn import Turn
from mezzotint.agent.unsaid import options
from mezzotint.agent.wants import wants
from mezzotint.agent.workspace import Workspace

NOW = datetime(2026, 11, 30, 9, 0).astimezone()  # a Monday


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    fill(Workspace(tmp_path), NOW)
    return open_stores(Workspace(tmp_path))


def decided(stores: Stores, request: str) -> list[tuple[str, dict[str, Any], list[str]]]:
    """Of each line of the first plan: the tool, its arguments that are decided, and the others."""
    turn = Turn.of(request, Chooser.of(stores.tools), Context(NOW, language_of(request)))
    found = []
    for line in turn.lines():
        (tool,) = line
        schemas = tool.parameters["properties"]
        held = {n: s["enum"][0] for n, s in schemas.items() if len(s.get("enum", ())) == 1}
        found.append((tool.name, held, [name for name in schemas if name not in held]))
    return found


NAMED = [
    ("Put dinner with Anna in my calendar for Friday at 7 pm", "dinner with Anna"),
    ("Cancel my appointment with the hairdresser", "appointment with the hairdresser"),
    ("Can you push the dentist back to half past four tomorrow?", "dentist"),
    ("Make a folder called Insurance", "Insurance"),
    ("Search my notes for the wifi password", "wifi password"),
    ("my lunch with Ben has to be moved", "lunch with Ben"),
    ("The recipe file in Downloads can be deleted", "recipe"),
    ("Move the haircut to Thursday, same hour", "haircut"),
    ("帮我在日历里加个跟李明的晚饭", "跟李明的晚饭"),
    ("把和客户开会改到下午五点", "和客户开会"),
    # There is more in these than a name.
    ("I can't make my piano lesson on Friday, please cancel it", ""),
    ("Save her in my contacts", ""),
    ("Lunch was great", ""),
    ("Move resume.txt to Work and lock the door", ""),
    ("电费我已经交完了", ""),
]


@pytest.mark.parametrize(("text", "name"), NAMED)
def test_a_plain_order_names_one_thing(text: str, name: str) -> None:
    assert plain.named(text, (), NOW) == name


DECIDED: list[tuple[str, str, dict[str, Any]]] = [
    ("Set the living room to 24 degrees", "set_thermostat",
     {"temperature": 24, "room": "living room"}),
    ("Remind me to call Mom at 6 pm", "set_reminder", {"task": "call Mom", "when": "18:00"}),
    ("Move recipe.txt to Documents", "move_file", {"file": "recipe.txt", "folder": "Documents"}),
    ("Rename resume.txt to cv.txt", "rename_file", {"old": "resume.txt", "new": "cv.txt"}),
    ("Open the drivers window all the way", "car_window", {"window": "driver", "percent": 100}),
    ("把卧室窗帘全拉上", "set_cover", {"cover": "窗帘", "room": "卧室", "position": 0}),
    ("What's on my calendar tomorrow?", "list_events", {"date": "2026-12-01"}),
    ("What does the latest mail from Ben say?", "read_email", {"from": "Ben"}),
    ("hey can you shift my friday piano lesson to seven in the evening, I'm on the road at six",
     "move_event", {"title": "piano lesson", "start": "2026-12-04T19:00"}),
    ("Add a site visit on Thursday afternoon, two to half past three", "create_event",
     {"title": "site visit", "start": "2026-12-03T14:00", "duration": 90}),
    ("明天下午两点和李明开会，加到日历里", "create_event",
     {"title": "和李明开会", "start": "2026-12-01T14:00"}),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "tool", "values"), DECIDED)
def test_a_request_that_says_all_leaves_nothing_to_the_model(
    stores: Stores, request_: str, tool: str, values: dict[str, Any]
) -> None:
    assert decided(stores, request_) == [(tool, values, [])]


MISSING = [
    ("Remind me to feed the cat", "set_reminder", {"task": "feed the cat"}),
    ("Please charge the car", "charge_car", {}),
    ("Could you change the temperature on the bedroom thermostat for me?", "set_thermostat",
     {"room": "bedroom"}),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "tool", "values"), MISSING)
def test_what_only_the_user_can_say_is_not_left_to_the_model(
    stores: Stores, request_: str, tool: str, values: dict[str, Any]
) -> None:
    assert decided(stores, request_) == [(tool, values, [])]


def test_what_may_be_in_the_request_stays_open(stores: Stores) -> None:
    ((tool, held, open_),) = decided(
        stores, "Put lunch with Sam at Luigi's in my calendar tomorrow at noon"
    )
    assert (tool, held) == ("create_event", {"start": "2026-12-01T12:00"})
    assert open_ == ["title", "location"]


def test_a_folder_that_the_order_before_makes(stores: Stores) -> None:
    request = "Make a folder called Insurance, then move invoice_0398.txt in there"
    assert [held for _, held, _ in decided(stores, request)] == [
        {"folder": "Insurance"},
        {"file": "invoice_0398.txt", "folder": "Insurance"},
    ]


ORDERS = [
    # Why it is ordered is no order, and does not choose the tool.
    ("Phone's ringing, quick, pause the TV!", [("pause_media",)]),
    ("My knee is done for, so I've quit yoga. Take the class off my calendar", [("cancel_event",)]),
    # What is found is handed on, though no word says so.
    ("查一下李明的电话号码，然后发邮件告诉王芳", [("find_contact",), ("send_email",)]),
    ("王芳那封周末聚会的邮件我看过了，找出来删了吧", [("delete_email",)]),
    ("Reply to Anna and tell her yes, count me in", [("reply_email",)]),
]


@pytest.mark.parametrize(("request_", "tools"), ORDERS)
def test_orders_and_what_is_said_around_them(
    stores: Stores, request_: str, tools: list[tuple[str, ...]]
) -> None:
    found, whole = wants(request_, Chooser.of(stores.tools))
    assert [tuple(tool.name for tool in want.tools) for want in found] == tools
    assert whole


def test_a_file_that_is_named_is_read_before_it_is_mailed(stores: Stores) -> None:
    found, _ = wants("It's all in agenda.md, mail David Kim the points", Chooser.of(stores.tools))
    assert [tool.name for tool in found[-1].feeds] == ["open_file"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open the drivers window", ["driver"]),
        ("open all windows", ["all"]),
        ("open the window all the way", []),
        ("暖白色", ["warm white"]),
        ("标记为未读", ["unread"]),
        ("every Monday morning", ["weekly"]),
    ],
)
def test_options_are_named_in_either_language(text: str, found: list[str]) -> None:
    known = ("driver", "rear", "all", "white", "warm white", "read", "unread", "daily", "weekly")
    assert [one for one in options(known, text) if one != "daily"] == found


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("remind me one hour before that", timedelta(hours=-1)),
        ("half an hour later", timedelta(minutes=30)),
        ("提前半个小时提醒我", timedelta(minutes=-30)),
        ("two days before", timedelta(days=-2)),
        ("for an hour", None),
    ],
)
def test_how_long_before_or_after(text: str, length: timedelta | None) -> None:
    assert offset(text) == length


def test_before_an_event_is_found_in_the_calendar(stores: Stores) -> None:
    request = "Remind me to brush my teeth an hour before the dentist"
    (want,), whole = wants(request, Chooser.of(stores.tools))
    assert whole
    assert [tool.name for tool in (*want.feeds, *want.tools)] == ["find_event", "set_reminder"]
    assert decided(stores, request) == [("find_event", {"title": "dentist"}, [])]
    assert anchored("an hour before that") == ("an hour before that", "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from 2 to 3:30 pm", (time(14), 90)),
        ("two to half past three", (time(14), 90)),
        ("10-11", (time(10), 60)),
        ("下午三点到四点半", (time(15), 90)),
        ("from Friday to Monday", None),
        ("to seven", None),
    ],
)
def test_when_it_begins_and_how_long_it_lasts(text: str, found: tuple[time, int] | None) -> None:
    assert lasting(text, NOW) == found


def test_where_something_is_moved_to_is_its_moment() -> None:
    said = Moments.of("move Friday's lunch at 12 o'clock to Thursday", NOW)
    moved = said.to("move Friday's lunch at 12 o'clock to Thursday", NOW)
    assert [day.isoformat() for day in moved.days] == ["2026-12-03"]
    assert moved.clocks == (time(12),)
