"""What a request says: its moments, whether it asks or corrects, and what a call made up."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest

from mezzotint.agent.ground import (
    Moments,
    asks,
    corrects,
    narrowed,
    needs_number,
    shaped,
)
from mezzotint.agent.levels import leveled, numbers
from mezzotint.agent.tool import Effect, Tool
from mezzotint.agent.unsaid import pruned
from mezzotint.agent.writer import calls_in
from mezzotint.toolcall import Call

NOW = datetime(2026, 11, 30, 9, 0).astimezone()  # a Monday


def tool(required: dict[str, object], optional: dict[str, object], effect: Effect) -> Tool:
    parameters = {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
    }
    return Tool("t", "", parameters, effect, act=lambda arguments, context: None)  # type: ignore[arg-type, return-value]


TEXT = {"type": "string"}
MOMENT = {"type": "string", "format": "date-time"}
DAY = {"type": "string", "format": "date"}
MOVE = tool({"title": TEXT, "start": MOMENT}, {"room": TEXT}, Effect.WRITES)
LIST = tool({"date": DAY}, {}, Effect.READS)


@pytest.mark.parametrize(
    ("text", "days", "clocks"),
    [
        ("Move the dentist to Friday 4 pm", [date(2026, 12, 4)], [time(16)]),
        ("move lunch to one o'clock", [], [time(13)]),
        ("把项目评审改到后天上午十点", [date(2026, 12, 2)], [time(10)]),
        ("Add lunch tomorrow at 1 pm and a call on Friday at 3 pm",
         [date(2026, 12, 1), date(2026, 12, 4)], [time(13), time(15)]),
        ("Write a note about the garden", [], []),
    ],
)  # fmt: skip
def test_moments_are_found(text: str, days: list[date], clocks: list[time]) -> None:
    found = Moments.of(text, NOW)
    assert sorted(found.days) == days
    assert sorted(found.clocks) == clocks


def test_dates_of_a_call_are_held_to_what_was_said() -> None:
    def start(text: str) -> object:
        return narrowed(MOVE.parameters, Moments.of(text, NOW))["properties"]["start"]

    assert start("to Friday 4 pm") == {"enum": ["2026-12-04T16:00"]}
    assert start("to 4 pm") == {"enum": ["16:00"]}
    assert start("to Friday") == {"enum": ["2026-12-04"]}
    assert start("later") == MOMENT
    assert narrowed(MOVE.parameters, Moments())["properties"]["title"] == TEXT


@pytest.mark.parametrize(
    "text", ["Did I lock the door?", "hey, what's on today", "门锁了吗", "现在几点"]
)
def test_a_question_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text", ["Can you lock the door?", "Lock the door", "请把门锁上", "提醒我买什么"]
)
def test_an_order_does_not(text: str) -> None:
    assert not asks(text)


def test_corrections() -> None:
    said = (
        "No wait, seven is better",
        "make it 5 pm instead",
        "不对，是下午三点",
        "Lunch on Friday instead",
    )
    assert all(corrects(text) for text in said)
    assert not corrects("Now lock the door")
    assert not corrects("Note: buy milk")


def test_what_was_made_up_is_left_out() -> None:
    whole = Call("t", {"title": "dentist", "start": "2026-12-04", "room": "kitchen"})
    assert "room" in pruned(MOVE, whole, "the dentist in the kitchen").arguments
    assert "room" not in pruned(MOVE, whole, "move the dentist").arguments
    same = Call("t", {"title": "dentist", "room": "dentist"})
    assert pruned(MOVE, same, "move the dentist").arguments == {"title": "dentist"}


PERCENT = {"type": "integer", "minimum": 0, "maximum": 100}
SAID = [
    ("It's minus six out, the car at twenty-four please", [6, 24]),
    ("音量四十", [40]),
    ("亮度调到一百", [100]),
    ("seventy-five percent, no, ninety", [75, 90]),
    ("卧室空调调到二十三度", [23]),
    ("把温度改一下", []),
    ("21.5 degrees", []),
    ("set it to 80%", [80]),
]
LEVELS = [
    ("the blind at 40", [40]),
    ("open the window a quarter", [25]),
    ("curtains shut", [0]),
    ("把窗帘打开", [100]),
    ("lower it", None),
    ("the blind at 140", None),
]


@pytest.mark.parametrize(("text", "found"), SAID)
def test_numbers_in_words(text: str, found: list[int]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(("text", "levels"), LEVELS)
def test_a_level_is_one_that_was_said(text: str, levels: list[int] | None) -> None:
    held = leveled(tool({"level": PERCENT}, {}, Effect.WRITES).parameters, text)
    assert held["properties"]["level"] == ({"enum": levels} if levels else PERCENT)


def test_what_has_a_form_is_found_by_it() -> None:
    assert shaped(r"^[^@\s]+@[^@\s]+$", "it's nadia@haddad.example.") == ["nadia@haddad.example"]
    assert shaped(r"^[0-9][0-9 ]{2,}$", "call 555 0199, please") == ["555 0199"]
    assert shaped(r"^[0-9][0-9 ]{2,}$", "no idea") == []


def test_numbers_of_things_come_from_a_search() -> None:
    assert needs_number(tool({"id": {"type": "integer"}}, {}, Effect.WRITES))
    assert not needs_number(MOVE)


def test_calls_are_read_once_each_and_without_outer_spaces() -> None:
    text = '{"t":{"plant":" fern"}}\n{"t":{"plant":"fern"}}'
    assert calls_in(text) == [Call("t", {"plant": "fern"})]
    assert calls_in("Done.") == calls_in('{"t":{"plant"') == []
