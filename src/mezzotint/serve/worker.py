"""The worker owns the model: jobs wait in a fair queue, decode in threads, and share passes.

Every job runs the one decode loop in a thread of its own; its session rides in the batcher's
passes, so a job's text is what it would be alone. Threads: one for passes, one that starts jobs
and watches deadlines, and one a running job. It knows nothing of HTTP.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from mezzotint import generate
from mezzotint.backend import Session, extend
from mezzotint.canvas import Canvas
from mezzotint.family import Family, Regime
from mezzotint.generate import Result, Tokenizer, infill, stream
from mezzotint.model import Model
from mezzotint.options import Options, plan_for, policy_for
from mezzotint.plan import Plan
from mezzotint.serve.batching import BatchedSession, Batcher, Ride, Rider, in_turn
from mezzotint.serve.beginnings import Beginnings
from mezzotint.serve.job import Job, Task
from mezzotint.serve.slots import Lease, Slots

__all__ = ["Job", "Stats", "Task", "Worker"]

TOY_KV = 16  # bytes of a token, where an engine does not say


@dataclass(frozen=True, slots=True)
class Stats:
    """What the worker does now, and has done since it began.

    passes: sessions in a pass → so many passes. rows: of all passes. prefix_tokens: rows of
    prompts that were not computed again, in prefix_hits of the requests.
    """

    running: int
    waiting: int
    finished: int
    passes: Mapping[int, int]
    rows: int
    prefix_bytes: int
    prefix_hits: int
    prefix_misses: int
    prefix_tokens: int


class _Candidates:
    """Tasks submitted together: what the first computes of their prompt, the others fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begun = Beginnings(1 << 62, 1)


@dataclass(frozen=True, slots=True)
class _Riding:
    """A model that is no `Model`, its sessions riding."""

    family: Family
    context: int
    tokenizer: Tokenizer
    rider: Rider

    def session(self) -> Session:
        return self.rider.session()


