"""A queue in which clients take turns: one who asks for much waits behind one who asks for little.

It knows what waits and for whom; nothing of threads (its owner holds a lock) or models.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """First come, first served among one client's; the clients one after another."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}  # in the order of whose turn it is

    def __len__(self) -> int:
        return sum(len(line) for line in self._lines.values())

    def __iter__(self) -> Iterator[T]:
        for line in self._lines.values():
            yield from line

    def put(self, client: str, item: T) -> None:
        self._lines.setdefault(client, deque()).append(item)

    def take(self) -> T:
        """Whose turn it is; their client's next turn is after all others'. Not when empty."""
        client = next(iter(self._lines))
        line = self._lines.pop(client)
        item = line.popleft()
        if line:
            self._lines[client] = line
        return item

    def keep(self, items: set[T]) -> None:
        """Drop all but these."""
        kept = {
            client: deque(i for i in line if i in items) for client, line in self._lines.items()
        }
        self._lines = {client: line for client, line in kept.items() if line}
