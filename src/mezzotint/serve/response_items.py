"""The items of a response: a message or calls, whole or growing event by event."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from mezzotint.serve.answer import Ended, Piece, Text
from mezzotint.serve.deltas import Arguments, Name
from mezzotint.serve.replies import Call, Json, Message
from mezzotint.serve.sse import event


def output(message: Message) -> list[Json]:
    if not message.calls:
        return [_said(message.text, message.reason)]
    return [_called(call) for call in message.calls]


def _said(text: str, reason: str) -> Json:
    status = "incomplete" if reason == "length" else "completed"
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant"}
    return {**item, "status": status, "content": [part]}


def _called(call: Call) -> Json:
    item = {"id": f"fc_{secrets.token_hex(12)}", "type": "function_call", "call_id": call.id}
    return {**item, "name": call.name, "arguments": call.arguments, "status": "completed"}


class Story:
    """Items as they grow: each is added, grows by deltas, and is done before the next."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self._number = 0
        self._open = False

    @property
    def began(self) -> bool:
        return self._number > 0

    def event(self, kind: str, **more: Any) -> str:
        number, self._number = self._number, self._number + 1
        return event({"type": kind, "sequence_number": number, **more}, kind)

    def tell(self, piece: Piece) -> Iterator[str]:
        match piece:
            case Text(text):
                if not self._open:
                    yield from self._say()
                self.items[-1]["content"][0]["text"] += text
                more = {**self._place(), "content_index": 0, "logprobs": []}
                yield self.event("response.output_text.delta", delta=text, **more)
            case Name(name):
                yield from self._close("completed")
                yield self._add(_called(Call(name)))
            case Arguments(text):
                self.items[-1]["arguments"] += text
                kind = "response.function_call_arguments.delta"
                yield self.event(kind, delta=text, **self._place())
            case Ended():
                if not self.items:
                    yield from self._say()
                yield from self._close("incomplete" if piece.reason == "length" else "completed")

    def _say(self) -> Iterator[str]:
        item = _said("", "")
        part = item["content"][0]
        yield self._add({**item, "content": []})
        self.items[-1]["content"] = [part]
        more = {**self._place(), "content_index": 0}
        yield self.event("response.content_part.added", part=part, **more)

    def _add(self, item: Json) -> str:
        self.items.append(item)
        self._open = True
        at = len(self.items) - 1
        shown = {**item, "status": "in_progress"}
        return self.event("response.output_item.added", output_index=at, item=shown)

    def _close(self, status: str) -> Iterator[str]:
        if not self._open:
            return
        self._open = False
        item, place = self.items[-1], self._place()
        item["status"] = status
        if item["type"] == "message":
            part, more = item["content"][0], {**place, "content_index": 0}
            text = {"text": part["text"], "logprobs": []}
            yield self.event("response.output_text.done", **more, **text)
            yield self.event("response.content_part.done", **more, part=part)
        else:
            called = {"name": item["name"], "arguments": item["arguments"]}
            yield self.event("response.function_call_arguments.done", **place, **called)
        yield self.event("response.output_item.done", output_index=len(self.items) - 1, item=item)

    def _place(self) -> Json:
        return {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}
