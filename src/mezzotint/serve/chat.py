"""POST /v1/chat/completions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from mezzotint.generate import Grammar
from mezzotint.serve import asked as ask
from mezzotint.serve import grammars
from mezzotint.serve.answer import Ended, Piece, Text, together
from mezzotint.serve.asked import Asked
from mezzotint.serve.deltas import Arguments, Name
from mezzotint.serve.desk import Desk, answer
from mezzotint.serve.messages import told
from mezzotint.serve.problems import bad
from mezzotint.serve.replies import Call, Message, chunks, whole
from mezzotint.serve.sse import STREAMS, streamed, unless_gone
from mezzotint.serve.wire import Function
from mezzotint.serve.wire_chat import ChatRequest, ChatResponse, NamedTool, ObeysSchema


def router(desk: Desk) -> APIRouter:
    routes = APIRouter()

    @routes.post(
        "/v1/chat/completions", response_model=ChatResponse, responses=STREAMS, tags=["OpenAI"]
    )
    async def chat(body: ChatRequest, request: Request) -> Any:
        """The next message of a conversation: prose, JSON of a schema, or calls of tools."""
        asked = await run_in_threadpool(_read, body, desk, desk.client(body, request))
        pieces = together(desk.answers(asked))
        head = asked.head("chatcmpl", "chat.completion")
        if body.stream:
            usage = bool(body.stream_options and body.stream_options.include_usage)
            head["object"] += ".chunk"
            return await streamed(request, chunks(desk, asked, pieces, head, _Deltas(), usage))
        messages, ends = await unless_gone(request, whole(asked, pieces))
        told_usage, block = desk.totals(asked, ends)
        choices = [_message(i, message) for i, message in enumerate(messages)]
        return answer({**head, "choices": choices, "usage": told_usage, "mezzotint": block})

    return routes


def _read(body: ChatRequest, desk: Desk, client: str) -> Asked:
    """Raises Problem or UsageError for what cannot be done."""
    ask.check(body, desk.settings)
    if body.max_tokens and body.max_completion_tokens:
        raise bad("max_tokens is the old name of max_completion_tokens", "max_tokens")
    functions = [tool.function for tool in body.tools or ()]
    grammar = _grammar(body, functions, desk)
    shown = [grammars.schema_of(tool, desk.settings) for tool in functions]
    prompt = ask.prompt_of(desk.model, told(body.messages, shown))
    most = body.max_completion_tokens or body.max_tokens
    options = ask.options_of(body, desk.model, len(prompt), most, body.seed)
    return Asked(
        desk.settings.name,
        ask.tasks_of(prompt, options, grammar, body.n or 1, client, desk.settings),
        ask.mode_of(desk.model, options, held=grammar is not None),
        ask.stops_of(body.stop),
        calls=bool(functions),
        formatted=grammar is not None and not functions,
        canvas=body.mezzotint.canvas,
    )


def _grammar(body: ChatRequest, functions: Sequence[Function], desk: Desk) -> Grammar | None:
    wanted, choice = body.response_format, body.tool_choice
    schema = wanted.json_schema.schema_ if isinstance(wanted, ObeysSchema) else None
    held = grammars.of_format(wanted, schema, "response_format.json_schema", desk.settings)
    name = choice.function.name if isinstance(choice, NamedTool) else choice
    return grammars.of_answer(functions, name, body.parallel_tool_calls, held, desk.settings)


def _message(i: int, made: Message) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": made.text, "refusal": None}
    if made.calls:
        message |= {"content": None, "tool_calls": [_call(call) for call in made.calls]}
    return {"index": i, "message": message, "finish_reason": made.reason, "logprobs": None}


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


class _Deltas:
    """The choices of chunks. It counts the calls of each candidate."""

    def __init__(self) -> None:
        self._calls: Counter[int] = Counter()

    def opening(self, i: int) -> dict[str, Any]:
        return _choice(i, {"role": "assistant"})

    def choice(self, i: int, piece: Piece) -> dict[str, Any]:
        match piece:
            case Text(text):
                return _choice(i, {"content": text})
            case Name(name):
                self._calls[i] += 1
                begun = {"index": self._calls[i] - 1, **_call(Call(name))}
                return _choice(i, {"tool_calls": [begun]})
            case Arguments(text):
                more = {"index": self._calls[i] - 1, "function": {"arguments": text}}
                return _choice(i, {"tool_calls": [more]})
            case Ended():
                return _choice(i, {}, piece.reason)
        raise AssertionError(piece)


def _choice(i: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": i, "delta": delta, "finish_reason": reason, "logprobs": None}
