"""Who runs and who waits: so many slots, a bounded queue in which clients take turns, deadlines.

One thread gives free slots to whose turn it is and ends what is overdue. It knows neither what
holds a slot nor how it runs.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from mezzotint.errors import Busy, Cancelled, MezzotintError, UsageError
from mezzotint.serve.turns import Turns


class Entry(Protocol):
    """What wants a slot: a job, or a thread that decodes by itself."""

    @property
    def client(self) -> str: ...
    @property
    def until(self) -> float | None:
        """Its deadline on the monotonic clock."""
        ...

    @property
    def over(self) -> bool:
        """Whether it wants a slot no more."""
        ...

    def begin(self) -> object:
        """It has a slot now. Returns at once."""
        ...

    def expire(self) -> None:
        """Its deadline has come."""
        ...

    def stop(self, error: MezzotintError) -> None:
        """End it with `error`: it then frees its slot soon."""
        ...


class Lease:
    """An `Entry` for a thread that waits here until it has a slot."""

    until = None

    def __init__(self, client: str) -> None:
        self.client, self.over = client, False
        self._granted = threading.Event()

    def wait(self) -> None:
        """Raises Cancelled when the server closes first."""
        self._granted.wait()
        if self.over:
            raise Cancelled("the server is closing")

    def begin(self) -> None:
        self._granted.set()

    def expire(self) -> None: ...

    def stop(self, error: MezzotintError) -> None:
        self.over = True
        self._granted.set()


class Slots:
    """slots: entries that hold one at a time. queue: places for those that wait."""

    def __init__(self, slots: int, queue: int) -> None:
        if slots < 1 or queue < 0:
            raise UsageError(f"slots is {slots}, queue is {queue}; they must be 1, 0 or more")
        self.ended = 0
        self._slots, self._queue = slots, queue
        self._changed = threading.Condition()
        self._waiting: Turns[Entry] = Turns()
        self._running: set[Entry] = set()
        self._mean = 1.0  # seconds that a slot is held, lately
        self._closing = self._closed = False
        self._thread = threading.Thread(target=self._schedule, name="slots", daemon=True)
        self._thread.start()

    def counts(self) -> tuple[int, int]:
        """How many run, and how many wait."""
        with self._changed:
            self._tidy()
            return len(self._running), len(self._waiting)

    def enter(self, entries: Sequence[Entry]) -> None:
        """All wait for slots, or none. Raises Busy without places for them, or when closing;
        UsageError for more than there can ever be."""
        most = self._slots + self._queue
        if len(entries) > most:
            raise UsageError(f"{len(entries)} tasks at once; this server takes {most} at most")
        with self._changed:
            self._tidy()
            over = len(self._running) + len(self._waiting) + len(entries) - most
            if self._closing:
                raise Busy("the server is closing", self._estimate(1))
            if over > 0:
                raise Busy(f"all {self._queue} places in the queue are taken", self._estimate(over))
            for entry in entries:
                self._waiting.put(entry.client, entry)
            self._changed.notify_all()

    def leave(self, entry: Entry, seconds: float) -> None:
        """The slot that `entry` held for so long is free."""
        with self._changed:
            self._running.discard(entry)
            self.ended += 1
            self._mean += (seconds - self._mean) / 8
            self._changed.notify_all()

    def wake(self) -> None:
        """An entry was stopped by another than this."""
        with self._changed:
            self._changed.notify_all()

    def close(self, drain_seconds: float) -> None:
        """Take no more; let what is there end for so long, then stop it. Waits for the slots,
        but for those of leases, and ends the thread."""
        with self._changed:
            self._closing = True
            self._changed.wait_for(lambda: not self._entries(), drain_seconds)
            for entry in self._entries():
                entry.stop(Cancelled("the server is closing"))
            self._changed.wait_for(lambda: all(isinstance(e, Lease) for e in self._running))
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _schedule(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                for entry in self._entries():
                    if not entry.over and entry.until is not None and now >= entry.until:
                        entry.expire()
                self._tidy()
                while len(self._waiting) and len(self._running) < self._slots:
                    entry = self._waiting.take()
                    self._running.add(entry)
                    entry.begin()
                ends = [e.until for e in self._entries() if e.until is not None and not e.over]
                self._changed.wait(max(min(ends) - now, 0) if ends else None)

    def _entries(self) -> list[Entry]:
        return [*self._running, *self._waiting]

    def _tidy(self) -> None:
        """What was stopped while it waited takes no place."""
        self._waiting.keep({entry for entry in self._waiting if not entry.over})

    def _estimate(self, places: int) -> int:
        """Whole seconds until so many slots will have become free."""
        return max(1, math.ceil(places * self._mean / self._slots))
