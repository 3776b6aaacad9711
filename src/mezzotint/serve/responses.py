"""POST /v1/responses: a conversation as items; the answer is items too, or their events."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from mezzotint.serve import asked as ask
from mezzotint.serve import grammars, wire_chat
from mezzotint.serve.answer import Ended, Shown, together
from mezzotint.serve.asked import Asked
from mezzotint.serve.desk import Desk, answer
from mezzotint.serve.messages import told
from mezzotint.serve.replies import Json, Pieces, whole
from mezzotint.serve.response_items import Story, output
from mezzotint.serve.sse import STREAMS, event, streamed, unless_gone
from mezzotint.serve.wire_responses import (
    FlatChoice,
    FlatSchema,
    InputCall,
    InputMessage,
    Part,
    Response,
    ResponseRequest,
)


def router(desk: Desk) -> APIRouter:
    routes = APIRouter()

    @routes.post("/v1/responses", response_model=Response, responses=STREAMS, tags=["OpenAI"])
    async def respond(body: ResponseRequest, request: Request) -> Any:
        """The next items of a conversation: a message, or calls of functions."""
        asked = await run_in_threadpool(_read, body, desk, desk.client(body, request))
        pieces = together(desk.answers(asked))
        head = _head(body, asked)
        if body.stream:
            return await streamed(request, _events(desk, asked, pieces, head))
        messages, ends = await unless_gone(request, whole(asked, pieces))
        return answer(_ended(desk, asked, head, ends[0], output(messages[0])))

    return routes


def _read(body: ResponseRequest, desk: Desk, client: str) -> Asked:
    """Raises Problem or UsageError for what cannot be done."""
    ask.check(body, desk.settings)
    tools, settings = body.tools or [], desk.settings
    wanted = body.text.format if body.text else None
    schema = wanted.schema_ if isinstance(wanted, FlatSchema) else None
    held = grammars.of_format(wanted, schema, "text.format", settings)
    choice = body.tool_choice.name if isinstance(body.tool_choice, FlatChoice) else body.tool_choice
    grammar = grammars.of_answer(tools, choice, body.parallel_tool_calls, held, settings)
    shown = [grammars.schema_of(tool, settings) for tool in tools]
    prompt = ask.prompt_of(desk.model, told(_messages(body), shown))
    options = ask.options_of(body, desk.model, len(prompt), body.max_output_tokens, None)
    return Asked(
        settings.name,
        ask.tasks_of(prompt, options, grammar, 1, client, settings),
        ask.mode_of(desk.model, options, held=grammar is not None),
        calls=bool(tools),
        formatted=grammar is not None and not tools,
        canvas=body.mezzotint.canvas,
    )


def _messages(body: ResponseRequest) -> list[wire_chat.Message]:
    """The items as messages of a chat; calls that follow each other are of one message."""
    made: list[wire_chat.Message] = []
    if body.instructions:
        made.append(wire_chat.System(role="system", content=body.instructions))
    if isinstance(body.input, str):
        return [*made, wire_chat.User(role="user", content=body.input)]
    for item in body.input:
        if isinstance(item, InputMessage):
            made.append(_message(item.role, _plain(item.content)))
        elif isinstance(item, InputCall):
            function = wire_chat.Called(name=item.name, arguments=item.arguments)
            call = wire_chat.ToolCall(id=item.call_id, function=function)
            if not (made and isinstance(made[-1], wire_chat.Assistant) and made[-1].tool_calls):
                made.append(wire_chat.Assistant(role="assistant", tool_calls=[]))
            made[-1].tool_calls.append(call)  # type: ignore[union-attr]
        else:
            text = _plain(item.output)
            made.append(wire_chat.ToolResult(role="tool", tool_call_id=item.call_id, content=text))
    return made


def _message(role: str, text: str) -> wire_chat.Message:
    if role == "assistant":
        return wire_chat.Assistant(role="assistant", content=text)
    if role == "user":
        return wire_chat.User(role="user", content=text)
    return wire_chat.System(role="system", content=text)


def _plain(content: str | Sequence[Part]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _head(body: ResponseRequest, asked: Asked) -> Json:
    """The response before anything is written. What was asked is told, as OpenAI does."""
    options = asked.tasks[0].options
    sent = body.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "id": f"resp_{secrets.token_hex(12)}",
        "object": "response",
        "created_at": int(time.time()),
        "model": asked.model,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": options.max_tokens,
        "metadata": {},
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": None,
        "store": False,
        "temperature": body.temperature,
        "text": sent.get("text") or {"format": {"type": "text"}},
        "tool_choice": sent.get("tool_choice") or "auto",
        "tools": sent.get("tools") or [],
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": None,
    }


def _ended(desk: Desk, asked: Asked, head: Json, end: Ended, output: list[Json]) -> Json:
    usage, block = desk.totals(asked, [end])
    cut = end.reason == "length"
    return {
        **head,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": usage["prompt_tokens_details"],
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
        "mezzotint": block,
    }


async def _events(desk: Desk, asked: Asked, pieces: Pieces, head: Json) -> AsyncGenerator[str]:
    """Typed events, numbered; the last holds the whole response."""
    story = Story()
    async with aclosing(pieces):
        async for _, piece in pieces:
            if not story.began:
                yield story.event("response.created", response=head)
                yield story.event("response.in_progress", response=head)
            if isinstance(piece, Shown):
                yield event({"id": head["id"], "index": 0, **piece.state}, "canvas")
            for one in story.tell(piece):
                yield one
            if isinstance(piece, Ended):
                response = _ended(desk, asked, head, piece, story.items)
                yield story.event(f"response.{response['status']}", response=response)
