"""The measurements compute what they say; their times are never tested."""

from __future__ import annotations

import numpy as np
import pytest

from mezzotint.backend import toy
from mezzotint.bench import engine, quality
from mezzotint.checkpoint.shape import Rope, Shape


def test_uniform_logits_have_the_vocabulary_as_perplexity() -> None:
    session = toy.ToySession(50, logits=lambda _: np.zeros(50))
    tokens = np.arange(1200, dtype=np.int32) % 50
    loss = quality.compare({"fp32": session}, tokens)["fp32"]
    assert loss == {"perplexity": pytest.approx(50.0), "agreement": 1.0}


def test_agreement_counts_equal_likeliest_tokens() -> None:
    def peak(at: int, every: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.eye(8)[1 if at % every == 0 else 0]

    sessions = {
        "fp32": toy.ToySession(8, logits=lambda p: peak(p, 1)),
        "int4": toy.ToySession(8, logits=lambda p: peak(p, 4)),
    }
    loss = quality.compare(sessions, np.zeros(401, np.int32))
    assert loss["int4"]["agreement"] == 0.25


def test_text_is_long_and_mixed() -> None:
    text = quality.text()
    assert len(text.encode()) > 8000
    assert all(mark in text for mark in ("def ", "#include", '{"name": ', "Answer:"))


def test_no_cache_agrees_with_itself_and_caches_compute_less() -> None:
    tokens = np.arange(200, dtype=np.int32) % 90 + 32
    loss = quality.caches(toy.ToyModel(), tokens, stretches=1)
    assert loss["none"] == {"agreement": 1.0, "rows": 1.0}
    assert loss["dual"]["rows"] < loss["prefix"]["rows"] < 1.0


def test_our_engine_computes_the_rows_it_is_asked_for() -> None:
    session = toy.load("toy-ar").session()
    ours = engine.Ours(session, [65] * 64)
    ours.prefix(10)
    assert ours.pass_ms(4) > 0
    assert session.length == 10
    assert ours.prefill_ms(30) > 0
    assert session.length == 30
    ours.prefix(5)
    assert session.length == 5


def test_shares_of_the_peaks() -> None:
    shape = Shape(100, 32, 2, 1, 1, 32, 64, 512, 1e-5, Rope(), tied=True)
    body, head = engine.elements(shape)
    assert (body, head) == (2 * (4 * 32 * 32 + 3 * 32 * 64), 3200)
    peaks = {"int8_ops": 1e9, "bandwidth": 1e8}
    row = engine._row(engine.Case(4, 256, 0.5), [1.0, 0.5, 9.0], [2.0], (body, head), 50_000, peaks)
    assert (row["ratio"], row["ratio_of_best"]) == (0.5, 0.25)
    assert row["int8_share"] == pytest.approx(2 * 4 * (body + head) / 1e6, abs=1e-3)
    assert row["bandwidth_share"] == 0.5
