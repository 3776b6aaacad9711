"""The API of a real server: what it answers, refuses and counts. The toy writes the text."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mezzotint.backend import toy
from mezzotint.generate import Options, generate, infill
from mezzotint.serve.settings import Settings
from serving import Json, Server, serving, until

MODEL = "toy-window"
CHAT, TEXT, RESPONSES = "v1/chat/completions", "v1/completions", "v1/responses"
HI = [{"role": "user", "content": "hi"}]
TIMER = {
    "type": "function",
    "function": {
        "name": "set_timer",
        "description": "Start a timer.",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}},
            "required": ["minutes"],
        },
    },
}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {}}}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(MODEL, tmp_path_factory.mktemp("server"), "--slots", "4") as running:
        yield running


def chat(server: Server, **more: Any) -> Json:
    reply = server.post(CHAT, {"model": MODEL, "messages": HI, "max_tokens": 24, **more})
    assert reply.status == 200, reply.text
    return dict(reply.json)


def content(answer: Json) -> str:
    return str(answer["choices"][0]["message"]["content"])


def alone(text: str, **options: Any) -> str:
    """What the model writes without a server."""
    model = toy.load(MODEL)
    return generate(model, model.tokenizer.encode(text), Options(**options)).text


def test_a_chat_is_answered_as_the_model_writes_alone(server: Server) -> None:
    answer = chat(server)
    expected = alone("hi\n", max_tokens=24)
    assert content(answer) == expected
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["finish_reason"] == "length"
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (3, 24)
    assert usage["total_tokens"] == 27
    block = answer["mezzotint"]
    assert block["mode"] == "verify"
    assert block["tokens_per_pass"] == pytest.approx(24 / block["passes"], abs=0.2)


def test_a_prompt_that_comes_again_is_cached(server: Server) -> None:
    asked = [{"role": "user", "content": "a prompt that no other test has, longer than a page" * 3}]
    first, second = chat(server, messages=asked), chat(server, messages=asked)
    assert content(first) == content(second)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


def test_candidates_are_what_their_seeds_give_alone(server: Server) -> None:
    answer = chat(server, n=3, seed=5, temperature=1.0)
    texts = [choice["message"]["content"] for choice in answer["choices"]]
    assert texts == [alone("hi\n", max_tokens=24, seed=5 + i, temperature=1.0) for i in range(3)]
    assert len(set(texts)) == 3
    assert answer["usage"]["prompt_tokens"] == 3
    assert answer["usage"]["completion_tokens"] == sum(map(len, texts))


def test_sampling_without_a_seed_draws_anew(server: Server) -> None:
    drawn = {content(chat(server, temperature=1.0)) for _ in range(3)}
    assert len(drawn) > 1
    assert content(chat(server, temperature=0)) == content(chat(server))


def deltas(events: list[tuple[str, Any]], i: int = 0) -> str:
    chunks = [data for name, data in events if not name and data != "[DONE]"]
    choices = [c for chunk in chunks for c in chunk["choices"] if c["index"] == i]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def test_a_stream_adds_up_to_the_answer(server: Server) -> None:
    body = {"model": MODEL, "messages": HI, "max_tokens": 24, "n": 2, "seed": 1, "temperature": 1}
    whole = server.post(CHAT, body).json
    events = server.events(CHAT, {**body, "stream_options": {"include_usage": True}})
    assert [deltas(events, i) for i in range(2)] == [
        choice["message"]["content"] for choice in whole["choices"]
    ]
    assert events[-1][1] == "[DONE]"
    usage, last = events[-2][1], events[-3][1]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert last["mezzotint"]["passes"] == whole["mezzotint"]["passes"]
    ids = {data["id"] for _, data in events[:-1]}
    assert len(ids) == 1
    reasons = [c["finish_reason"] for _, e in events[:-1] for c in e["choices"]]
    assert [reason for reason in reasons if reason] == ["length", "length"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_string_ends_the_text_before_it(server: Server, stream: bool) -> None:
    text = content(chat(server))
    stops = [text[9:12], text[4:7]]
    body = {"model": MODEL, "messages": HI, "max_tokens": 24, "stop": stops}
    if stream:
        events = server.events(CHAT, body)
        assert deltas(events) == text[:4]
        assert events[-2][1]["choices"][0]["finish_reason"] == "stop"
    else:
        answer = chat(server, stop=stops)
        assert content(answer) == text[:4]
        assert answer["choices"][0]["finish_reason"] == "stop"
        assert answer["usage"]["completion_tokens"] < 24
    until(lambda: server.running() == 0)


def test_canvas_events_show_every_pass_and_settled_cells_stay(server: Server) -> None:
    body = {"model": MODEL, "messages": HI, "max_tokens": 24, "mezzotint": {"canvas": True}}
    events = server.events(CHAT, body)
    states = [data for name, data in events if name == "canvas"]
    block = events[-2][1]["mezzotint"]
    assert [state["pass"] for state in states] == list(range(1, block["passes"] + 1))
    assert {cell["state"] for state in states for cell in state["cells"]} == {
        "written", "draft", "masked",
    }  # fmt: skip
    final = deltas(events)
    for state in states:
        settled = state["cells"][: state["settled"]]
        assert all(cell["state"] == "written" for cell in settled)
        assert final.startswith("".join(cell["text"] for cell in settled))
    assert states[-1]["settled"] == 24
    plain = server.events(CHAT, {**body, "mezzotint": {}})
    assert not any(name for name, _ in plain)
    assert deltas(plain) == final


@pytest.mark.parametrize("model", ["toy", "toy-block", "toy-reordered"])
def test_no_kind_of_model_takes_a_delta_back(model: str, tmp_path: Path) -> None:
    policies = {"toy": [None, "wino"], "toy-block": [None, "llada21"]}.get(model, [None])
    with serving(model, tmp_path) as server:
        for policy in policies:
            body = {"model": model, "messages": HI, "max_tokens": 32}
            body["mezzotint"] = {"policy": policy} if policy else {}
            assert deltas(server.events(CHAT, body)) == content(server.post(CHAT, body).json)


@pytest.mark.parametrize("policy", ["ar", "exact", "fast", "threshold:0.5"])
def test_a_policy_is_what_it_is_alone(server: Server, policy: str) -> None:
    answer = chat(server, mezzotint={"policy": policy})
    assert content(answer) == alone("hi\n", max_tokens=24, policy=policy)
    assert answer["mezzotint"]["mode"] == policy


def arguments(answer: Json, i: int = 0) -> tuple[str, Json]:
    call = answer["choices"][0]["message"]["tool_calls"][i]["function"]
    return call["name"], json.loads(call["arguments"])


def test_a_required_call_keeps_to_its_tool(server: Server) -> None:
    answer = chat(server, tools=[TIMER], tool_choice="required", max_tokens=200)
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert answer["choices"][0]["message"]["content"] is None
    name, made = arguments(answer)
    assert name == "set_timer"
    assert isinstance(made["minutes"], int)
    assert answer["mezzotint"]["forced"] > 0


def test_the_named_tool_is_called_once(server: Server) -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    answer = chat(server, tools=[TIMER, WEATHER], tool_choice=choice, max_tokens=200)
    assert [c["function"]["name"] for c in answer["choices"][0]["message"]["tool_calls"]] == [
        "weather"
    ]


def test_calls_are_not_made_where_none_are_wanted(server: Server) -> None:
    answer = chat(server, tools=[TIMER], tool_choice="none")
    assert "tool_calls" not in answer["choices"][0]["message"]
    assert not content(answer).startswith("{")


def test_calls_come_one_at_a_time_if_not_parallel(server: Server) -> None:
    for seed in range(4):
        more = {"temperature": 1.0, "seed": seed, "parallel_tool_calls": False}
        answer = chat(server, tools=[TIMER], tool_choice="required", max_tokens=200, **more)
        assert len(answer["choices"][0]["message"]["tool_calls"]) == 1


def test_streamed_calls_add_up(server: Server) -> None:
    body = {
        "model": MODEL, "messages": HI, "tools": [TIMER, WEATHER], "max_tokens": 300,
        "tool_choice": "required", "temperature": 1.2, "seed": 3,
    }  # fmt: skip
    whole = server.post(CHAT, body).json["choices"][0]["message"]["tool_calls"]
    found: dict[int, Json] = {}
    for name, data in server.events(CHAT, body)[:-1]:
        assert not name
        for call in data["choices"][0]["delta"].get("tool_calls", ()):
            kept = found.setdefault(call["index"], {"name": "", "arguments": ""})
            kept["name"] += call["function"].get("name", "")
            kept["arguments"] += call["function"]["arguments"]
    assert [found[i] for i in sorted(found)] == [call["function"] for call in whole]


def test_an_answer_keeps_to_its_schema(server: Server) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    answer = chat(server, response_format=wanted, max_tokens=100)
    person = json.loads(content(answer))
    assert person.keys() == {"name", "age"}
    assert answer["choices"][0]["finish_reason"] == "stop"
    loose = chat(server, response_format={"type": "json_object"}, max_tokens=60)
    assert isinstance(json.loads(content(loose)), dict)


def test_a_completion_continues_its_text(server: Server) -> None:
    reply = server.post(TEXT, {"model": MODEL, "prompt": "Once", "max_tokens": 9})
    choice = reply.json["choices"][0]
    assert choice["text"] == alone("Once", max_tokens=9)
    assert reply.json["object"] == "text_completion"
    events = server.events(TEXT, {"model": MODEL, "prompt": "Once", "max_tokens": 9})
    texts = [data["choices"][0]["text"] for _, data in events[:-1]]
    assert "".join(texts) == choice["text"]


def test_a_suffix_makes_it_fill_the_hole(server: Server) -> None:
    body = {"model": MODEL, "prompt": "f(", "suffix": ")", "max_tokens": 6}
    reply = server.post(TEXT, body)
    options = Options(max_tokens=6, lengths=(4, 6))
    alone_ = infill(toy.load(MODEL), [list(b"f("), None, list(b")")], options).text
    assert f"f({reply.json['choices'][0]['text']})" == alone_
    assert reply.json["choices"][0]["finish_reason"] == "stop"
    assert reply.json["usage"]["prompt_tokens"] == 3
    streamed = server.events(TEXT, body)
    assert streamed[0][1]["choices"][0]["text"] == reply.json["choices"][0]["text"]


def test_a_response_is_items(server: Server) -> None:
    flat = {"type": "function", **TIMER["function"]}  # type: ignore[dict-item]
    asked = [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c", "name": "set_timer", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
    ]
    body = {"model": MODEL, "input": asked, "tools": [flat], "tool_choice": "required"}
    made = server.post(RESPONSES, body).json
    assert made["status"] == "completed"
    assert [item["type"] for item in made["output"]][:1] == ["function_call"]
    text = server.post(RESPONSES, {"model": MODEL, "input": "hi", "max_output_tokens": 24}).json
    assert text["output"][0]["content"][0]["text"] == alone("hi\n", max_tokens=24)
    assert text["status"] == "incomplete"
    assert text["incomplete_details"] == {"reason": "max_output_tokens"}


def test_events_of_a_response_tell_the_same_items(server: Server) -> None:
    flat = {"type": "function", **TIMER["function"]}  # type: ignore[dict-item]
    body = {"model": MODEL, "input": "hi", "tools": [flat], "tool_choice": "required"}
    whole = server.post(RESPONSES, body).json["output"]
    events = [data for _, data in server.events(RESPONSES, body)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    last = events[-1]
    assert last["type"] == "response.completed"
    told = [(item["name"], item["arguments"]) for item in last["response"]["output"]]
    assert told == [(item["name"], item["arguments"]) for item in whole]
    parts = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
    assert "".join(parts) == "".join(item["arguments"] for item in whole)


REFUSED: list[tuple[str, Json, str, str]] = [
    (CHAT, {"nonsense": 1}, "nonsense", "not supported"),
    (CHAT, {"logprobs": True}, "logprobs", "not supported"),
    (CHAT, {"logit_bias": {"5": 1}}, "logit_bias", "not supported"),
    (CHAT, {"frequency_penalty": 0.5}, "frequency_penalty", "not supported"),
    (CHAT, {"functions": []}, "functions", "not supported"),
    (CHAT, {"mezzotint": {"effort": 1}}, "mezzotint.effort", "not supported"),
    (CHAT, {"mezzotint": {"canvas": True}}, "mezzotint.canvas", "goes with stream"),
    (CHAT, {"stream_options": {}}, "stream_options", "goes with stream"),
    (CHAT, {"temperature": -1}, "temperature", "greater than or equal to 0"),
    (CHAT, {"n": 99}, "n", "at most 16"),
    (CHAT, {"messages": []}, "messages", "at least 1"),
    (CHAT, {"tool_choice": "required"}, "tool_choice", "needs tools"),
    (CHAT, {"parallel_tool_calls": True}, "parallel_tool_calls", "needs tools"),
    (CHAT, {"tools": [TIMER, TIMER]}, "tools", "same name"),
    (CHAT, {"response_format": {"type": "json_object"}, "tools": [TIMER]}, "tool_choice", "none"),
    (CHAT, {"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens", "old name"),
    (CHAT, {"max_tokens": 5000}, "messages", "do not fit into 4096"),
    (TEXT, {"echo": True}, "echo", "not supported"),
    (TEXT, {"suffix": "x", "stream": True, "mezzotint": {"canvas": True}}, "mezzotint.canvas", ""),
    (RESPONSES, {"store": True}, "store", "not supported"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id", "not supported"),
]
BASE: dict[str, Json] = {
    CHAT: {"model": MODEL, "messages": HI},
    TEXT: {"model": MODEL, "prompt": "hi"},
    RESPONSES: {"model": MODEL, "input": "hi"},
}


@pytest.mark.parametrize(("path", "more", "param", "says"), REFUSED)
def test_what_is_not_supported_is_refused_by_name(
    server: Server, path: str, more: Json, param: str, says: str
) -> None:
    reply = server.post(path, {**BASE[path], **more})
    assert reply.status == 400, reply.text
    assert reply.error["type"] == "invalid_request_error"
    assert reply.error["param"] == param
    assert says in reply.error["message"]


INERT = {"frequency_penalty": 0, "presence_penalty": 0.0, "logprobs": False, "logit_bias": {},
         "metadata": {}, "store": False, "user": "me", "functions": None}  # fmt: skip


def test_a_value_that_asks_for_nothing_is_taken(server: Server) -> None:
    assert content(chat(server, **INERT)) == content(chat(server))


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'"\xff"', b"null", b"[]", b"\x00"])
def test_a_body_that_is_no_request_is_refused(server: Server, body: bytes) -> None:
    for path in (CHAT, TEXT, RESPONSES):
        reply = server.post(path, body)
        assert reply.status == 400
        assert reply.error["type"] == "invalid_request_error"


def test_another_model_is_not_found(server: Server) -> None:
    reply = server.post(CHAT, {"model": "gpt", "messages": HI})
    assert (reply.status, reply.error["code"]) == (404, "model_not_found")
    assert server.get("v1/models/gpt").status == 404
    assert server.get("v1/nothing").error["type"] == "invalid_request_error"
    assert server.get(f"v1/models/{MODEL}").json["context"] == 4096
    assert [card["id"] for card in server.get("v1/models").json["data"]] == [MODEL]


def test_a_body_that_is_too_large_is_refused(server: Server) -> None:
    most = Settings("m").body_bytes
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        head = f"POST /{CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {most + 1}\r\n\r\n"
        client.sendall(head.encode())
        assert b" 413 " in client.recv(4096).split(b"\r\n")[0]
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        head = (f"POST /{CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n")  # fmt: skip
        client.sendall(head.encode())
        part = b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))
        try:
            for _ in range((most >> 16) + 2):
                client.sendall(part)
        except OSError:
            pass
        assert b" 413 " in client.recv(4096).split(b"\r\n")[0]


def test_a_schema_that_explodes_is_refused_soon(server: Server) -> None:
    deep: Json = {"type": "string"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    wide: Json = {"type": "object", "properties": {f"p{i}": {} for i in range(20_000)}}
    doubling: Json = {"$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2}
                                for i in range(40)}, "$ref": "#/$defs/d0"}  # fmt: skip
    doubling["$defs"]["d40"] = {"type": "string", "pattern": "a"}
    for schema in (deep, wide, doubling):
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        reply = server.post(CHAT, {**BASE[CHAT], "response_format": wanted})
        assert reply.status == 400, reply.text


def test_metrics_count_what_was_answered(server: Server) -> None:
    def value(name: str) -> float:
        lines = server.get("metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    answered = 'mezzotint_requests_total{path="/v1/chat/completions",status="200"}'
    before = value(answered), value("mezzotint_completion_tokens_total")
    chat(server)
    assert value(answered) == before[0] + 1
    assert value("mezzotint_completion_tokens_total") == before[1] + 24
    assert value("mezzotint_worker_running") == 0
