"""The text format of tools and calls."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.toolcall import Call, is_call, parse, signature, system, write

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(Call, st.text(min_size=1), st.dictionaries(st.text(), json_values, max_size=4))


@given(st.lists(calls, min_size=1, max_size=3))
def test_calls_come_back_as_written(made: list[Call]) -> None:
    text = write(made)
    assert is_call(text)
    assert parse(text) == made


def test_a_call_is_short_and_plain() -> None:
    assert (
        write([Call("f", {"城市": "北京", "n": 2}), Call("g")])
        == '{"f":{"城市":"北京","n":2}}\n{"g":{}}'
    )


def test_prose_is_no_call() -> None:
    assert parse("Which list?") == []
    assert parse("") == []


@pytest.mark.parametrize(
    "text", ['{"f":{"a":1}', '{"f":[1]}', '{"f":{},"g":{}}', '{"f":{}}\nand then', '{"f":1}']
)
def test_what_announces_a_call_and_is_none_raises(text: str) -> None:
    with pytest.raises(ValueError, match="not a tool call"):
        parse(text)


TIMER = {
    "name": "set_timer",
    "description": "Start a\ntimer.",
    "parameters": {
        "type": "object",
        "properties": {
            "minutes": {"type": "integer", "minimum": 1},
            "label": {"type": "string", "description": "what it is for", "default": "timer"},
            "sound": {"enum": ["bell", "16:9", "two words", "5", 5]},
            "at": {"type": "string", "format": "date-time"},
            "who": {"type": "array", "items": {"type": ["string", "null"]}},
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "on": {"type": "boolean"}},
                "required": ["lat"],
            },
        },
        "required": ["minutes", "at"],
    },
}
LINE = (
    'set_timer(minutes: int 1.., label?: str "what it is for" = "timer", '
    'sound?: bell|16:9|"two words"|"5"|5, at: datetime, who?: (str|null)[], '
    "place?: {lat: num, on?: bool}): Start a timer."
)


def test_a_tool_is_one_line_in_each_dialect() -> None:
    openai = {"type": "function", "function": TIMER}
    mcp = {"name": "set_timer", "description": "Start a timer.", "inputSchema": TIMER["parameters"]}
    assert signature(TIMER) == signature(openai) == signature(mcp) == LINE
    assert signature({"name": "ping"}) == "ping()"


def test_the_week_is_told_only_where_a_tool_takes_a_date() -> None:
    now, line = datetime(2025, 12, 29, 8, 5), "Now: Mon 2025-12-29 08:05"
    week = "Tue 12-30, Wed 12-31, Thu 01-01, Fri 01-02, Sat 01-03, Sun 01-04"
    assert system([TIMER], now, "Devices: TV") == f"Tools:\n{LINE}\nDevices: TV\n{line}. {week}"
    assert system([{"name": "ping"}], now) == f"Tools:\nping()\n{line}"
    assert system([]) == "No tools."
