"""One turn of the agent over HTTP: it runs in a thread while a client listens.

Law: nothing is done for a client that left. Its turn ends at the next event, and a call that
waits for consent is denied: when the client leaves, when nobody replies in time, when the server
goes down. It knows events and consent; nothing of HTTP, models or what tools do.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future
from typing import Any

from mezzotint import toolcall
from mezzotint.agent.events import Event
from mezzotint.agent.tool import Tool
from mezzotint.agent.transcript import told
from mezzotint.serve.problems import problem
from mezzotint.toolcall import Call

log = logging.getLogger(__name__)
PATIENCE = 300.0  # seconds that a call waits for consent

Told = tuple[str, dict[str, Any]]


class Left(Exception):
    """Nobody listens any more."""


class Turn:
    """What lies between the thread that acts and the client that listens.

    Made, read and left on the event loop; `tell` and `consent` are the thread's.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Told | None] = asyncio.Queue()
        self._asked: dict[str, Future[bool]] = {}
        self._left = False
        self._lock = threading.Lock()

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Raises Left."""
        if self._left:
            raise Left
        self._put((kind, data))

    def consent(self, call: Call, tool: Tool) -> bool:
        """Whether the client allows the call; waits for its reply."""
        name, reply = secrets.token_hex(8), Future[bool]()
        with self._lock:
            if self._left:
                return False
            self._asked[name] = reply
        shown = {"name": call.name, "arguments": dict(call.arguments)}
        self._put(("consent", {"id": name, "call": shown, "shown": toolcall.write([call])}))
        try:
            return reply.result(PATIENCE)
        except TimeoutError:
            return False
        finally:
            self._asked.pop(name, None)

    def reply(self, name: str, allow: bool) -> bool:
        """Answer the question `name`; False if it does not wait for one."""
        with self._lock:
            asked = self._asked.pop(name, None)
        if asked:
            asked.set_result(allow)
        return asked is not None

    def run(self, events: Iterator[Event], ended: Callable[[], None]) -> None:
        """Follow `events` in a thread of its own; `ended` is called there, whatever happens."""
        threading.Thread(target=self._run, args=(events, ended), name="agent", daemon=True).start()

    async def listen(self) -> AsyncGenerator[Told]:
        """What happens, to the end. Closed before that, the turn is left."""
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            self._leave()

    def _run(self, events: Iterator[Event], ended: Callable[[], None]) -> None:
        try:
            for event in events:
                self.tell(*told(event))
        except Left:
            pass
        except Exception as error:
            made = problem(error)
            if made.status_code >= 500:
                log.exception("the agent failed")
            self._put(("error", made.body()))
        finally:
            ended()
            self._put(None)

    def _leave(self) -> None:
        with self._lock:
            self._left = True
            asked, self._asked = self._asked, {}
        for reply in asked.values():
            reply.set_result(False)

    def _put(self, event: Told | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:  # the loop is closed: the server went down
            self._left = True
