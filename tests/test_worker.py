"""The worker: jobs that share passes write what they write alone, and none outlives its caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mezzotint.backend import Pass, Session, extend, toy
from mezzotint.backend.native import NativeModel, score_many
from mezzotint.backend.toy import ToySession, ToyTokenizer
from mezzotint.canvas import IntArray
from mezzotint.constraint import json_schema
from mezzotint.errors import Busy, Cancelled, Deadline, TooLarge, UsageError
from mezzotint.family import Family, Regime
from mezzotint.generate import Model, Options, Result, generate, infill
from mezzotint.model import load
from mezzotint.serve.batching import PIECE, BatchedSession, Batcher, Ride
from mezzotint.serve.beginnings import Beginnings
from mezzotint.serve.worker import Job, Task, Worker
from test_engine import SHAPE, random_source

LONG = 50_000  # tokens: more than any test waits for


@dataclass(frozen=True)
class Tiny:
    """Random weights on the native core, with bytes of which some are no tokens of it."""

    family: Family
    engine: NativeModel
    context: int = 4096
    tokenizer: ToyTokenizer = field(default_factory=ToyTokenizer)

    def session(self) -> Session:
        return self.engine.session()


@pytest.fixture(scope="module")
def engine() -> NativeModel:
    return NativeModel.load(random_source(), "int8", 2, cache=False)


def tiny(engine: NativeModel, regime: Regime = Regime.CAUSAL_WINDOW, block: int = 8) -> Tiny:
    mask, stop = SHAPE.vocab - 1, SHAPE.vocab - 2
    return Tiny(Family("tiny", regime, True, mask, (stop,), "verify", block=block), engine)


def endless() -> toy.ToyModel:
    """Writes as much as it is asked for."""
    model = toy.load("toy-ar")
    return replace(model, context=LONG + 100, family=replace(model.family, stop_ids=()))


def ids(count: int, seed: int = 0) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(32, 127, count).tolist())


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await asyncio.wait_for(work(), 60)

    return asyncio.run(main())


def results(jobs: Sequence[Job]) -> list[Result | BaseException]:
    async def work() -> list[Result | BaseException]:
        return await asyncio.gather(*(job.result() for job in jobs), return_exceptions=True)

    return run(work)


def first(job: Job) -> None:
    """Returns when the job runs."""

    async def work() -> None:
        async for _ in job:
            return

    run(work)


def same(one: Result | BaseException, other: Result) -> bool:
    assert isinstance(one, Result), one
    told = [(r.text, r.tokens, r.stop, r.passes) for r in (one, other)]
    return told[0] == told[1] and all(
        np.array_equal(getattr(one.canvas, name), getattr(other.canvas, name))
        for name in ("tokens", "state", "confidence")
    )


@pytest.fixture
def threads() -> Iterator[None]:
    """No thread is left behind."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


# ---- one pass for several sessions --------------------------------------------------------


@pytest.mark.parametrize("weights", ["int4", "bf16"])
def test_a_pass_of_several_sessions_gives_each_what_it_gets_alone(weights: str) -> None:
    engine, rng = (
        NativeModel.load(random_source(), weights, 2, cache=False),
        np.random.default_rng(3),
    )
    for trial in range(10):
        together: list[Any] = [engine.session() for _ in range(rng.integers(2, 7))]
        passes, wants = [], []
        for n, session in enumerate(together):
            extend(session, ids(int(rng.integers(0, 150)), 10 * trial + n))
            passes.append(drawn(rng, session.length))
            rows = len(passes[-1].tokens)
            wants.append(rng.permutation(rows)[: rng.integers(0, rows + 1)].astype(np.int32))
        alone = [session.fork() for session in together]
        logits = score_many(together, passes, wants)
        for a, rows, want, got in zip(alone, passes, wants, logits, strict=True):
            assert np.array_equal(a.score(rows, want), got)
        for a, b in zip(alone, together, strict=True):  # the keys and values, too
            a.keep(1), b.keep(1)
            rows = drawn(rng, a.length)
            assert np.array_equal(*(s.score(rows, np.array([0], np.int32)) for s in (a, b)))


