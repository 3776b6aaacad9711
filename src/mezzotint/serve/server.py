"""A socket, an application, uvicorn between them: from the first request to the drained last.

SIGTERM and Ctrl-C take no more requests, let running ones finish for `drain` seconds, and end.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from mezzotint.errors import UsageError
from mezzotint.serve.settings import Settings


def listen(settings: Settings) -> socket.socket:
    """A socket bound to the address, that takes no connection yet.

    Raises UsageError if the address is in use or is none of this machine's.
    """
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        if os.name == "posix":  # elsewhere it would let two servers have one port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        what = f"cannot listen on {settings.host} port {settings.port}: {error.strerror}"
        raise UsageError(what, "choose another with --port; 0 takes a free one") from None
    return made


def url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/"


def run(app: FastAPI, bound: socket.socket, settings: Settings, ready: Callable[[], None]) -> None:
    """Serve until a signal. ready: called once requests are taken. Ctrl-C raises
    KeyboardInterrupt after the drain; SIGTERM just ends."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("mezzotint.serve").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it again when it is done
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(settings.drain)),
    )
    _Server(config, ready).run(sockets=[bound])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()
