"""Who may speak to the server, and how much: checked before anything of a request is read.

A web page that a user has open may not reach the server through the user's browser: the Host
must be an address or a known name (a page that rebinds its own name to 127.0.0.1 shows that
name), and an Origin must be the server's own. It knows no endpoint.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mezzotint.serve.problems import Problem
from mezzotint.serve.settings import Settings

GUARDED = ("/v1/", "/metrics")  # paths that need the key, where there is one
Answered = Callable[[str, int, float], None]
log = logging.getLogger(__name__)


class Guard:
    """ASGI middleware that refuses what `settings` do not let in.

    answered: told of every request: its route's path, the status, seconds.
    """

    def __init__(self, app: ASGIApp, settings: Settings, answered: Answered) -> None:
        self._app, self._settings, self._answered = app, settings, answered
        self._names = {"localhost", settings.host.lower(), *map(str.lower, settings.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        body = _Body(receive, self._settings.body_bytes, keep=self._settings.log_requests)
        answer = _Answer(send)
        began = time.perf_counter()
        try:
            self._check(scope["path"], headers)
            await self._app(scope, body.receive, answer.send)
        except Problem as problem:
            if answer.status == 0:
                await problem.response()(scope, receive, answer.send)
        finally:
            status, seconds = answer.status or 500, time.perf_counter() - began
            self._answered(getattr(scope.get("route"), "path", "other"), status, seconds)
            if self._settings.log_requests:
                text = bytes(body.kept).decode(errors="replace")
                what = (scope["method"], scope["path"], status, seconds, text)
                log.info("%s %s %d %.3f s %s", *what)

    def _check(self, path: str, headers: Mapping[str, str]) -> None:
        host = headers.get("host", "")
        if not self._known(host):
            raise Problem(403, "this Host is not served; see --allow-host", code="host_not_allowed")
        origin = headers.get("origin")
        if origin not in (None, f"http://{host}", f"https://{host}"):
            raise Problem(403, "requests of other sites' pages are refused", code="cross_origin")
        if self._settings.api_key and path.startswith(GUARDED):
            given = headers.get("authorization", "").encode("latin-1")
            known = f"Bearer {self._settings.api_key}".encode()
            if not hmac.compare_digest(given, known):
                challenge = {"WWW-Authenticate": "Bearer"}
                message = "give the server's API key as `Authorization: Bearer …`"
                code = "invalid_api_key"
                raise Problem(401, message, "authentication_error", code=code, headers=challenge)
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > self._settings.body_bytes:
            raise _too_large(self._settings.body_bytes)

    def _known(self, host: str) -> bool:
        """Whether the Host header is a known name or an address, with or without a port."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Body:
    """A request's body, counted as it comes."""

    def __init__(self, receive: Receive, most: int, keep: bool) -> None:
        self._receive, self._most, self._keep = receive, most, keep
        self._size, self.kept = 0, bytearray()

    async def receive(self) -> Message:
        message = await self._receive()
        part = message.get("body", b"")
        self._size += len(part)
        if self._size > self._most:
            raise _too_large(self._most)
        if self._keep:
            self.kept += part
        return message


class _Answer:
    """Remembers the status that was sent; 0 before."""

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _too_large(most: int) -> Problem:
    return Problem(413, f"a request has at most {most} bytes", code="request_too_large")
