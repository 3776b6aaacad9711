"""bench tasks: what the suites hold, and whether their graders know a right answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mezzotint.cli import options as o


def tasks(
    suite: Annotated[
        list[str] | None, typer.Argument(help="Names of suites. Default: all of them.")
    ] = None,
    shared: Annotated[
        Path, typer.Option(envvar="MEZZOTINT_SHARED", help="Folder with train/ and eval/.")
    ] = Path("shared/data"),
    oracle: Annotated[bool, typer.Option(help="Grade the right answers, too.")] = False,
    against: Annotated[
        Path | None, typer.Option(help="Training samples to look for these tasks in.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Tasks of each suite; 0 is all.")] = 0,
    model: Annotated[str, typer.Option(help="Whose tokens are counted.")] = "smollm2-135m",
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """List the suites of tasks: where they come from, how many, how long; check the graders."""
    from mezzotint.bench.tasks import picked
    from mezzotint.bench.tasks.survey import overlaps, survey, table, texts
    from mezzotint.model import open_named
    from mezzotint.progress import bar

    some = picked(suite or [])
    if against is not None:
        o.emit(overlaps(against, texts(some, shared)))
        return
    tokenizer = open_named(model, quiet=quiet).load_tokenizer()
    with bar("grading", quiet, of_bytes=False) as report:
        rows = survey(some, shared, lambda m: len(tokenizer.chat(m)), oracle, limit, report)
    if json:
        o.emit([row.plain() for row in rows])
    else:
        print(table(rows))
