"""`bench run`: that arms are asked alike, that a run can be cut off, and what its numbers say.

Arms are scripted where time matters, and real, on tiny weights, where engines do."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tiny
from mezzotint.bench import measures, results, stats, trial
from mezzotint.bench.arms import Answer, Asked, Bench, Clock, Spec, checked, known, read
from mezzotint.bench.energy import Meter
from mezzotint.bench.report import compare, table
from mezzotint.bench.report.page import page
from mezzotint.bench.report.words import bars, cautions, losses, verdict
from mezzotint.bench.results import Journal, Results, Row
from mezzotint.bench.run import Plan, run
from mezzotint.bench.stages.lengths import longer
from mezzotint.bench.tasks import Edit, Grade, Message, Task
from mezzotint.bench.turn import check_prompt, prompt_of
from mezzotint.cli import run as command
from mezzotint.errors import BackendError, UsageError

TOOL = {
    "name": "wait",
    "description": "Wait.",
    "parameters": {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    },
}


def task(number: int, suite: str = "made", say: str = "Hi") -> Task:
    messages = (
        {"role": "system", "content": "Tools:\nwait(n: int): Wait.\nNow: Mon 2026-11-30 09:00"},
        {"role": "user", "content": f"{say} {number}"},
    )
    return Task(
        f"{suite}/{number:04}", suite, "seen", messages, (TOOL,), '{"wait":{"n":1}}', 24,
        lambda text: text.endswith("}"), lambda text: Grade(text == "{1}", text.endswith("}")),
    )  # fmt: skip


class Letters:
    """A tokenizer whose tokens are characters."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def chat(self, messages: Sequence[Message]) -> list[int]:
        return self.encode("".join(f"<{m['role']}>{m['content']}" for m in messages) + "<a>")