def drawn(rng: np.random.Generator, length: int) -> Pass:
    """A random pass after `length` rows: any visibility, some cached rows hidden."""
    m = int(rng.integers(1, 40))
    hide = tuple(sorted(rng.integers(0, length + 1, 2).tolist()))
    visible: Any = ("causal", "full", rng.random((m, m)) < 0.5)[rng.integers(0, 3)]
    at = np.arange(length, length + m, dtype=np.int32)
    return Pass(rng.integers(0, SHAPE.vocab, m).astype(np.int32), at, visible, (hide[0], hide[1]))


def test_a_session_is_once_in_a_pass_and_of_its_model(engine: NativeModel) -> None:
    session, at = engine.session(), np.arange(3, dtype=np.int32)
    other = NativeModel.load(random_source(seed=1), "int8", 2, cache=False).session()
    for pair in ([session, session], [session, other]):
        with pytest.raises(UsageError, match=r"in a pass|of one model"):
            score_many(pair, [Pass(at, at)] * 2, [at] * 2)


# ---- riding sessions ----------------------------------------------------------------------


def test_a_riding_session_is_a_session(threads: None) -> None:
    """Random orders, long ones among them: the same as the session it rides for."""
    rng, batcher = np.random.default_rng(0), Batcher()
    for _ in range(20):
        pair: list[Any] = [ToySession(8), BatchedSession(batcher, ToySession(8), Ride())]
        for _ in range(10):
            rows = long(rng, pair[0].length) if rng.random() < 0.5 else drawn(rng, pair[0].length)
            m = len(rows.tokens)
            want = np.array([m - 1, 0][: rng.integers(0, 3)], np.int32)
            a, b = (session.score(rows, want) for session in pair)
            assert np.array_equal(a, b)
            what = rng.integers(0, 4)
            kept, left = int(rng.integers(0, m + 1)), int(rng.integers(0, pair[0].length + 1))
            for i, session in enumerate(pair):
                if what > 1:
                    session.keep(kept)
                elif what:
                    session.truncate(left)
                pair[i] = session.fork() if what == 2 else session
            assert pair[0].length == pair[1].length
    batcher.close()
    with pytest.raises(Cancelled):
        pair[1].score(rows, want)


def long(rng: np.random.Generator, length: int) -> Pass:
    """More rows than ride at a time, causal or in blocks."""
    at = np.arange(length, length + rng.integers(PIECE + 1, 4 * PIECE), dtype=np.int32)
    blocks = at[:, None] // 8 >= at[None, :] // 8
    return Pass(
        rng.integers(0, 8, len(at)).astype(np.int32), at, ("causal", blocks)[rng.integers(2)]
    )


def test_a_long_prompt_rides_in_pieces(threads: None) -> None:
    sizes = []

    def score(sessions: Sequence[Session], passes: Sequence[Pass], wants: Any) -> Any:
        sizes.append([len(rows.tokens) for rows in passes])
        return [s.score(r, w) for s, r, w in zip(sessions, passes, wants, strict=True)]

    batcher = Batcher(score)
    session, alone = BatchedSession(batcher, ToySession(8), Ride()), ToySession(8)
    prompt = np.arange(1000, dtype=np.int32) % 8
    last = extend(session, prompt)
    assert last is not None
    assert np.array_equal(last, extend(alone, prompt))  # type: ignore[arg-type]
    assert max(max(size) for size in sizes) == PIECE
    batcher.close()


# ---- jobs ---------------------------------------------------------------------------------


def mixed() -> list[Task]:
    """Tasks of different policies, lengths, temperatures and grammars."""
    grammar = json_schema({"type": "object", "properties": {"a": {"type": "integer"}}})
    asked = [
        (5, Options(30, "left_to_right"), None),
        (200, Options(40, "verify"), None),
        (90, Options(20, "threshold:0.5"), None),
        (31, Options(25, "left_to_right", temperature=1.0, seed=5), None),
        (64, Options(50, "threshold:0.9", temperature=0.7, top_p=0.9, seed=6), None),
        (1, Options(30, "verify", temperature=1.0, seed=7), None),
        (40, Options(40, "left_to_right"), grammar),
        (70, Options(40, "verify"), grammar),
    ]
    return [Task(ids(n, n), options, grammar) for n, options, grammar in asked]


