"""Passes of several sessions run as one: whoever needs the model meets here and rides along.

A session's logits are those it would have alone: to the bit on the native core, by `Session`'s
law. One thread runs every pass. It knows sessions and passes; nothing of jobs, queues or text.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mezzotint.backend import Pass, Session
from mezzotint.canvas import FloatArray, IntArray
from mezzotint.errors import Cancelled, MezzotintError

PIECE = 64  # rows of a long prompt that ride at a time, so that no window waits long for it
ROWS = 256  # of one pass: beyond them the arithmetic costs as much as two passes do
PATIENCE = 0.1  # seconds, at most, to wait for one who is between two passes


class ScoreMany(Protocol):
    """One pass for several sessions: logits (W, V) of each, as its own `score` gives them."""

    def __call__(
        self, sessions: Sequence[Session], passes: Sequence[Pass], wants: Sequence[IntArray]
    ) -> list[FloatArray]: ...


def in_turn(
    sessions: Sequence[Session], passes: Sequence[Pass], wants: Sequence[IntArray]
) -> list[FloatArray]:
    """`ScoreMany` for an engine that has none."""
    each = zip(sessions, passes, wants, strict=True)
    return [session.score(rows, want) for session, rows, want in each]


@dataclass(slots=True, eq=False)
class _Order:
    """A pass that waits for its logits.

    ahead: leading rows already computed and kept. piece: leading rows of what is left that
    ride next, 0 if all that is left does.
    """

    session: Session
    rows: Pass
    want: IntArray
    thread: int = field(default_factory=threading.get_ident)
    ahead: int = 0
    done: Future[FloatArray] = field(default_factory=Future)
    piece: int = field(init=False)

    def __post_init__(self) -> None:
        self.piece = self._leading()

    def _leading(self) -> int:
        """Rows that may go ahead of the others: none is wanted, and their cached keys and
        values give the others what those in the same pass would."""
        rows, left = self.rows, len(self.rows.tokens)
        if left <= PIECE or rows.hide[0] < rows.hide[1]:
            return 0
        most = min(PIECE, int(self.want.min()) if len(self.want) else left)
        follows = rows.positions[:most] == np.arange(most) + self.session.length
        if isinstance(rows.visible, str):
            return most if rows.visible == "causal" and follows.all() else 0
        for n in range(most if follows.all() else 0, 0, -1):
            if rows.visible[n:, :n].all() and not rows.visible[:n, n:].any():
                return n
        return 0

    def part(self) -> tuple[Pass, IntArray]:
        """The rows that ride in the next pass: a piece, or all that is left."""
        if self.piece:
            return _slice(self.rows, 0, self.piece), np.empty(0, np.int32)
        return self.rows, self.want

    def advance(self) -> None:
        """Keep the piece that was computed; the rest is what is left."""
        self.session.keep(self.piece)
        self.rows = _slice(self.rows, self.piece, len(self.rows.tokens))
        self.want = self.want - self.piece
        self.ahead += self.piece
        self.piece = self._leading()


def _slice(rows: Pass, start: int, stop: int) -> Pass:
    visible = rows.visible
    if not isinstance(visible, str):
        visible = visible[start:stop, start:stop]
    return Pass(rows.tokens[start:stop], rows.positions[start:stop], visible)


class Batcher:
    """Runs what waits as one pass, again and again, until `close`.

    A pass starts when everyone who rode in an earlier one has ordered again or left. Who takes
    longer for a step than the last pass took (a wait as dear as the pass it would save) is not
    waited for, until it orders again. So one alone never waits.
    """

    def __init__(self, score_many: ScoreMany = in_turn) -> None:
        self.sizes: Counter[int] = Counter()  # sessions in a pass → passes
        self.rows = 0
        self._score_many = score_many
        self._changed = threading.Condition()
        self._orders: list[_Order] = []
        self._between: set[int] = set()  # threads that have their logits, and will order again
        self._patience = 0.0
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="passes", daemon=True)
        self._thread.start()

    def submit(self, order: _Order) -> None:
        """Raises Cancelled after `close`."""
        with self._changed:
            if self._closed:
                raise Cancelled("the server is closing")
            self._orders.append(order)
            self._gone(order.thread)

    def leave(self) -> None:
        """The calling thread will order no more for now: nobody waits for it."""
        with self._changed:
            self._gone(threading.get_ident())

    def close(self) -> None:
        """Ends the thread; orders that wait raise Cancelled."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _gone(self, thread: int) -> None:
        self._between.discard(thread)
        if not self._between:
            self._changed.notify()

    def _serve(self) -> None:
        while batch := self._gather():
            self._run(batch)
        for order in self._orders:
            if order.done.set_running_or_notify_cancel():
                order.done.set_exception(Cancelled("the server is closing"))

    def _gather(self) -> list[_Order]:
        """The orders of the next pass; none when closed."""
        with self._changed:
            while not self._closed:
                self._changed.wait_for(self._ready, self._patience)
                self._between.clear()
                self._changed.wait_for(lambda: self._orders or self._closed)
                if batch := self._choose():
                    return batch
        return []

    def _ready(self) -> bool:
        return self._closed or (bool(self._orders) and not self._between)

    def _choose(self) -> list[_Order]:
        """The oldest that fit; of long ones a piece of one, whose rest then waits behind all."""
        orders = [order for order in self._orders if not order.done.cancelled()]
        batch: list[_Order] = []
        rows = 0
        for order in orders:
            if order.piece and any(other.piece for other in batch):
                continue
            rows += len(order.part()[0].tokens)
            if batch and rows > ROWS:
                break
            batch.append(order)
        self._orders = [order for order in orders if order not in batch]
        return batch

    def _run(self, batch: list[_Order]) -> None:
        parts = [order.part() for order in batch]
        began = time.perf_counter()
        scored = self._scored([order.session for order in batch], parts)
        self._patience = min(time.perf_counter() - began, PATIENCE)
        self.sizes[len(batch)] += 1
        self.rows += sum(len(rows.tokens) for rows, _ in parts)
        ended, going = [], []
        for order, result in zip(batch, scored, strict=True):
            if order.piece and not isinstance(result, Exception):
                order.advance()
                going.append(order)
            elif order.done.set_running_or_notify_cancel():
                ended.append((order, result))
        with self._changed:
            self._orders += going
            self._between |= {order.thread for order, _ in ended}
        for order, result in ended:
            if isinstance(result, Exception):
                order.done.set_exception(result)
            else:
                order.done.set_result(result)

    def _scored(
        self, sessions: list[Session], parts: list[tuple[Pass, IntArray]]
    ) -> list[FloatArray | Exception]:
        """Logits of each, or its error: whose fault a failed pass is shows when each runs alone."""
        try:
            passes, wants = zip(*parts, strict=True)
            return list(self._score_many(sessions, passes, wants))
        except Exception as error:
            if len(sessions) == 1:
                return [error]
            return [self._scored([s], [p])[0] for s, p in zip(sessions, parts, strict=True)]