@dataclass
class Scripted:
    """Answers `text` in `seconds`, and notes how it was asked."""

    text: str = "{1}"
    seconds: float = 0.1
    break_at: int = -1
    fault: type[BaseException] = KeyboardInterrupt
    asked: list[Asked] = field(default_factory=list)
    was_ready: list[Asked] = field(default_factory=list)

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...] | None:
        return tuple(Letters().chat(messages))

    def ready(self, asked: Asked) -> None:
        self.was_ready.append(asked)

    def run(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        if len(self.asked) == self.break_at:
            raise self.fault("stopped")
        first = self.seconds if self.text.endswith("}") else None
        return Answer(self.text, first, self.seconds * 2, 0.01, 0.02, 0.1, 3, 6, 2, "stop")

    def close(self) -> None:
        pass


class Opener:
    """Opens scripted arms by name."""

    def __init__(self, **arms: Scripted) -> None:
        self.arms = arms

    def open(self, spec: Spec) -> Scripted:
        return self.arms[spec.name]

    def tokenizer(self, spec: Spec) -> Letters:
        return Letters()

    def weights(self, spec: Spec) -> dict[str, Any]:
        return {"model": "none", "sha256": "0"}


def ours(name: str, **more: Any) -> Spec:
    return checked({"name": name, "kind": "ours", "model": "none", **more})


def llama(name: str, **more: Any) -> Spec:
    return checked({"name": name, "kind": "llama", "model": "none", "types": ["q8_0"], **more})


def started(opener: Opener, out: Path, count: int = 4, **more: Any) -> Results:
    specs = [llama(n) if n.startswith("llama") else ours(n, **more) for n in opener.arms]
    plan = Plan([task(n) for n in range(count)], tuple(specs))
    return run(plan, opener, out, lambda done, total: None)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def quick_machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its peaks are measured in the run of both engines alone."""
    if "both_engines" not in request.node.name:
        told = {
            "processor": "a <processor>", "system": "S", "python": "3", "cores": 1,
            "frequency_mhz": [1], "memory_bytes": 1 << 30, "load": 0.0, "llama_cpp": None,
            "engine": {"threads": 1, "kernels": "portable"}, "packages": {"numpy": "2"},
        }  # fmt: skip
        monkeypatch.setattr("mezzotint.bench.run.machine", lambda threads: told)


# Statistics


def test_mcnemar_is_the_binomial_test_of_the_tasks_that_differ() -> None:
    one = [True] * 8 + [False] * 2 + [True] * 5
    two = [False] * 8 + [True] * 2 + [True] * 5
    found = stats.mcnemar(one, two)
    assert found == {"won": 8, "lost": 2, "points": 40.0, "p": pytest.approx(0.109375)}
    assert stats.mcnemar(two, one)["points"] == -40.0
    assert stats.mcnemar([True], [True])["p"] == 1.0


def test_a_speedup_is_the_median_of_ratios_with_an_interval_around_it() -> None:
    theirs = [float(n) for n in range(1, 60)]
    even = stats.speedup(theirs, [t / 3 for t in theirs])
    assert (even["low"], even["median"], even["high"]) == pytest.approx((3, 3, 3))
    mixed = stats.speedup([2.0, 4.0, 6.0] * 9, [1.0] * 27)
    assert mixed["low"] <= mixed["median"] == 4.0 <= mixed["high"]
    assert mixed["low"] < mixed["high"]
    skewed = stats.speedup([1.0, 1.0, 100.0], [1.0, 1.0, 1.0])
    assert skewed["median"] == 1.0  # one slow task of theirs is no win


def test_the_clock_stops_while_the_bench_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 50.0, 52.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    clock = Clock()
    for _ in range(2):
        with clock:
            pass
    assert clock.wall == 3.0


# Asking


def test_the_warm_cache_holds_the_tools_and_neither_the_time_nor_the_request() -> None:
    prompt = prompt_of(task(7), Letters().chat)
    held = "".join(map(chr, prompt.ids[: prompt.lasting]))
    assert held.startswith("<system>Tools:\nwait(n: int): Wait.\nNow: ")
    assert "Mon" not in held
    plain = replace(task(7), messages=({"role": "user", "content": "abc"},))
    assert prompt_of(plain, Letters().chat).lasting == len("<user>")


def test_every_arm_is_asked_the_same_cold_and_warm(tmp_path: Path) -> None:
    arms = {"llama": Scripted(), "ar": Scripted()}
    found = started(Opener(**arms), tmp_path)
    assert len(found.rows) == 4 * 2 * 2
    for arm in arms.values():
        measured = arm.asked[2:]  # after the warm-up
        assert arm.was_ready[2:] == measured
        assert sorted(a.held > 0 for a in measured) == [False] * 4 + [True] * 4
    asked = [{(a.task.id, a.held, a.ids) for a in arm.asked} for arm in arms.values()]
    assert asked[0] == asked[1]
    assert len({row.prompt for row in found.rows}) == 4


def test_arms_take_turns_task_by_task_in_changing_orders(tmp_path: Path) -> None:
    found = started(Opener(llama=Scripted(), ar=Scripted(), exact=Scripted()), tmp_path, 6)
    by_task = [found.rows[n : n + 6] for n in range(0, 36, 6)]
    assert all(len({row.task for row in some}) == 1 for some in by_task)
    assert all(len({(row.arm, row.warm) for row in some}) == 6 for some in by_task)
    assert len({tuple((row.arm, row.warm) for row in some) for some in by_task}) > 1


def test_an_arm_that_reads_another_prompt_is_refused(tmp_path: Path) -> None:
    class Other(Scripted):
        def prompt(self, messages: Sequence[Message]) -> tuple[int, ...] | None:
            ids = Letters().chat(messages)
            return (*ids[:5], 0, *ids[6:])

    with pytest.raises(BackendError, match=r"arm b reads another prompt.*from token 5"):
        started(Opener(a=Scripted(), b=Other()), tmp_path)

    class Hidden(Scripted):
        def prompt(self, messages: Sequence[Message]) -> None:
            return None

    check_prompt(prompt_of(task(1), Letters().chat), "server", Hidden())  # nothing to see


def test_an_arm_that_fails_has_failed_the_task_and_the_run_goes_on(tmp_path: Path) -> None:
    broken = Scripted(break_at=4, fault=UsageError)
    found = started(Opener(llama=Scripted(), ar=broken), tmp_path)
    errors = [row for row in found.rows if row.error]
    assert [(row.arm, row.right, row.error) for row in errors] == [("ar", False, "stopped")]
    assert len(found.rows) == 16
    entry = measures.summary(found)["warm" if errors[0].warm else "cold"]["arms"][1]
    assert (entry["errors"], entry["success"]["share"]) == (1, 0.75)


# Being cut off


def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        started(Opener(llama=Scripted(), ar=Scripted(break_at=6)), tmp_path)
    before = Journal(tmp_path)
    rows = [value for part, value in before.lines if part == "row"]
    before.close()
    assert 0 < len(rows) < 16
    again = Opener(llama=Scripted(), ar=Scripted())
    found = started(again, tmp_path)
    assert [row.model_dump() for row in found.rows[: len(rows)]] == rows  # not measured anew
    keys = [(row.task, row.arm, row.warm) for row in found.rows]
    assert len(keys) == len({*keys}) == 16
    assert sum(len(arm.asked) for arm in again.arms.values()) == 16 - len(rows) + 4
    assert results.read(tmp_path) == found


def test_half_a_line_is_dropped_and_measured_again(tmp_path: Path) -> None:
    whole = started(Opener(ar=Scripted()), tmp_path, 2)
    file = tmp_path / results.JOURNAL
    file.write_bytes(file.read_bytes()[:-20])
    (tmp_path / results.RESULTS).unlink()
    assert len(results.read(tmp_path).rows) == 3
    found = started(Opener(ar=Scripted()), tmp_path, 2)
    assert {(r.task, r.warm) for r in found.rows} == {(r.task, r.warm) for r in whole.rows}
    assert all(json.loads(line) for line in file.read_text("utf-8").splitlines())


def test_another_run_in_the_folder_is_refused(tmp_path: Path) -> None:
    started(Opener(ar=Scripted()), tmp_path, 2)
    with pytest.raises(UsageError, match="another run"):
        started(Opener(ar=Scripted()), tmp_path, 3)
    with pytest.raises(UsageError, match="another run"):
        started(Opener(ar=Scripted()), tmp_path, 2, policy="ar")


def test_files_of_another_version_or_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results"):
        results.read(tmp_path)
    started(Opener(ar=Scripted()), tmp_path, 2)
    file = tmp_path / results.RESULTS
    file.write_text(file.read_text("utf-8").replace('"version": 2', '"version": 9'), "utf-8")
    with pytest.raises(UsageError, match="version 9"):
        results.read(tmp_path)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(UsageError, match="at work"):
        started(Opener(ar=Scripted()), tmp_path, 1)
    journal.close()
    assert len(started(Opener(ar=Scripted()), tmp_path, 1).rows) == 2


def test_energy_is_what_the_counters_say_or_not_measurable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Monitor:
        gpu_indices, cpu_indices = (), (0, 1)

        def begin_window(self, name: str, sync_execution: bool) -> None:
            pass

        def end_window(self, name: str, sync_execution: bool) -> Any:
            return SimpleNamespace(gpu_energy={}, cpu_energy={0: 1.5, 1: 2.0})

    monkeypatch.setitem(sys.modules, "zeus", ModuleType("zeus"))
    monkeypatch.setitem(sys.modules, "zeus.monitor", SimpleNamespace(ZeusMonitor=Monitor))
    with Meter() as meter:
        pass
    assert (meter.joules, meter.source) == (3.5, "zeus: CPU")
    monkeypatch.setattr(Monitor, "cpu_indices", ())
    assert Meter().source == "not measurable here"
    monkeypatch.setitem(sys.modules, "zeus.monitor", None)  # not installed
    with Meter() as meter:
        pass
    assert meter.joules is None
    assert meter.source.startswith("not measurable here")


def test_stages_run_once(tmp_path: Path) -> None:
    calls = []

    def stage(stand: Any) -> dict[str, int]:
        calls.append(len(stand.prompts))
        return {"seen": len(stand.prompts)}

    plan = Plan([task(1)], (ours("ar"),), stages=(("look", stage),))
    for _ in range(2):
        found = run(plan, Opener(ar=Scripted()), tmp_path, lambda d, t: None)  # type: ignore[arg-type]
        assert found.parts == {"look": {"seen": 1}}
    assert calls == [1]


# What the numbers say


def row(arm: str, number: int, **more: Any) -> Row:
    told: dict[str, Any] = {
        "arm": arm, "task": f"t{number}", "suite": "made", "group": "g", "warm": True,
        "right": True, "valid": True, "first": 0.1, "end": 0.2, "prefill": 0.05, "model": 0.1,
        "cpu": 0.2, "passes": 2, "tokens": 6, "useful": 5, "stop": "stop", "prompt": "p",
        "prompt_tokens": 9, "held": 4, "at": 0.0,
    }  # fmt: skip
    return Row(**told | more)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Results]:
    arms = {n: Scripted() for n in ("llama", "llama-lookup", "twin", "ar", "exact", "auto-schema")}
    begun = started(Opener(**arms), tmp_path / "begun", 1)
    specs = tuple(
        spec | {"policy": "ar" if spec["name"] in ("ar", "twin") else None}
        if spec["kind"] == "ours" else spec
        for spec in begun.run.arms
    )  # fmt: skip

    def build(rows: Sequence[Row], **parts: Any) -> Results:
        return Results(
            run=begun.run.model_copy(update={"arms": specs}), rows=list(rows), parts=parts
        )

    return build


def test_the_baseline_is_their_fastest_and_equal_is_against_their_surest(
    made: Callable[..., Results],
) -> None:
    rows = []
    for n in range(100):
        rows += [
            row("llama", n, first=0.5),
            row("llama-lookup", n, first=0.4, right=n >= 10),
            row("ar", n, first=0.2),
            row("exact", n, first=0.1, right=n != 0),
            row("auto-schema", n, first=0.05, right=n >= 2),
        ]
    found = measures.summary(made(rows))["warm"]
    assert (found["baseline"], found["surest"], found["own_ar"]) == ("llama-lookup", "llama", "ar")
    arms = {entry["arm"]: entry for entry in found["arms"]}
    assert arms["exact"]["against_baseline"]["time"]["median"] == pytest.approx(4)
    assert arms["exact"]["against_own_ar"]["time"]["median"] == pytest.approx(2)
    assert arms["exact"]["equal"]  # 99 against 100: a point, though against the fastest it is more
    assert not arms["auto-schema"]["equal"]
    said = " ".join(verdict({"warm": found}, {n: n for n in arms}))
    assert "At equal success the fastest of ours was exact: 100 ms, 4.00 times" in said
    assert "whatever its success, was auto-schema" in said
    assert [met for *_, met in bars({"warm": found})] == [True, False]  # fast is not enough


def test_losses_are_told_by_suite(made: Callable[..., Results]) -> None:
    rows = []
    for n in range(20):
        suite = "long" if n % 2 else "short"
        rows += [row("llama", n, suite=suite), row("ar", n, suite=suite, first=0.05)]
        slow, wrong = suite == "long", suite == "short" and n < 4
        rows.append(row("exact", n, suite=suite, first=0.2 if slow else 0.05, right=not wrong))
    found = measures.summary(made(rows))
    told = losses({"warm": found["warm"]}, {"ar": "AR", "exact": "Exact"})
    assert len(told) == 1
    assert told[0].startswith("Exact, warm: long 0.50 times as fast; short -20.0 points")


def test_no_loss_is_told_only_where_something_was_compared(made: Callable[..., Results]) -> None:
    alone = measures.summary(made([row("exact", 1)]))
    assert losses({"warm": alone["warm"]}, {"exact": "E"}) == ["Nothing was compared."]
    both = measures.summary(made([row("exact", 1), row("llama", 1)]))
    assert losses({"warm": both["warm"]}, {"exact": "E"})[0].startswith("Nowhere")


def test_nothing_is_won_where_nothing_is_equal(made: Callable[..., Results]) -> None:
    rows = [row("llama", n) for n in range(9)]
    rows += [row("exact", n, first=0.001, right=False) for n in range(9)]
    found = measures.summary(made(rows))
    said = " ".join(verdict({"warm": found["warm"]}, {"llama": "L", "exact": "E"}))
    assert "no win is claimed" in said


def test_an_answer_without_an_action_waits_to_its_end(made: Callable[..., Results]) -> None:
    rows = [row("llama", 1), row("exact", 1, first=None, valid=False, right=False)]
    arms = measures.summary(made(rows))["warm"]["arms"]
    assert [entry["wait"]["p50"] for entry in arms] == [0.1, 0.2]
    assert arms[1]["useful_per_second"] == 0  # wrong tokens are of no use


def test_the_page_holds_all_and_fetches_nothing(made: Callable[..., Results]) -> None:
    rows = [row(arm, n, suite="a<b") for arm in ("llama", "ar", "exact") for n in range(5)]
    share = stats.share([True, False])
    point = {"policy": "leading:0.9", "block": 4, "structure": False, "success": share,
             "tokens_per_pass": 2.0}  # fmt: skip
    passes = {
        "rows": [1, 2, 4], "cached": 256, "ours": [1.0, 1.1, 1.3], "llama": [2.0, 3.0, 5.0],
        "ours_format": "int8", "llama_format": "q4_0", "reading": 0.5,
        "multiplying": [0.1, 0.4, 0.9], "peaks": {"bandwidth": 2e10, "int8_ops": 1e12},
    }  # fmt: skip
    length = {"arm": "ar", "length": 128, "warm": False, "tokens": 100.0, "wait": 0.1, "of": 2}
    lengths = [length, length | {"tokens": 200.0, "wait": 0.2}]
    memory = {"prompt_tokens": 9, "arms": {"ar": {"peak": 1e8, "loaded": 9e7, "seconds": 0.5}}}
    text = page(made(rows, sweep=[point], passes=passes, lengths=lengths, memory=memory))
    assert text.count("<svg") == 5
    assert text.count("<svg") == text.count("</svg>")
    assert not any(mark in text for mark in ("<script", "http", "src=", "@import"))
    assert "a&lt;b" in text
    assert "a<b" not in text
    assert "not measurable here" in text
    assert "nan" not in text.casefold()
    assert "exact" in table(made(rows))


def test_a_small_run_on_a_busy_machine_says_so(made: Callable[..., Results]) -> None:
    def told(cpu: float, load: float, tasks: int = 500) -> list[str]:
        found = made([row("exact", n, suite="held-out-en", cpu=cpu, end=0.2) for n in range(3)])
        machine = found.run.machine | {"load": load}
        found.run = found.run.model_copy(update={"tasks": tasks, "machine": machine})
        return cautions(found)

    assert told(cpu=0.2, load=0.1) == []
    assert told(cpu=0.2, load=0.1, tasks=9) == ["A look, not a result: 9 tasks."]
    assert "0.25 s of it a second" in told(cpu=0.05, load=0.1)[0]
    assert "load 3.2" in told(cpu=0.2, load=3.2)[0]
    rows = [row(arm, 1, suite="held-out-en", cpu=0.01) for arm in ("llama", "exact")]
    assert "busy: not judged" in page(made(rows))


def test_two_runs_are_compared_ratio_by_ratio(made: Callable[..., Results]) -> None:
    def some(exact: float, ar: float) -> Results:
        times = {"llama": 0.4, "exact": exact, "ar": ar}
        return made([row(arm, n, first=t) for arm, t in times.items() for n in range(5)])

    found = compare.compared(some(0.1, 0.2), some(0.105, 0.3))
    kept = {one["arm"]: one["within"] for one in found["ratios"]}
    assert kept == {"llama": True, "exact": True, "ar": False}
    assert all(found["alike"].values())
    assert "2 of 3 ratios within 10%" in compare.table(found)
    other = some(0.1, 0.2)
    other.run = other.run.model_copy(update={"prompts": "others"})
    assert not compare.compared(some(0.1, 0.2), other)["alike"]["prompts"]


# Arms as data


def test_every_arm_of_the_package_is_read() -> None:
    specs = [read(name) for name in known()]
    assert len(specs) >= 12
    assert all(spec.title for spec in specs)
    assert {spec.name for spec in specs if spec.structure} >= {"llama-grammar", "exact-schema"}


def test_an_arm_in_a_line_or_a_file(tmp_path: Path) -> None:
    line = read("mine=ours:model=m,policy=low-confidence:steps=8,structure=true")
    assert line == checked(
        {"name": "mine", "kind": "ours", "model": "m", "policy": "low-confidence:steps=8",
         "structure": True}
    )  # fmt: skip
    assert read("l=llama:model=m,types=q4_0+bf16,lookup=2+10").lookup == (2, 10)  # type: ignore[union-attr]
    file = tmp_path / "there.toml"
    file.write_text('kind = "openai"\nbase_url = "http://localhost:1/v1"\nmodel = "m"\n', "utf-8")
    assert read(str(file)).name == "there"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("nonsense", "no arm"),
        ("a=ours:model=m,polcy=ar", "polcy"),
        ("a=theirs:model=m", "theirs"),
        ("a=ours:", "model"),
        ("a=llama:model=m,types=q5_0", "types"),
        ("a=llama:model=m,lookup=2,structure=true", "grammar"),
        ("/no/such.toml", "cannot be read"),
    ],
)
def test_what_is_no_arm_is_an_error(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        read(text)


def test_the_trial_takes_the_fastest_and_asks_for_a_type_once() -> None:
    speed = {("q4_0", 0): 0.3, ("q8_0", 0): 0.2, ("q8_0", 2): 0.1, ("q8_0", 10): 0.5}

    class Timed(Opener):
        def open(self, spec: Any) -> Scripted:
            return Scripted(seconds=speed[spec.types[0], (*spec.lookup, 0)[0]])

    prompts = [prompt_of(task(n), Letters().chat) for n in range(6)]
    plain, found = trial.settle(llama("llama", types=["q4_0", "q8_0"]), Timed(), prompts, [])  # type: ignore[arg-type]
    assert plain.types == ("q8_0",)  # type: ignore[union-attr]
    assert found is not None
    assert [one[-1] for one in found["tried"]] == pytest.approx([1.8, 1.2])  # of three tasks
    drafts = llama("lookup", types=["q4_0", "q8_0"], lookup=[2, 10])
    settled, more = trial.settle(drafts, Timed(), prompts, [found])  # type: ignore[arg-type]
    assert (settled.types, settled.lookup) == (("q8_0",), (2,))  # type: ignore[union-attr]
    assert more is not None
    assert trial.settle(drafts, Timed(), [], [found, more]) == (settled, None)  # type: ignore[arg-type]


def test_a_prompt_is_made_longer_by_tools_of_others() -> None:
    lines = [f"tool{n}(x: int): Does {n}." for n in range(100)]
    short = prompt_of(task(1), Letters().chat)
    long = longer(task(1), 600, lines, Letters().chat)
    assert 550 < len(long.ids) <= 600
    assert long.ids[-10:] == short.ids[-10:]
    assert "tool5(x: int)" in long.task.messages[0]["content"]
    assert long.task.messages[0]["content"].endswith("Now: Mon 2026-11-30 09:00")


# Real engines


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = replace(tiny.LLAMA, tied=True)
    path = tmp_path_factory.mktemp("weights") / "small.gguf"
    sizes = {"llama.attention.value_length": shape.head_dim}  # llama.cpp reads it; we do not
    return tiny.write_gguf(path, "llama", shape, tiny.random_weights(shape), extra=sizes)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("MEZZOTINT_HOME", str(tmp_path / "home"))
    return Bench(threads=1, quiet=True)


def asked(bench: Bench, spec: Spec, warm: bool, some: Task) -> Asked:
    tokenizer = bench.tokenizer(spec)
    assert tokenizer is not None
    prompt = prompt_of(some, tokenizer.chat)
    return Asked(some, prompt.ids, prompt.lasting if warm else 0)


def test_a_run_of_both_engines(bench: Bench, small: Path, tmp_path: Path) -> None:
    """The same weights: greedy answers of both engines agree, cold and warm."""
    pytest.importorskip("llama_cpp")
    common = {"model": str(small)}
    specs = (
        checked({"name": "llama", "kind": "llama", "types": ["bf16"], "context": 256, **common}),
        checked({"name": "ar", "kind": "ours", "policy": "ar", "weights": "bf16", **common}),
    )
    plan = Plan([task(n) for n in range(2)], specs, threads=1)
    found = run(plan, bench, tmp_path / "out", lambda done, total: None)
    assert not [one.error for one in found.rows if one.error]
    for one in found.rows:
        assert 0 < one.prefill <= one.end
        assert one.model <= one.end
        assert one.tokens == 24 or one.stop == "stop"
        assert one.held < one.prompt_tokens
    texts = {(r.task, r.arm, r.warm): r.text for r in found.rows}
    for number in range(2):
        name = f"made/{number:04}"
        assert texts[name, "ar", True] == texts[name, "ar", False]  # to the bit
        starts = {texts[name, arm, False][:4] for arm in ("ar", "llama")}
        assert len(starts) == 1
    assert found.run.weights["llama"]["format"] == "bf16"
    assert found.run.weights["llama"]["sha256"] == found.run.weights["ar"]["sha256"]


def test_drafts_by_lookup_change_the_passes_and_not_the_text(bench: Bench, small: Path) -> None:
    pytest.importorskip("llama_cpp")
    told = {"kind": "llama", "model": str(small), "types": ["bf16"], "context": 256}
    plain, drafting = (
        checked({"name": n, **told, "lookup": drafts}) for n, drafts in (("p", []), ("d", [4]))
    )
    some = replace(task(1, say="ab ab ab ab ab"), max_tokens=48, done=lambda text: False)
    answers = []
    for spec in (plain, drafting):
        arm, request = bench.open(spec), asked(bench, spec, False, some)
        arm.ready(request)
        answers.append(arm.run(request))
        arm.close()
    assert answers[0].text == answers[1].text[: len(answers[0].text)]
    assert answers[1].passes < answers[0].passes == 47
    assert answers[1].tokens >= 48


def test_a_grammar_is_kept_to_and_ends_the_turn(bench: Bench, small: Path) -> None:
    """Random weights write nonsense; held to two words, they write one, and stop."""
    pytest.importorskip("llama_cpp")
    told = {"kind": "llama", "model": str(small), "types": ["bf16"], "context": 256}
    spec = checked({"name": "g", "structure": True, **told})
    arm: Any = bench.open(spec)
    request = asked(bench, spec, False, replace(task(1), max_tokens=30))
    arm.ready(request)
    assert arm._gbnf.startswith(b'root ::= call ("\\n" call){0,3} | prose')
    assert arm.run(request).text[:1] not in ("", " ", "\n")  # llama.cpp understands it
    arm._gbnf = b'root ::= "yes" | "no"'
    answer = arm.run(replace(request, held=0)) if arm._context.truncate(0) is None else None
    arm.close()
    assert answer is not None
    assert (answer.text in ("yes", "no"), answer.stop) == (True, "stop")


def test_holes_and_edits_are_given_as_such_where_an_arm_takes_them(smollm2_path: Path) -> None:
    arm = Bench(threads=1, quiet=True).open(read("auto"))
    hole = replace(task(1), tools=(), parts=("The capital of ", None, " is Lima."), edit=None)
    filled = arm.run(Asked(hole, (1,)))
    assert filled.text
    assert "Lima" not in filled.text  # the hole alone
    assert filled.passes > 0
    text = "We meet on Monday. Bring the plan."
    change = Edit(text, text.index("Monday"), text.index("Monday") + 6, "Friday")
    revised = arm.run(Asked(replace(task(1), tools=(), edit=change), (1,)))
    assert revised.text.startswith("We meet on Friday.")
    assert revised.first is None
    assert 0 < revised.model <= revised.end


@contextmanager
def server(pieces: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    """An OpenAI-compatible server that streams the pieces; the bodies that it was sent."""
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for at, piece in enumerate(pieces):
                end = "stop" if at == len(pieces) - 1 else None
                choice = {"index": 0, "delta": {"content": piece}, "finish_reason": end}
                self._send({"choices": [choice]})
            usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
            self._send({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _send(self, told: dict[str, Any]) -> None:
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
            self.wfile.write(b"data: " + json.dumps(chunk | told).encode() + b"\n\n")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}/v1", bodies
    finally:
        http.shutdown()
        http.server_close()


def test_a_server_stands_beside(bench: Bench) -> None:
    pytest.importorskip("openai")
    with server(["{", "1}", "\n"]) as (url, bodies):
        arm = bench.open(read(f"there=openai:base_url={url},model=m"))
        request = Asked(task(1), (1, 2, 3), held=2)
        arm.ready(request)
        answer = arm.run(request)
        arm.close()
    warming, asked = bodies
    assert [m["role"] for m in warming["messages"]] == ["system"]
    assert asked["messages"] == list(task(1).messages)
    assert (asked["temperature"], asked["stream"], asked["max_tokens"]) == (0.0, True, 24)
    assert (answer.text, answer.passes, answer.tokens, answer.cpu) == ("{1}\n", 3, 5, None)
    assert answer.first is not None
    assert 0 < answer.prefill <= answer.first <= answer.end
    assert arm.prompt(task(1).messages) is None


def test_a_server_that_is_not_there_is_an_error(bench: Bench) -> None:
    pytest.importorskip("openai")
    arm = bench.open(read("there=openai:base_url=http://127.0.0.1:9/v1,model=m"))
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:9"):
        arm.run(Asked(task(1), (1,)))


def test_memory_is_of_a_process_of_its_own(bench: Bench, small: Path) -> None:
    from mezzotint.bench.run import Stand
    from mezzotint.bench.stages.memory import memory

    spec = checked({"name": "ar", "kind": "ours", "policy": "ar", "model": str(small)})
    tokenizer = bench.tokenizer(spec)
    assert tokenizer is not None
    prompts = [prompt_of(task(1), tokenizer.chat)]
    stand = Stand(Plan([task(1)], (spec,), threads=1), bench, tokenizer, prompts, [spec])
    found = memory(stand)["arms"]["ar"]
    assert 1e7 < found["loaded"] <= found["peak"] < 2e9
    assert found["seconds"] > 0


# The commands


def test_the_commands_say_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert command(["bench", "run", "--out", out, "--arm", "nonsense"]) == 2
    assert "no arm 'nonsense'" in capsys.readouterr().err
    assert command(["bench", "run", "--out", out, "--suite", "nonsense"]) == 2
    assert "no suite 'nonsense'" in capsys.readouterr().err
    assert command(["bench", "report", str(tmp_path)]) == 2
    assert "no results" in capsys.readouterr().err


def test_report_and_compare_read_what_a_run_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in (("a", 0.1), ("b", 0.3)):
        started(Opener(llama=Scripted(seconds=0.4), ar=Scripted(seconds=seconds)), tmp_path / name)
    assert command(["bench", "report", str(tmp_path / "a")]) == 0
    assert (tmp_path / "a" / results.REPORT).read_text("utf-8").startswith("<!doctype html>")
    assert " 4.00 (4.00–4.00)" in capsys.readouterr().out
    assert command(["bench", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "NOT within 10%" in capsys.readouterr().out
