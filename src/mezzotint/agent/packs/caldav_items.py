"""A CalDAV collection as the items of a calendar, through the caldav library.

    [calendar]                             # settings.toml of the workspace
    url = "https://cloud.example.org/dav"  # of the server, or of one calendar
    calendar = "Personal"                  # which; the first one if not said
    user = "anna"
    password_env = "CALENDAR_PASSWORD"     # the environment variable that has the password

Items go over the wire as they are. What is in them is `ics`; who may undo a change, `journal`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from mezzotint.errors import BackendError, MezzotintError, UsageError

PLACE = "caldav"
_FRESH = 2.0  # seconds for which what the server said is believed: one call asks many times
_PATIENCE = 15  # seconds to wait for the server


class CalDavItems:
    """One calendar of a server. Raises UsageError for incomplete settings, BackendError if
    the library is missing or the server refuses."""

    place = PLACE

    def __init__(self, settings: Mapping[str, Any]) -> None:
        try:
            from caldav.davclient import DAVClient
        except ImportError:
            raise BackendError(
                "a CalDAV calendar needs the caldav package", "pip install 'mezzotint[servers]'"
            ) from None
        variable = str(settings.get("password_env", ""))
        if variable and variable not in os.environ:
            raise UsageError(f"the environment has no {variable}, the calendar's password_env")
        if not settings.get("url"):
            raise UsageError("[calendar] of settings.toml has no url")
        self._client = DAVClient(
            url=str(settings["url"]),
            username=settings.get("user"),
            password=os.environ.get(variable),
            timeout=_PATIENCE,
        )
        self._calendar = self._chosen(settings.get("calendar"))
        self._all: list[tuple[str, bytes]] = []
        self._asked_at = -math.inf

    def close(self) -> None:
        """End the connection to the server."""
        self._client.close()

    def _chosen(self, name: str | None) -> Any:
        client: Any = self._client
        found: dict[str, Any] = _asked(
            lambda: {str(c.get_display_name()): c for c in client.principal().calendars()}
        )
        if not found or (name is not None and name not in found):
            has = ", ".join(found) or "none"
            raise UsageError(f"no calendar {name!r} on the server; it has: {has}")
        return found[name] if name is not None else next(iter(found.values()))

    def all(self) -> list[tuple[str, bytes]]:
        """Every event's resource, by its address. Asked again after a write, or a moment."""
        if time.monotonic() - self._asked_at > _FRESH:
            events: list[Any] = _asked(lambda: self._calendar.events())
            self._all = [(str(event.url), _bytes(event.data)) for event in events]
            self._asked_at = time.monotonic()
        return self._all

    def path_of(self, uid: str) -> str:
        return urljoin(str(self._calendar.url), f"{uid}.ics")

    def read(self, path: str) -> bytes | None:
        response = _asked(lambda: self._client.request(path))
        if response.status == 404:
            return None
        _expect(response, path)
        return _bytes(response.raw)

    def put(self, path: str, data: bytes | None) -> None:
        self._asked_at = -math.inf
        if data is None:
            _expect(_asked(lambda: self._client.delete(path)), path, 404)
            return
        head = {"Content-Type": "text/calendar; charset=utf-8"}
        _expect(_asked(lambda: self._client.put(path, data.decode("utf-8"), head)), path)


def _asked(ask: Any) -> Any:
    try:
        return ask()
    except MezzotintError:
        raise
    except Exception as e:  # the library's own, and those of the HTTP client below it
        raise BackendError(f"the calendar server did not answer rightly: {e}") from None


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


def _expect(response: Any, path: str, *also: int) -> None:
    if response.status >= 300 and response.status not in also:
        raise BackendError(f"the calendar server refused {path}: {response.status}")
