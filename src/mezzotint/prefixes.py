"""Prompts that come again and again, such as tool schemas: their keys and values, kept on disk.

A file holds the cached rows of one beginning under one packed model and kernel, named by all
of them, so what is read is what would be computed, to the bit. The folder keeps to a size;
what was used longest ago goes first.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mezzotint.atomic import replacing
from mezzotint.backend import extend
from mezzotint.backend.native import NativeModel, NativeSession
from mezzotint.errors import UsageError
from mezzotint.store import home

LIMIT = 512 << 20  # bytes of the folder
LEAST = 16  # tokens; fewer are computed as fast as read


def begin(engine: NativeModel, tokens: Sequence[int]) -> NativeSession:
    """A session that holds the rows of `tokens`, from disk if they were computed before."""
    session = engine.session()
    if len(tokens) < LEAST:
        return session
    file = home() / "prefixes" / f"{_key(engine, tokens)}.kv"
    try:
        session.restore(np.fromfile(file, np.uint8), len(tokens))
        os.utime(file)
    except (OSError, UsageError):  # not there, or cut short
        extend(session, np.array(tokens, np.int32))
        _keep(file, session)
    return session


def _key(engine: NativeModel, tokens: Sequence[int]) -> str:
    what = f"{engine.digest} {engine.kernels} {engine.weights} {list(tokens)}"
    return hashlib.sha256(what.encode()).hexdigest()[:32]


def _keep(file: Path, session: NativeSession) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as partial:
            session.save().tofile(partial)
        _tidy(file.parent)
    except OSError:  # no room or no permission: it is computed again next time
        pass


def _tidy(folder: Path) -> None:
    """Remove what was used longest ago, until the folder is small enough."""
    used = sorted(
        ((f.stat().st_mtime, f.stat().st_size, f) for f in folder.iterdir()), reverse=True
    )
    total = 0
    for _, size, file in used:
        total += size
        if total > LIMIT:
            file.unlink(missing_ok=True)
