"""How a server runs: where it listens, whom it lets in, and the sizes it keeps to.

Law: what is unsafe is refused here, before a socket is open.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from mezzotint.errors import UsageError

SHORTEST_KEY = 16  # characters of an API key


@dataclass(frozen=True, slots=True)
class Settings:
    """name: the model's id. hosts: names, beside addresses and localhost, that a request may be
    sent to. slots, queue: requests that run and that wait. deadline: seconds that a request may
    take, its wait included. drain: seconds that running requests have after SIGTERM.

    Sizes: body_bytes of a request, schema_chars of one schema as JSON, tools and candidates of
    one request. Raises UsageError for a value out of range, or an address that others can reach
    without a key.
    """

    name: str
    host: str = "127.0.0.1"
    port: int = 8383
    slots: int = 8
    queue: int = 64
    prefix_bytes: int = 256 << 20
    api_key: str | None = field(default=None, repr=False)
    hosts: tuple[str, ...] = ()
    deadline: float = 300.0
    drain: float = 30.0
    body_bytes: int = 4 << 20
    schema_chars: int = 64 << 10
    tools: int = 64
    candidates: int = 16
    log_requests: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise UsageError(f"port is {self.port}; it lies in 0…65535, and 0 takes a free one")
        for name in ("slots", "queue", "deadline"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be more than 0")
        if self.api_key is not None and len(self.api_key) < SHORTEST_KEY:
            hint = "make one with `openssl rand -hex 24`"
            raise UsageError(f"an API key has at least {SHORTEST_KEY} characters", hint)
        if not loopback(self.host) and self.api_key is None:
            hint = "set MEZZOTINT_API_KEY, give --api-key-file, or listen on 127.0.0.1"
            raise UsageError(f"without an API key, {self.host} would let everyone in", hint)


def loopback(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