class Ride:
    """What one caller's sessions share: another thread may `stop` them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: MezzotintError | None = None
        self._waits: Future[FloatArray] | None = None

    def stop(self, error: MezzotintError) -> None:
        """The pass that is waited for raises `error` at once, and so does every later one."""
        with self._lock:
            self._error = self._error or error
            if self._waits:
                self._waits.cancel()

    def run(self, batcher: Batcher, order: _Order) -> FloatArray:
        with self._lock:
            if self._error:
                raise self._error
            batcher.submit(order)
            self._waits = order.done
        try:
            return order.done.result()
        except CancelledError:
            assert self._error
            raise self._error from None


class BatchedSession:
    """A `Session` whose passes ride with those of others. `inner` is its own from now on."""

    def __init__(self, batcher: Batcher, inner: Session, ride: Ride) -> None:
        self._batcher, self._inner, self._ride = batcher, inner, ride
        self._ahead = 0  # rows of the last pass that `inner` keeps already

    @property
    def length(self) -> int:
        return self._inner.length - self._ahead

    @property
    def vocab(self) -> int:
        return self._inner.vocab

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        """See `Session.score`. Raises what the ride was stopped with."""
        if self._ahead:
            self.truncate(self.length)
        order = _Order(self._inner, rows, want)
        try:
            return self._ride.run(self._batcher, order)
        finally:
            self._ahead = order.ahead

    def keep(self, count: int) -> None:
        ahead, self._ahead = self._ahead, 0
        if count < ahead:
            self._inner.truncate(self._inner.length - ahead + count)
        else:
            self._inner.keep(count - ahead)

    def truncate(self, length: int) -> None:
        if self._ahead:
            self._inner.truncate(self.length)
            self._ahead = 0
        self._inner.truncate(length)

    def fork(self) -> BatchedSession:
        return BatchedSession(self._batcher, self.bare(), self._ride)

    def bare(self) -> Session:
        """A session of the engine itself with the same cached rows."""
        inner = self._inner.fork()
        inner.truncate(self.length)
        return inner


class Rider:
    """A model's sessions, riding: what `dataclasses.replace(model, engine=…)` takes."""

    def __init__(self, batcher: Batcher, opens: Callable[[], Session], ride: Ride) -> None:
        self._batcher, self._opens, self._ride = batcher, opens, ride

    def session(self) -> BatchedSession:
        return BatchedSession(self._batcher, self._opens(), self._ride)
