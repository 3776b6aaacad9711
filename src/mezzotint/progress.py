"""A progress bar on stderr, so that stdout stays data. Knows numbers, not what they count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]
"""Called with (done, in all; 0 = unknown)."""


@contextmanager
def bar(what: str, quiet: bool, of_bytes: bool = True) -> Iterator[Report]:
    """A bar that goes away when done; none if `quiet` or stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress
    from rich.progress import TimeRemainingColumn as Remaining

    count = DownloadColumn() if of_bytes else MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress("{task.description}", BarColumn(), count, Remaining(), console=console,
                  transient=True) as progress:  # fmt: skip
        task = progress.add_task(what)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)
