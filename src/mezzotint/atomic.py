"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A name beside `file` to write to. It becomes `file`, on the disk, when the block ends
    well; otherwise, Ctrl-C included, it is gone and `file` is as it was. Raises OSError."""
    partial = file.with_name(f".{os.getpid()}.partial.{file.name}")  # keeps the suffix
    try:
        yield partial
        with open(partial, "rb+") as written:
            os.fsync(written.fileno())
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
