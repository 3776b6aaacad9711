"""Our passes against llama.cpp's, in turns on one machine, and how near both come to it.

The roofline in two lines. A pass over M rows reads every packed weight once, so it costs
at least weight bytes / bandwidth; and it multiplies every weight M times, so it costs at
least 2·weights·M / int8 peak. Both ceilings are measured here, on the same threads.

Fairness: same weights (ours packed from the file, llama.cpp's Q4_0 made by its own
quantiser from the same file), same threads, same rows, logits of every row, each engine's
own cached prefix. Engines take turns; each turn rests, runs once unmeasured, then is
measured, so that neither pays for the other's spinning threads or cold caches. On a busy
machine the medians flatter whoever waits less at barriers; the ratio of the best runs is
printed too, and where the two differ much the measurement is to be repeated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Any, Protocol

import numpy as np

from mezzotint.backend import Pass, Session, extend
from mezzotint.bench.llama import LlamaCpp, quantised, version
from mezzotint.bench.memory import peak_memory
from mezzotint.checkpoint.shape import Shape, tensor_shapes
from mezzotint.errors import UsageError
from mezzotint.progress import bar

PREFILL = 512
REST = 0.01  # seconds before a turn, for the other engine's threads to go to sleep
BURST = 3  # measured runs in a turn


@dataclass(frozen=True, slots=True)
class Case:
    """rows = M tokens after `cached` = T tokens; or a prefill, if `cached` is None.

    bar: the ratio of our time to llama.cpp's that the project holds itself to.
    """

    rows: int
    cached: int | None
    bar: float | None

    @property
    def name(self) -> str:
        return f"prefill {self.rows}" if self.cached is None else f"M={self.rows} T={self.cached}"


CASES = (
    Case(1, 256, 0.55),
    Case(8, 256, 0.35),
    Case(16, 256, 0.33),
    Case(32, 256, 0.33),
    Case(PREFILL, None, 0.33),
    Case(16, 1024, None),
)


class Timed(Protocol):
    """One engine, timed."""

    def prefix(self, length: int) -> None: ...
    def pass_ms(self, count: int) -> float: ...
    def prefill_ms(self, count: int) -> float: ...


class Ours:
    """Our engine over the same tokens. A pass is a window of masks: its rows see all of it."""

    def __init__(self, session: Session, tokens: Sequence[int]) -> None:
        self._session, self._tokens = session, np.asarray(tokens, np.int32)

    def prefix(self, length: int) -> None:
        if self._session.length != length:
            self._session.truncate(0)
            extend(self._session, self._tokens[:length])

    def pass_ms(self, count: int) -> float:
        at = np.arange(self._session.length, self._session.length + count, dtype=np.int32)
        rows, want = Pass(self._tokens[at], at, "full"), np.arange(count, dtype=np.int32)
        start = time.perf_counter()
        self._session.score(rows, want)
        return (time.perf_counter() - start) * 1e3

    def prefill_ms(self, count: int) -> float:
        self._session.truncate(0)
        start = time.perf_counter()
        extend(self._session, self._tokens[:count])
        return (time.perf_counter() - start) * 1e3


def measure(
    name: str, weights: str, threads: int = 0, quick: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Run every case; the report as plain JSON values, times in milliseconds.

    Raises BackendError without the extra `bench`, UsageError for a model that is no GGUF.
    """
    from mezzotint.backend.native import NativeModel, machine, measure_peaks
    from mezzotint.model import open_named

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    checkpoint = open_named(name, quiet=quiet)
    if checkpoint.path.suffix != ".gguf":
        raise UsageError(f"{checkpoint.path} is no GGUF file, which llama.cpp needs")
    baseline = quantised(checkpoint.path)
    native = NativeModel.load(checkpoint, weights, threads)
    tokens = some_tokens(checkpoint.shape.vocab, 2048)
    ours = Ours(native.session(), tokens)
    theirs = LlamaCpp(baseline, tokens, 2048, native.threads)
    before = measure_peaks(threads)
    try:
        times = alternate(ours, theirs, CASES, 4 if quick else 20, quiet)
    finally:
        theirs.close()
    after = measure_peaks(threads)
    peaks = {key: max(before[key], after[key]) for key in before}
    matrices = elements(checkpoint.shape)
    medians = {case: (median(a), median(b)) for case, (a, b) in times.items()}
    rows = [_row(case, *times[case], matrices, native.packed_bytes, peaks) for case in CASES]
    return {
        "model": checkpoint.name,
        "weights": weights,
        "kernels": native.kernels,
        "threads": native.threads,
        "machine": machine(threads)["machine"],
        "llama_cpp": version(),
        "llama_cpp_bytes": baseline.stat().st_size,
        "peaks": peaks,
        "cases": rows,
        "window_over_token": medians[CASES[2]][0] / medians[CASES[0]][1],
        "long_over_short": medians[CASES[5]][0] / medians[CASES[2]][0],
        "load_before": round(load, 2),
        "memory": peak_memory(name, weights, threads),
    }