def check_alone(model: Model, tasks: Sequence[Task]) -> None:
    """Every task gives what it gives alone, with nothing known of its prompt and with all."""
    alone = [generate(model, t.prompt, t.options, grammar=t.grammar) for t in tasks]
    with Worker(model) as worker:
        for prefix in ("empty", "known"):
            jobs = [worker.submit([task])[0] for task in tasks]
            for task, wanted, got in zip(tasks, alone, results(jobs), strict=True):
                assert same(got, wanted), (task, prefix)


def test_jobs_write_what_they_write_alone(engine: NativeModel, threads: None) -> None:
    check_alone(tiny(engine), mixed())


@pytest.mark.parametrize("name", ["toy-window", "toy-ar", "toy-block", "toy-shifted-block", "toy",
                                  "toy-masks", "toy-reordered"])  # fmt: skip
def test_toys_write_what_they_write_alone(name: str, threads: None) -> None:
    options = [Options(n, seed=n, temperature=t) for n, t in ((9, 0.0), (20, 1.0), (33, 0.5))]
    check_alone(toy.load(name), [Task(ids(7 * o.max_tokens, 1), o) for o in options])


def test_a_stored_model_writes_what_it_writes_alone(smollm2_path: Path, threads: None) -> None:
    model = load(str(smollm2_path), weights="int8", quiet=True)
    window = replace(model.family, regime=Regime.CAUSAL_WINDOW, mask_id=0, policy="verify", block=4)
    grammar = json_schema({"type": "object", "properties": {"city": {"type": "string"}},
                           "required": ["city"], "additionalProperties": False})  # fmt: skip
    prompts = [
        tuple(model.tokenizer.encode(t)) for t in ("The capital of France is", "Once", "1 2 3")
    ]
    policies = [Options(12, "left_to_right"), Options(8, "verify"), Options(8, "threshold:0.6")]
    tasks = [Task(p, o) for p, o in zip(prompts, policies, strict=True)]
    check_alone(replace(model, family=window), [*tasks, Task(prompts[0], policies[0], grammar)])  # type: ignore[type-var]


def test_steps_come_in_order_and_whole(engine: NativeModel, threads: None) -> None:
    model, task = tiny(engine), Task(ids(50), Options(30, "threshold:0.5"))
    canvases: list[IntArray] = []

    async def listen(job: Job) -> Result:
        async for step in job:
            canvases.append(step.canvas.tokens)
        return await job.result()

    with Worker(model) as worker:
        job, _ = worker.submit([task])[0], worker.submit([replace(task, prompt=ids(20))])
        result = run(lambda: listen(job))
    assert same(result, generate(model, task.prompt, task.options))
    assert len(canvases) == result.passes
    assert np.array_equal(canvases[-1], result.canvas.tokens)


def test_holes_are_filled(threads: None) -> None:
    model, parts = toy.load("toy"), (ids(9), None, ids(4), 3, ids(2))
    with Worker(model) as worker:
        (got,) = results(worker.submit([Task((), Options(lengths=(2, 4)), parts=parts)]))
        assert same(got, infill(model, parts, Options(lengths=(2, 4))))


def test_candidates_compute_their_prompt_once(engine: NativeModel, threads: None) -> None:
    model, prompt = tiny(engine), ids(500)
    tasks = [Task(prompt, Options(4, "left_to_right", temperature=1.0, seed=n)) for n in range(5)]
    with Worker(model, prefix_bytes=0) as worker:
        jobs = worker.submit(tasks)
        for task, got in zip(tasks, results(jobs), strict=True):
            assert same(got, generate(model, prompt, task.options))
        assert sorted(job.cached for job in jobs) == [0, 499, 499, 499, 499]
        assert worker.stats().rows < 600


