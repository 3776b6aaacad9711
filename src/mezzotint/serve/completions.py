"""POST /v1/completions: a text continued, or a hole in it filled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from mezzotint.conversation import raw_ids
from mezzotint.generate import Options
from mezzotint.serve import asked as ask
from mezzotint.serve.answer import Ended, Piece, Text, together
from mezzotint.serve.asked import Asked
from mezzotint.serve.desk import Desk, answer
from mezzotint.serve.problems import bad
from mezzotint.serve.replies import chunks, whole
from mezzotint.serve.sse import STREAMS, streamed, unless_gone
from mezzotint.serve.wire_completions import CompletionRequest, CompletionResponse

SHORT = 16  # tokens of an answer, where a request says nothing: OpenAI's number


def router(desk: Desk) -> APIRouter:
    routes = APIRouter()

    @routes.post(
        "/v1/completions", response_model=CompletionResponse, responses=STREAMS, tags=["OpenAI"]
    )
    async def complete(body: CompletionRequest, request: Request) -> Any:
        """A text continued as it is, or what is missing before its suffix."""
        asked = await run_in_threadpool(_read, body, desk, desk.client(body, request))
        pieces = together(desk.answers(asked))
        head = asked.head("cmpl", "text_completion")
        if body.stream:
            usage = bool(body.stream_options and body.stream_options.include_usage)
            return await streamed(request, chunks(desk, asked, pieces, head, _Texts(), usage))
        messages, ends = await unless_gone(request, whole(asked, pieces))
        told, block = desk.totals(asked, ends)
        choices = [_choice(i, made.text, made.reason) for i, made in enumerate(messages)]
        return answer({**head, "choices": choices, "usage": told, "mezzotint": block})

    return routes


def _read(body: CompletionRequest, desk: Desk, client: str) -> Asked:
    """Raises Problem or UsageError for what cannot be done."""
    ask.check(body, desk.settings)
    text = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
    prompt = raw_ids(desk.model.tokenizer, text)
    after = desk.model.tokenizer.encode(body.suffix or "")
    most = body.max_tokens or (max(Options().lengths) if after else SHORT)
    options = ask.options_of(body, desk.model, len(prompt) + len(after), most, body.seed)
    parts: ask.Parts | None = None
    if after:
        if body.mezzotint.canvas:
            raise bad("a hole is filled without canvas events", "mezzotint.canvas")
        lengths = tuple(n for n in Options().lengths if n < most)
        options = replace(options, lengths=(*lengths, most), grow=min(options.grow, most))
        parts = (tuple(prompt), None, tuple(after))
    return Asked(
        desk.settings.name,
        ask.tasks_of(prompt, options, None, body.n or 1, client, desk.settings, parts),
        ask.mode_of(desk.model, options, infill=parts is not None),
        ask.stops_of(body.stop),
        canvas=body.mezzotint.canvas,
    )


class _Texts:
    """The choices of chunks."""

    def opening(self, i: int) -> None:
        return None

    def choice(self, i: int, piece: Piece) -> dict[str, Any]:
        text = piece.text if isinstance(piece, Text) else ""
        return _choice(i, text, piece.reason if isinstance(piece, Ended) else None)


def _choice(i: int, text: str, reason: str | None) -> dict[str, Any]:
    return {"index": i, "text": text, "finish_reason": reason, "logprobs": None}