class Worker:
    """Runs up to `slots` jobs at once and lets `queue` more wait. Use it as a context.

    prefix_bytes: of KV kept for prompts that begin alike.
    """

    def __init__(
        self,
        model: generate.Model,
        slots: int = 8,
        queue: int = 64,
        prefix_bytes: int = 256 << 20,
    ) -> None:
        self._alone = model
        engine = getattr(model, "engine", None)
        self._slots = Slots(slots, queue)
        self._batcher = Batcher(getattr(engine, "score_many", in_turn))
        self._beginnings = Beginnings(prefix_bytes, getattr(engine, "kv_bytes_per_token", TOY_KV))
        self._threads = ThreadPoolExecutor(slots, "job")

    # ---- for callers -------------------------------------------------------------------

    @property
    def model(self) -> generate.Model:
        """The model, its sessions riding in the worker's passes; use it inside `slot`."""
        return self._riding(Ride())

    def submit(self, tasks: Sequence[Task]) -> list[Job]:
        """A job for each; several tasks of one prompt are candidates: it is computed once.

        Raises Busy when they do not fit in the queue or the worker closes; UsageError for
        options the family cannot follow, and for more tasks than can ever fit.
        """
        for task in tasks:
            _plan(self._alone.family, task)
        candidates = _Candidates()
        jobs = [Job(task, partial(self._begin, candidates), self._slots.wake) for task in tasks]
        self._slots.enter(jobs)
        return jobs

    @contextmanager
    def slot(self, client: str = "") -> Iterator[generate.Model]:
        """Hold a slot, for a thread that decodes by itself: its riding model.

        Waits for its turn. Raises Busy as `submit` does; Cancelled when the worker closes.
        """
        lease = Lease(client)
        self._slots.enter([lease])
        began = time.monotonic()
        try:
            lease.wait()
            began = time.monotonic()
            yield self.model
        finally:
            lease.over = True
            self._batcher.leave()
            self._slots.leave(lease, time.monotonic() - began)

    def begun(self, tokens: Sequence[int]) -> BatchedSession:
        """A riding session that holds the rows of a beginning that comes again, from memory or
        computed; use it inside `slot`. Empty where cached rows are not causal."""
        if _block(self._alone.family, Options()) != 1:
            return self._seated(tokens, 0, Ride(), ())
        session = self._seated(tokens, 1, Ride(), (self._beginnings,))
        extend(session, tokens[session.length :])
        self._beginnings.hold(tokens, session.bare())
        return session

    def stats(self) -> Stats:
        running, waiting = self._slots.counts()
        held = self._beginnings
        passes = dict(sorted(self._batcher.sizes.copy().items()))
        return Stats(
            running, waiting, self._slots.ended, passes, self._batcher.rows,
            held.bytes, held.hits, held.misses, held.tokens,
        )  # fmt: skip

    def close(self, drain_seconds: float = 0.0) -> None:
        """Take no more; let what is there finish for so long, then cancel it. Ends all threads."""
        self._slots.close(drain_seconds)
        self._threads.shutdown()
        self._batcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- a job -------------------------------------------------------------------------

    def _begin(self, candidates: _Candidates, job: Job) -> None:
        self._threads.submit(self._run, candidates, job)

    def _run(self, candidates: _Candidates, job: Job) -> None:
        began = time.monotonic()
        outcome: Result | Exception
        try:
            outcome = self._decode(candidates, job)
        except Exception as error:
            outcome = error
        self._batcher.leave()
        self._slots.leave(job, time.monotonic() - began)
        job.end(outcome)

    def _decode(self, candidates: _Candidates, job: Job) -> Result:
        task, model = job.task, self._riding(job.ride)
        if task.parts is not None:
            return infill(model, task.parts, task.options)
        with candidates.lock:
            block = _block(model.family, task.options)
            known = (candidates.begun, self._beginnings) if block else ()
            session = self._seated(task.prompt, block, job.ride, known)
            job.cached = max(min(session.length, len(task.prompt) - 1), 0)
            run = stream(model, task.prompt, task.options, session, task.grammar)
            began = time.perf_counter()
            _plan(model.family, task).prefill(session, Canvas.of([task.prompt, 1], -1), whole=True)
            seconds = time.perf_counter() - began
            for beginnings in known:
                beginnings.hold(task.prompt[: session.length], session.bare(), block)
        for step in run:
            job.push(step)
        result = run.result()
        if block:
            tokens = result.canvas.tokens[: session.length]
            self._beginnings.hold(tokens, session.bare(), block)
        return replace(result, prefill_seconds=result.prefill_seconds + seconds)

    def _seated(
        self, tokens: Sequence[int], block: int, ride: Ride, known: Sequence[Beginnings]
    ) -> BatchedSession:
        """A riding session with as much of `tokens` as is known."""
        forks = (beginnings.fork(tokens, block) for beginnings in known)
        inner = next(filter(None, forks), None) or self._alone.session()
        return BatchedSession(self._batcher, inner, ride)

    def _riding(self, ride: Ride) -> generate.Model:
        rider = Rider(self._batcher, self._alone.session, ride)
        if isinstance(self._alone, Model):
            return replace(self._alone, engine=rider)
        return _Riding(self._alone.family, self._alone.context, self._alone.tokenizer, rider)


def _plan(family: Family, task: Task) -> Plan:
    """Raises UsageError for options the family cannot follow."""
    options = task.options
    policy = policy_for(family, options, task.parts is not None, task.grammar is not None)
    return plan_for(family, policy, options.cache, options.block)


def _block(family: Family, options: Options) -> int:
    """Within how many positions cached rows see what comes after them; 0: without bound."""
    if family.regime is Regime.FULL:
        return 0
    return (options.block or family.block) if family.regime is Regime.BLOCK_CAUSAL else 1