def test_one_bad_task_fails_alone(engine: NativeModel, threads: None) -> None:
    model, good = tiny(engine), Task(ids(30), Options(20))
    bad = [replace(good, prompt=(5000,) * 9), replace(good, options=Options(5000))]
    with Worker(model) as worker:
        with pytest.raises(UsageError, match="no policy"):
            worker.submit([replace(good, options=Options(policy="best"))])
        jobs = [worker.submit([task])[0] for task in (good, *bad, good)]
        one, unknown, large, other = results(jobs)
        assert same(one, generate(model, good.prompt, good.options))
        assert same(other, generate(model, good.prompt, good.options))
    assert isinstance(unknown, UsageError)
    assert isinstance(large, TooLarge)


def test_jobs_share_passes(threads: None) -> None:
    with Worker(endless()) as worker:
        results([worker.submit([Task(ids(9, n), Options(100))])[0] for n in range(4)])
        passes = worker.stats().passes
        assert sum(size * count for size, count in passes.items()) == 4 * 101  # and the prompts'
        assert max(passes) > 1


# ---- beginnings ---------------------------------------------------------------------------


def test_a_prompt_that_begins_alike_is_not_computed_again(
    engine: NativeModel, threads: None
) -> None:
    model, options = tiny(engine), Options(10, "verify")
    with Worker(model) as worker:
        system, other = ids(200, 1), ids(30, 2)
        (before,) = worker.submit([Task(system + ids(20, 3), options)])
        (answer,) = results([before])
        assert isinstance(answer, Result)
        turn = (*system, *ids(20, 3), *answer.tokens, *other)
        for prompt, cached in ((system + other, 200), (turn, len(turn) - 30), (other, 0)):
            (job,) = worker.submit([Task(prompt, options)])
            assert same(results([job])[0], generate(model, prompt, options))
            assert cached - 2 <= job.cached <= cached + 2  # it may begin alike by chance
        stats = worker.stats()
        assert stats.prefix_hits == 2
        assert stats.prefix_tokens > 400


def test_beginnings_keep_to_their_bound_and_the_last_used() -> None:
    held = Beginnings(3 * 64 * 10, 10)
    for n in range(3):
        held.hold(ids(20, n), grown(ids(20, n)))
    assert held.fork(ids(20, 0)) is not None
    held.hold(ids(20, 3), grown(ids(20, 3)))
    assert held.bytes == 3 * 64 * 10
    assert [held.fork(ids(20, n)) is not None for n in range(4)] == [True, False, True, True]
    held.hold(ids(200, 9), grown(ids(200, 9)))  # larger than all
    assert len(held) == 0


def test_a_longer_beginning_replaces_a_shorter_and_blocks_are_shared_whole() -> None:
    held = Beginnings(1 << 20, 1)
    held.hold(ids(20), grown(ids(20)), 8)
    held.hold(ids(30), grown(ids(30)), 8)
    held.hold(ids(25), grown(ids(25)), 8)
    assert len(held) == 1
    fork = held.fork((*ids(30)[:21], 0, 0), 8)
    assert fork is not None
    assert fork.length == 16
    assert held.fork(ids(30), 4) is None


def grown(tokens: Sequence[int]) -> ToySession:
    session = ToySession(128)
    extend(session, tokens)
    return session


# ---- queue, cancels, deadlines ------------------------------------------------------------


