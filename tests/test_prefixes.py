"""Beginnings kept on disk give what computing them gives, to the bit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tiny
from mezzotint import prefixes
from mezzotint.backend import Pass
from mezzotint.backend.native import NativeModel
from mezzotint.checkpoint import open_checkpoint
from mezzotint.errors import UsageError


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NativeModel:
    monkeypatch.setenv("MEZZOTINT_HOME", str(tmp_path / "home"))
    return NativeModel.load(open_checkpoint(tiny.write(tmp_path, "llama")[0]), "int8", cache=False)


def logits(session: object, length: int) -> np.ndarray:
    at = np.arange(5, dtype=np.int32)
    return session.score(Pass(at + 9, at + length), at)  # type: ignore[attr-defined, no-any-return]


def test_a_beginning_from_disk_is_the_computed_one(engine: NativeModel, tmp_path: Path) -> None:
    tokens = [(7 * i) % 250 for i in range(70)]
    computed = logits(prefixes.begin(engine, tokens), 70)
    (file,) = (tmp_path / "home" / "prefixes").iterdir()
    first = file.stat().st_mtime_ns
    os.utime(file, ns=(0, 0))
    again = prefixes.begin(engine, tokens)
    assert np.array_equal(logits(again, 70), computed)
    assert file.stat().st_mtime_ns >= first  # it was read, and is the last used now
    file.write_bytes(file.read_bytes()[:-1])  # cut short
    assert np.array_equal(logits(prefixes.begin(engine, tokens), 70), computed)
    other = [*tokens[:-1], 251]
    assert not np.array_equal(logits(prefixes.begin(engine, other), 70), computed)


def test_what_was_used_longest_ago_goes_first(
    engine: NativeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefixes.begin(engine, [1] * 60)
    (old,) = (tmp_path / "home" / "prefixes").iterdir()
    os.utime(old, ns=(0, 0))
    monkeypatch.setattr(prefixes, "LIMIT", old.stat().st_size)
    prefixes.begin(engine, [2] * 60)
    (kept,) = (tmp_path / "home" / "prefixes").iterdir()
    assert kept != old


def test_rows_of_another_size_are_refused(engine: NativeModel) -> None:
    session = engine.session()
    with pytest.raises(UsageError, match="not of this model"):
        session.restore(np.zeros(100, np.uint8), 3)
