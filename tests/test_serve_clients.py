"""Clients that people have, unchanged, against a running server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import Server, serving

openai = pytest.importorskip("openai")
from openai import AsyncOpenAI, BadRequestError, OpenAI, RateLimitError  # noqa: E402
from pydantic import BaseModel, Field  # noqa: E402

MODEL = "toy-window"
HI = [{"role": "user", "content": "hi"}]
PARAMETERS = {
    "type": "object",
    "properties": {"minutes": {"type": "integer"}},
    "required": ["minutes"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "set_timer", "parameters": PARAMETERS}}


class Person(BaseModel):
    name: str = Field(max_length=8)
    age: int


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(MODEL, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> OpenAI:
    return OpenAI(base_url=server.url + "v1", api_key="unused", max_retries=0)


def test_openai_chats_and_streams_the_same(client: OpenAI) -> None:
    asked = {"model": MODEL, "messages": HI, "max_tokens": 16}
    whole = client.chat.completions.create(**asked)
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options=options))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens == 16
    assert whole.usage.prompt_tokens_details.cached_tokens == 0
    assert [card.id for card in client.models.list()] == [MODEL]


def test_openai_async_clients_share_the_server(server: Server) -> None:
    async def ask(i: int) -> str:
        async with AsyncOpenAI(base_url=server.url + "v1", api_key="unused") as client:
            messages = [{"role": "user", "content": f"number {i}"}]
            stream = await client.chat.completions.create(
                model=MODEL, messages=messages, max_tokens=8, stream=True
            )
            return "".join([c.choices[0].delta.content or "" async for c in stream])

    async def all_() -> list[str]:
        return await asyncio.gather(*(ask(i) for i in range(6)))

    together = asyncio.run(all_())
    assert together == [asyncio.run(ask(i)) for i in range(6)]


def test_openai_reads_calls_and_sends_their_results_back(client: OpenAI) -> None:
    asked = {"model": MODEL, "tools": [TOOL], "max_tokens": 64}
    first = client.chat.completions.create(messages=HI, tool_choice="required", **asked)
    message = first.choices[0].message
    call = message.tool_calls[0]
    assert call.function.name == "set_timer"
    assert isinstance(json.loads(call.function.arguments)["minutes"], int)
    result = {"role": "tool", "tool_call_id": call.id, "content": "done"}
    sent_back = [*HI, message.model_dump(), result, *HI]
    if len(message.tool_calls) == 1:
        again = client.chat.completions.create(messages=sent_back, tool_choice="none", **asked)
        assert again.choices[0].message.tool_calls is None
    with client.chat.completions.stream(messages=HI, tool_choice="required", **asked) as stream:
        final = stream.get_final_completion().choices[0].message
    assert final.tool_calls[0].function.arguments == call.function.arguments


def test_openai_parses_what_keeps_to_a_schema(client: OpenAI) -> None:
    made = client.chat.completions.parse(
        model=MODEL, messages=HI, response_format=Person, max_tokens=80
    )
    assert isinstance(made.choices[0].message.parsed, Person)
    response = client.responses.parse(
        model=MODEL, input="hi", text_format=Person, max_output_tokens=80
    )
    assert response.output_parsed == made.choices[0].message.parsed


def test_openai_follows_the_events_of_a_response(client: OpenAI) -> None:
    tool = {"type": "function", "name": "set_timer", "parameters": PARAMETERS, "strict": True}
    asked = {"model": MODEL, "input": "hi", "tools": [tool], "tool_choice": "required"}
    with client.responses.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created"
    assert "response.function_call_arguments.done" in kinds
    whole = client.responses.create(**asked)
    assert [i.arguments for i in final.output] == [i.arguments for i in whole.output]
    text = client.responses.create(model=MODEL, input="hi", max_output_tokens=8)
    events = client.responses.create(model=MODEL, input="hi", max_output_tokens=8, stream=True)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == text.output_text


def test_openai_raises_its_own_errors(client: OpenAI) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=HI, logprobs=True)
    assert caught.value.param == "logprobs"
    assert not isinstance(caught.value, RateLimitError)


def test_pydantic_ai_runs_an_agent_to_its_end(tmp_path: Path, smollm2_path: Path) -> None:
    """The built-in model calls a tool, reads its result, and answers."""
    ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    set_for: list[int] = []

    def set_timer(minutes: int) -> str:
        """Start a timer."""
        set_for.append(minutes)
        return '{"ok": true}'

    with serving("hybrid", tmp_path) as server:
        provider = OpenAIProvider(base_url=server.url + "v1", api_key="unused")
        agent = ai.Agent(OpenAIChatModel("hybrid", provider=provider), tools=[set_timer])
        answer = agent.run_sync("Set a timer for 5 minutes.")
    assert set_for == [5]
    assert answer.output
