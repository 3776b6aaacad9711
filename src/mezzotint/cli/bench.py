"""Commands of the benchmark: bench run, bench report, bench compare."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mezzotint.cli import options as o
from mezzotint.errors import UsageError

if TYPE_CHECKING:
    from mezzotint.progress import Report

Folder = Annotated[Path, typer.Argument(help="Folder of a run.")]
EVERY = 30  # seconds between lines of progress where stderr is no terminal


def run(
    out: Annotated[Path, typer.Option(help="Folder of the run; an unfinished one goes on.")],
    quick: Annotated[bool, typer.Option("--quick/--full", help="About three minutes.")] = False,
    suite: Annotated[
        list[str] | None, typer.Option(help="A suite; may be repeated. Default: all there are.")
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            help="A name, a .toml file, or NAME=KIND:key=value,…; may be repeated."
            " Default: every arm of the package."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Tasks of each suite, evenly spread.")
    ] = None,
    shared: Annotated[
        Path, typer.Option(envvar="MEZZOTINT_SHARED", help="Folder with train/ and eval/.")
    ] = Path("shared/data"),
    threads: o.Threads = 0,
    tasks_only: Annotated[
        bool, typer.Option("--tasks-only", help="No memory, passes, lengths, thresholds, agent.")
    ] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run AR and diffusion side by side on the same tasks (extra: bench)."""
    from mezzotint.bench.arms import Bench
    from mezzotint.bench.plans import plan
    from mezzotint.bench.report import table, write
    from mezzotint.bench.run import run as start

    asked = plan(suite or (), arm or (), quick, limit, shared, threads, tasks_only)
    with _progress(quiet) as report:
        found = start(asked, Bench(threads, quiet), out, report)
    write(found, out)
    if json:
        o.emit(found.model_dump(mode="json", exclude={"rows"}))
    else:
        print(table(found))
        print(f"\n{out / 'results.json'}\n{out / 'report.html'}", file=sys.stderr)


def report(folder: Folder, json: o.Json = False) -> None:
    """Write the report of a run anew, and print its tables."""
    from mezzotint.bench.measures import summary
    from mezzotint.bench.report import table, write
    from mezzotint.bench.results import read

    found = read(folder)
    if not found.rows:
        raise UsageError(f"{folder} has no answers yet", "mezzotint bench run --out DIR goes on")
    write(found, folder)
    if json:
        o.emit(summary(found))
    else:
        print(table(found))


def compare(first: Folder, second: Folder, json: o.Json = False) -> None:
    """Hold one run to another: whether each ratio came again within 10%."""
    from mezzotint.bench.report.compare import compared, table
    from mezzotint.bench.results import read

    found = compared(read(first), read(second))
    if json:
        o.emit(found)
    else:
        print(table(found))


@contextmanager
def _progress(quiet: bool) -> Iterator[Report]:
    """A bar on a terminal; elsewhere a line now and then, with the time left."""
    from mezzotint.progress import bar

    if quiet or sys.stderr.isatty():
        with bar("answering", quiet, of_bytes=False) as report:
            yield report
        return
    said, begun = time.monotonic(), (0, 0.0)  # turns that an earlier run did are no measure

    def tell(done: int, total: int) -> None:
        nonlocal said, begun
        now = time.monotonic()
        begun = begun if begun[0] else (done, now)
        if now - said >= EVERY:
            left = (now - begun[1]) / max(done - begun[0], 1) * (total - done)
            print(f"{done} of {total} turns, {left / 60:.0f} min left", file=sys.stderr)
            said = now

    yield tell
