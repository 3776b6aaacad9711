"""Commands that measure: doctor, bench engine, bench quality."""

from __future__ import annotations

from typing import Annotated

import typer

from mezzotint.cli import options as o

BenchModel = Annotated[str, typer.Option("--model", help="A name of `mezzotint list`, or a path.")]
Quick = Annotated[bool, typer.Option(help="Fewer repetitions: a look, not a result.")]


def doctor(threads: o.Threads = 0, json: o.Json = False) -> None:
    """Look at this machine: kernels, measured peaks, memory, store; and give advice."""
    from mezzotint.doctor import examine, tell

    report = examine(threads)
    if json:
        o.emit(report)
    else:
        print(tell(report))


def engine(
    model: BenchModel = "smollm2-135m",
    weights: o.Weights = "int4",
    threads: o.Threads = 0,
    quick: Quick = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Time our passes against llama.cpp's, in turns, on the same weights (extra: bench)."""
    from mezzotint.bench.engine import measure, table

    report = measure(model, weights, threads, quick, quiet or json)
    if json:
        o.emit(report)
    else:
        print(table(report))


def quality(
    model: BenchModel = "smollm2-135m",
    threads: o.Threads = 0,
    quick: Quick = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure what weight formats and approximate caches lose (perplexity, agreement)."""
    from mezzotint.bench.quality import measure, table

    report = measure(model, threads, quick, quiet or json)
    if json:
        o.emit(report)
    else:
        print(table(report))
