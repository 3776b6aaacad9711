"""Parts of the server that need none: text in pieces, messages, settings."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.errors import UsageError
from mezzotint.serve.deltas import Arguments, Calls, Letters, Name, Stops
from mezzotint.serve.messages import told
from mezzotint.serve.problems import Problem
from mezzotint.serve.settings import Settings
from mezzotint.serve.wire_chat import ChatRequest
from mezzotint.toolcall import Call, write

cuts = st.lists(st.integers(0, 60), max_size=8).map(sorted)


def parts(text: str, at: list[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *at, len(text) + 60])]


def stopped(text: str, stops: list[str], at: list[int]) -> str:
    held = Stops(stops)
    return "".join(held.push(part) for part in parts(text, at)) + held.end()


@given(st.text("abc", max_size=30), st.lists(st.text("abc", min_size=1, max_size=4)), cuts)
def test_stop_strings_cut_alike_however_text_comes(
    text: str, stops: list[str], at: list[int]
) -> None:
    ends = [(text.find(s) + len(s), -len(s)) for s in stops if s in text]
    end, size = min(ends, default=(len(text), 0))
    assert stopped(text, stops, at) == text[: end + size]


@given(
    st.text("abc", max_size=12),
    st.text("abc", max_size=6),
    st.lists(st.text("abc", min_size=1, max_size=4)),
)
def test_what_is_let_out_is_never_part_of_a_stop_string(
    text: str, more: str, stops: list[str]
) -> None:
    assert stopped(text + more, stops, []).startswith(Stops(stops).push(text))


@given(st.text(max_size=12), st.lists(st.integers(0, 40), max_size=6).map(sorted))
def test_letters_come_whole(text: str, at: list[int]) -> None:
    raw = list(text.encode())
    letters = Letters(lambda ids: bytes(ids).decode(errors="replace"))
    pushed = [letters.push(raw[a:b]) for a, b in pairwise([0, *at, len(raw) + 40])]
    assert "".join(pushed) + letters.end() == text
    if "\N{REPLACEMENT CHARACTER}" not in text:
        assert "\N{REPLACEMENT CHARACTER}" not in "".join(pushed)


def test_bytes_that_never_become_a_letter_are_shown_at_the_end() -> None:
    letters = Letters(lambda ids: bytes(ids).decode(errors="replace"))
    assert letters.push(b"a\xe4\xb8") == ""
    assert letters.end() == "a\N{REPLACEMENT CHARACTER}"


names = st.text(min_size=1, max_size=6)
values = st.none() | st.integers() | st.text(max_size=6) | st.lists(st.text(max_size=3), max_size=2)
calls = st.builds(Call, names, st.dictionaries(names, values, max_size=3))


@given(st.lists(calls, min_size=1, max_size=3), cuts)
def test_calls_are_read_alike_however_text_comes(made: list[Call], at: list[int]) -> None:
    reader, found = Calls(), []
    for part in parts(write(made), at):
        found += reader.push(part)
    read: list[tuple[str, str]] = []
    for piece in [*found, *reader.end()]:
        if isinstance(piece, Name):
            read.append((piece.name, ""))
        else:
            read[-1] = (read[-1][0], read[-1][1] + piece.text)
    assert [Call(name, json.loads(text)) for name, text in read] == made


def test_arguments_come_before_the_call_is_whole() -> None:
    reader = Calls()
    assert list(reader.push('{"f":{"a":1')) == [Name("f"), Arguments('{"a":')]
    assert list(reader.push("2}}")) == [Arguments("12}")]
    assert list(reader.end()) == []


TOOL = {"name": "f", "description": "Do it.", "parameters": {}}


def messages(*given: dict[str, object]) -> list[dict[str, str]]:
    return told(ChatRequest(model="m", messages=given).messages, [TOOL])


def test_a_conversation_reads_as_the_model_was_taught() -> None:
    function = {"name": "f", "arguments": '{"x": 1}'}
    made = messages(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": function},
                {"id": "2", "type": "function", "function": {"name": "g", "arguments": ""}},
            ],
        },
        {"role": "tool", "tool_call_id": "2", "content": "two"},
        {"role": "tool", "tool_call_id": "1", "content": "one"},
    )
    assert made == [
        {"role": "system", "content": "Tools:\nf(): Do it.\nBe brief."},
        {"role": "user", "content": "ab"},
        {"role": "assistant", "content": '{"f":{"x":1}}\n{"g":{}}'},
        {"role": "tool", "content": "one\ntwo"},
    ]


def test_a_result_of_no_call_is_refused() -> None:
    with pytest.raises(Problem, match="no call") as caught:
        messages(
            {"role": "user", "content": "a"},
            {"role": "tool", "tool_call_id": "1", "content": "b"},
        )
    assert caught.value.param == "messages[1].tool_call_id"


@pytest.mark.parametrize("arguments", ["[1]", "{", "5", "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    with pytest.raises(Problem, match="JSON object"):
        messages({"role": "assistant", "tool_calls": [call]})


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.org"])
def test_others_are_not_let_in_without_a_key(host: str) -> None:
    with pytest.raises(UsageError, match="let everyone in"):
        Settings("m", host)
    assert "k" * 16 not in repr(Settings("m", host, api_key="k" * 16))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_needs_no_key(host: str) -> None:
    assert Settings("m", host).api_key is None


@pytest.mark.parametrize(
    "values", [{"port": 70000}, {"slots": 0}, {"deadline": 0.0}, {"api_key": "short"}]
)
def test_settings_out_of_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Settings("m", **values)  # type: ignore[arg-type]
