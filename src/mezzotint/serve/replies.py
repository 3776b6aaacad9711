"""Pieces put together: as one message a candidate, or as OpenAI's chunks.

Endpoints differ in how a choice looks; when it is sent, and what comes with the last, is here.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from mezzotint.serve.answer import Ended, Piece, Shown, Text
from mezzotint.serve.asked import Asked
from mezzotint.serve.deltas import Arguments, Name
from mezzotint.serve.desk import Desk
from mezzotint.serve.sse import DONE, event

Pieces = AsyncGenerator[tuple[int, Piece]]
Json = dict[str, Any]


@dataclass(slots=True)
class Call:
    name: str
    arguments: str = ""
    id: str = field(default_factory=lambda: f"call_{secrets.token_hex(12)}")


@dataclass(slots=True)
class Message:
    """What one candidate wrote: text, or calls."""

    text: str = ""
    reason: str = ""
    calls: list[Call] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        match piece:
            case Text(text):
                self.text += text
            case Name(name):
                self.calls.append(Call(name))
            case Arguments(text):
                self.calls[-1].arguments += text
            case Ended():
                self.reason = piece.reason


async def whole(asked: Asked, pieces: Pieces) -> tuple[list[Message], list[Ended]]:
    """The messages in the order of the candidates, and how they ended."""
    messages = [Message() for _ in asked.tasks]
    ends: list[Ended] = []
    async with aclosing(pieces):
        async for i, piece in pieces:
            messages[i].add(piece)
            if isinstance(piece, Ended):
                ends.append(piece)
    return messages, ends


class Shape(Protocol):
    """How an endpoint's choices look in chunks."""

    def opening(self, i: int) -> Json | None:
        """The first choice of candidate `i`, before any piece of it."""
        ...

    def choice(self, i: int, piece: Piece) -> Json: ...


async def chunks(
    desk: Desk, asked: Asked, pieces: Pieces, head: Json, shape: Shape, wants_usage: bool
) -> AsyncGenerator[str]:
    """Server-sent events; `head` is what every chunk begins with."""
    began: set[int] = set()
    ends: list[Ended] = []
    usage: Json = {}
    async with aclosing(pieces):
        async for i, piece in pieces:
            if i not in began and (opening := shape.opening(i)):
                yield event({**head, "choices": [opening]})
            began.add(i)
            if isinstance(piece, Shown):
                yield event({"id": head["id"], "index": i, **piece.state}, "canvas")
                continue
            more: Json = {}
            if isinstance(piece, Ended):
                ends.append(piece)
                if len(ends) == len(asked.tasks):
                    usage, more["mezzotint"] = desk.totals(asked, ends)
            yield event({**head, "choices": [shape.choice(i, piece)], **more})
    if wants_usage:
        yield event({**head, "choices": [], "usage": usage})
    yield DONE
