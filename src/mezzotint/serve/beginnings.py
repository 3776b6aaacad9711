"""Beginnings that requests share, such as a system message with its tools: their KV, in memory.

A session is kept under the tokens whose rows it holds; a request forks the one that shares
most with its prompt. Pages of forks are shared, so the bound counts more than is used. What
was used longest ago goes first. It is for exact caches: a cached row must not depend on what
comes after it (or after its block).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mezzotint.backend import Session, shared
from mezzotint.canvas import IntArray

PAGE = 64  # tokens; memory is taken by pages


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    block: int
    tokens: IntArray
    session: Session


class Beginnings:
    """most: bytes. each: bytes of one token's keys and values. Safe to use from any thread."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._held: list[_Held] = []  # used longest ago first
        self._lock = threading.Lock()
        self.hits = self.misses = self.tokens = 0  # tokens: rows that need not be computed

    def __len__(self) -> int:
        return len(self._held)

    @property
    def bytes(self) -> int:
        return sum(self._size(held.tokens) for held in list(self._held))

    def fork(self, tokens: Sequence[int], block: int = 1) -> Session | None:
        """A session with the longest held beginning of `tokens`, if there is any.

        block: rows see each other within so many positions; only whole blocks are shared.
        """
        ids = np.asarray(tokens, np.int32)
        with self._lock:
            same = [held for held in self._held if held.block == block]
            best = max(same, key=lambda held: shared(held.tokens, ids), default=None)
            length = shared(best.tokens, ids) // block * block if best else 0
            if best is None or not length:
                self.misses += 1
                return None
            self._use(best)
            self.hits += 1
            self.tokens += length
            session = best.session.fork()
        session.truncate(length)
        return session

    def hold(self, tokens: Sequence[int] | IntArray, session: Session, block: int = 1) -> None:
        """Keep a session that holds the rows of `tokens` and that nobody else uses."""
        ids = np.array(tokens, np.int32)
        if not len(ids):
            return
        with self._lock:
            same = [held for held in self._held if held.block == block]
            if longer := [h for h in same if shared(h.tokens, ids) == len(ids)]:
                self._use(longer[0])
                return
            for held in same:
                if shared(held.tokens, ids) == len(held.tokens):
                    self._held.remove(held)
            self._held.append(_Held(block, ids, session))
            while self._held and self.bytes > self._most:
                del self._held[0]

    def _use(self, held: _Held) -> None:
        self._held.remove(held)
        self._held.append(held)

    def _size(self, tokens: IntArray) -> int:
        return -(-len(tokens) // PAGE) * PAGE * self._each