def test_clients_take_turns(threads: None) -> None:
    ended = []

    async def wait(job: Job) -> None:
        await job.result()
        ended.append(job.task.client + str(job.task.options.seed))

    with Worker(endless(), slots=1) as worker:
        (plug,) = worker.submit([Task(ids(9), Options(LONG))])
        first(plug)
        clients = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("c", 1)]
        tasks = [Task(ids(9), Options(2, seed=n), client=client) for client, n in clients]
        jobs = [worker.submit([task])[0] for task in tasks]
        plug.cancel()
        run(lambda: asyncio.gather(*map(wait, jobs)))
    assert ended == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_cancelled_job_ends_at_once_and_frees_its_place(threads: None) -> None:
    with Worker(endless(), slots=1, queue=1) as worker:
        running, waiting = (worker.submit([Task(ids(9), Options(LONG))])[0] for _ in range(2))
        first(running)
        with pytest.raises(Busy):
            worker.submit([Task(ids(9), Options(2))])
        waiting.cancel()
        (last,) = worker.submit([Task(ids(9), Options(2))])
        running.cancel()
        gone = results([running, waiting])
        assert [type(error) for error in gone] == [Cancelled, Cancelled]
        assert isinstance(results([last])[0], Result)
        last.cancel()  # too late
        assert isinstance(results([last])[0], Result)


def test_a_full_queue_says_when_to_come_again(threads: None) -> None:
    task = Task(ids(9), Options(LONG))
    with Worker(endless(), slots=2, queue=2) as worker:
        with pytest.raises(UsageError, match="5 tasks at once; this server takes 4"):
            worker.submit([task] * 5)
        jobs = worker.submit([task] * 3)
        with pytest.raises(Busy) as busy:
            worker.submit([task] * 2)
        assert busy.value.retry_after >= 1
        jobs += worker.submit([task])
        first(jobs[0])
        assert (worker.stats().running, worker.stats().waiting) == (2, 2)
        for job in jobs:
            job.cancel()
        assert isinstance(results(worker.submit([replace(task, options=Options(2))]))[0], Result)


def test_deadlines_hold_for_who_runs_and_who_waits(threads: None) -> None:
    with Worker(endless(), slots=1) as worker:
        running, waiting = (
            worker.submit([Task(ids(9), Options(LONG), deadline=after)])[0] for after in (0.2, 0.1)
        )
        gone = results([running, waiting])
        assert [type(error) for error in gone] == [Deadline, Deadline]
        assert "0.2 s" in str(gone[0])
        assert isinstance(results(worker.submit([Task(ids(9), Options(2))]))[0], Result)


def test_closing_ends_every_job_and_thread(threads: None) -> None:
    worker = Worker(endless(), slots=2)
    jobs = [worker.submit([Task(ids(9), Options(LONG))])[0] for _ in range(4)]
    first(jobs[0])
    worker.close()
    assert [type(error) for error in results(jobs)] == [Cancelled] * 4
    with pytest.raises(Busy, match="closing"):
        worker.submit([Task(ids(9), Options(2))])


def test_closing_lets_jobs_finish(threads: None) -> None:
    worker = Worker(endless(), slots=1)
    jobs = [worker.submit([Task(ids(9), Options(20))])[0] for _ in range(3)]
    worker.close(60)
    assert all(isinstance(result, Result) for result in results(jobs))


def test_a_thread_holds_a_slot_and_rides(engine: NativeModel, threads: None) -> None:
    model, prompt = tiny(engine), ids(40)
    with Worker(model, slots=1) as worker:
        with worker.slot("agent") as riding:
            (job,) = worker.submit([Task(prompt, Options(9))])
            assert (worker.stats().running, worker.stats().waiting) == (1, 1)
            assert same(generate(riding, prompt, Options(9)), generate(model, prompt, Options(9)))
        assert same(results([job])[0], generate(model, prompt, Options(9)))


def test_a_thread_begins_where_a_job_began(engine: NativeModel, threads: None) -> None:
    model, prompt = tiny(engine), ids(300)
    alone = model.session()
    extend(alone, prompt)
    with Worker(model) as worker:
        results(worker.submit([Task(prompt[:200] + ids(20, 1), Options(2))]))
        rows = worker.stats().rows
        for computed in (100, 0):
            with worker.slot():
                session = worker.begun(prompt)
                assert worker.stats().rows == rows + computed
                assert np.array_equal(*(probe(s, 300) for s in (session, alone)))
            rows = worker.stats().rows


def probe(session: Any, length: int) -> Any:
    at = np.arange(4, dtype=np.int32)
    return session.score(Pass(at, at + length), at)
