"""Commands that measure: doctor, bench engine, bench quality, bench agent."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from mezzotint.cli import options as o
from mezzotint.errors import UsageError

BenchModel = Annotated[str, typer.Option("--model", help="A name of `mezzotint list`, or a path.")]
Quick = Annotated[bool, typer.Option(help="Fewer repetitions: a look, not a result.")]


class Set(StrEnum):
    suite = "suite"
    spoken = "spoken"
    everyday = "everyday"
    fresh = "fresh"


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


def agent(
    arm: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=MODEL:POLICY:free, or less of it; free: calls are not held to schemas."
            " May be repeated. Default: AR without schemas, and the model's own way with them."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Scenarios; 0 is all.")] = 0,
    only: Annotated[str, typer.Option(help="A word of their names, kinds or requests.")] = "",
    which: Annotated[
        Set, typer.Option("--set", help="suite: it was built with; everyday, fresh: written blind.")
    ] = Set.suite,
    verbose: Annotated[bool, typer.Option(help="List what failed, and what was done.")] = False,
    weights: o.WeightsOption = None,
    threads: o.Threads = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Play the agent's scenarios, graded by the state of the stores."""
    from mezzotint.agent.writer import Writer
    from mezzotint.bench.scenarios.arms import ARMS, Arm, run
    from mezzotint.bench.scenarios.report import summary, table
    from mezzotint.bench.scenarios.suite import picked, scenarios
    from mezzotint.model import Model, load, trained
    from mezzotint.progress import bar

    some = picked(scenarios(which.value), only, limit)
    if not some:
        raise UsageError(f"no scenario has the word {only!r}")
    arms = [Arm.of(text) for text in arm or ARMS]
    models: dict[str, Model] = {}
    for name in dict.fromkeys(one.model for one in arms):
        loaded = load(name, weights=weights, threads=threads, quiet=quiet)
        models[name] = trained(loaded, f"{name} cannot act")

    def writer(arm: Arm) -> Writer:
        return Writer(models[arm.model], arm.policy, arm.structure)

    with bar("playing", quiet, of_bytes=False) as report:
        found = summary(list(run(some, arms, writer, report)))
    if json:
        o.emit(found)
    else:
        print(table(found, verbose))