def some_tokens(vocab: int, count: int) -> list[int]:
    drawn = np.random.default_rng(0).integers(100, vocab - 100, count)
    return [int(token) for token in drawn]


def alternate(
    ours: Timed, theirs: Timed, cases: Sequence[Case], turns: int, quiet: bool
) -> dict[Case, tuple[list[float], list[float]]]:
    """Milliseconds of every run (ours, theirs) of each case."""
    times = {}
    with bar("measuring", quiet, of_bytes=False) as report:
        for done, case in enumerate(cases):
            engines: tuple[tuple[Timed, list[float]], ...] = ((ours, []), (theirs, []))
            for turn in range(turns):
                for engine, taken in engines if turn % 2 else engines[::-1]:
                    taken += _turn(engine, case)
                report(done * turns + turn + 1, len(cases) * turns)
            times[case] = engines[0][1], engines[1][1]
    return times


def _turn(engine: Timed, case: Case) -> list[float]:
    if case.cached is None:
        time.sleep(REST)
        return [engine.prefill_ms(case.rows)]  # long enough to warm itself
    engine.prefix(case.cached)
    time.sleep(REST)
    engine.pass_ms(case.rows)
    return [engine.pass_ms(case.rows) for _ in range(BURST)]


def elements(shape: Shape) -> tuple[int, int]:
    """Elements of the matrices every row is multiplied with, and of the head."""
    sizes = tensor_shapes(shape)
    body = sum(prod(s) for name, s in sizes.items() if name.startswith("layers.") and len(s) == 2)
    return body, shape.vocab * shape.hidden


def _row(
    case: Case,
    ours_ms: list[float],
    theirs_ms: list[float],
    matrices: tuple[int, int],
    packed: int,
    peaks: dict[str, float],
) -> dict[str, Any]:
    ours, theirs = median(ours_ms), median(theirs_ms)
    body, head = matrices
    scored = 1 if case.cached is None else case.rows
    operations = 2 * (body * case.rows + head * scored)
    return {
        "case": case.name,
        "ours_ms": round(ours, 3),
        "llama_cpp_ms": round(theirs, 3),
        "ratio": round(ours / theirs, 3),
        "ratio_of_best": round(min(ours_ms) / min(theirs_ms), 3),
        "bar": case.bar,
        "int8_share": round(operations / (ours / 1e3) / peaks["int8_ops"], 3),
        "bandwidth_share": round(packed / (ours / 1e3) / peaks["bandwidth"], 3),
    }


def table(report: dict[str, Any]) -> str:
    """The report for a reader."""
    lines = [
        f"{report['model']}, {report['weights']}, kernels {report['kernels']}, "
        f"{report['threads']} threads, {report['machine']}",
        f"against {report['llama_cpp']}, Q4_0",
        "",
        f"{'':14}{'ours ms':>9}{'llama ms':>10}{'ratio':>8}{'of best':>9}{'bar':>7}"
        f"{'of int8':>9}{'of read':>9}",
    ]
    for row in report["cases"]:
        limit = f"{row['bar']:.2f}" if row["bar"] else "-"
        lines.append(
            f"{row['case']:14}{row['ours_ms']:9.2f}{row['llama_cpp_ms']:10.2f}{row['ratio']:8.2f}"
            f"{row['ratio_of_best']:9.2f}{limit:>7}{row['int8_share']:9.0%}{row['bandwidth_share']:9.0%}"
        )
    if report["load_before"] > 0.3:
        lines.append(f"(other work was running: load {report['load_before']}; read with care)")
    peaks, memory = report["peaks"], report["memory"]
    return "\n".join(
        [
            *lines,
            "",
            f"16 tokens at T=256 cost {report['window_over_token']:.2f} llama.cpp tokens (bar 1.6)",
            f"M=16 at T=1024 costs {report['long_over_short']:.2f} of T=256 (bar 1.5)",
            f"peaks: {peaks['int8_ops'] / 1e12:.2f} T int8 operations/s, "
            f"{peaks['bandwidth'] / 1e9:.0f} GB/s",
            f"memory: peak {memory['peak'] / 1e6:.0f} MB = weights {memory['weights'] / 1e6:.0f} + "
            f"KV {memory['kv'] / 1e6:.0f} + {memory['overhead'] / 1e6:.0f} MB (bar 150)",
        ]
    )
