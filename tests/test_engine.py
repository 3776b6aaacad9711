"""The native core: packing, kernels, and the laws of its sessions."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mezzotint import _core
from mezzotint.backend import Pass, extend, packed
from mezzotint.backend.native import NativeModel, kernel_names, pool
from mezzotint.canvas import FloatArray, IntArray
from mezzotint.checkpoint.shape import Rope, Shape, tensor_shapes
from mezzotint.errors import DamagedModel, UsageError

SHAPE = Shape(
    vocab=200, hidden=96, layers=2, heads=6, kv_heads=2, head_dim=32, ffn=160, context=512,
    rms_eps=1e-5, rope=Rope(10000.0), qkv_bias=True, qk_norm=True,
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """Random weights of SHAPE; `file` stands for the checkpoint they came from."""

    shape: Shape
    weights: dict[str, FloatArray]
    files: tuple[Path, ...] = ()


def random_source(shape: Shape = SHAPE, file: Path | None = None, seed: int = 0) -> Source:
    rng = np.random.default_rng(seed)
    weights = {}
    for name, size in tensor_shapes(shape).items():
        scale = 0.3 if name.endswith("bias") else 1.0 / np.sqrt(size[-1])
        weights[name] = (rng.normal(size=size) * scale).astype(np.float32)
        if "norm" in name:
            weights[name] = 1 + weights[name]
    return Source(shape, weights, (file,) if file else ())


def load(weights: str = "int4", kernels: str = "", threads: int = 2) -> NativeModel:
    return NativeModel.load(random_source(), weights, threads, kernels, cache=False)


def ids(count: int, seed: int = 1) -> IntArray:
    return np.random.default_rng(seed).integers(0, SHAPE.vocab, count).astype(np.int32)


def positions(first: int, count: int) -> IntArray:
    return np.arange(first, first + count, dtype=np.int32)


def everything(count: int) -> IntArray:
    return positions(0, count)


# ---- packing ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["F32", "BF16", "Q8", "Q6", "Q4"])
def test_packing_keeps_each_weight_within_half_a_step(form: str) -> None:
    w = np.random.default_rng(0).normal(size=(70, 64)).astype(np.float32)
    packed = _core.pack(w, _core.Format[form], pool(2))
    back = _core.unpack(packed, _core.Format[form], 70, 64)
    groups = w.reshape(70, 2, 32)
    spread = groups.max(-1) - groups.min(-1)
    step = {
        "F32": 0 * spread,
        "BF16": np.abs(groups).max(-1) / 128,
        "Q8": np.abs(groups).max(-1) / 127,
        "Q6": np.abs(groups).max(-1) / 31,
        "Q4": spread / 15 * 1.5,  # the range may be shrunk by a fifth to fit most weights better
    }[form]
    error = np.abs(back - w).reshape(70, 2, 32).max(-1)
    assert (error <= step * 0.5 * 1.4 + 1e-3 * step).all()


def test_a_grid_of_sixteen_values_is_packed_without_loss() -> None:
    rng = np.random.default_rng(0)
    d = rng.uniform(0.01, 0.1, (32, 3, 1)).astype(np.float16).astype(np.float32)
    m = rng.uniform(-1, 0, (32, 3, 1)).astype(np.float16).astype(np.float32)
    codes = rng.integers(0, 16, (32, 3, 32))
    codes[..., 0], codes[..., 1] = 0, 15
    w = (d * codes + m).reshape(32, 96).astype(np.float32)
    packed = _core.pack(w, _core.Format["Q4"], pool(1))
    np.testing.assert_allclose(_core.unpack(packed, _core.Format["Q4"], 32, 96), w, atol=1e-6)


@pytest.mark.parametrize("form", ["F32", "BF16", "Q8", "Q6", "Q4"])
def test_every_kernel_multiplies_as_numpy_does(form: str) -> None:
    rng = np.random.default_rng(0)
    w, x = (rng.normal(size=s).astype(np.float32) for s in ((70, 96), (5, 96)))
    packed = _core.pack(w, _core.Format[form], pool(2))
    exact = x @ _core.unpack(packed, _core.Format[form], 70, 96).T
    results = [_core.product(x, packed, _core.Format[form], 70, name) for name in kernel_names()]
    for result in results:  # int8 activations cost about 1/127/√12 of each group's largest
        np.testing.assert_allclose(result, exact, atol=1e-4 if form in ("F32", "BF16") else 0.25)
        np.testing.assert_allclose(result, results[0], atol=1e-4)


@pytest.mark.parametrize("form", ["Q8", "Q6", "Q4"])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, -1)])
def test_the_largest_sums_overflow_nothing(form: str, signs: tuple[int, int]) -> None:
    w = np.full((32, 64), signs[0], np.float32)
    if form == "Q4":
        w[:, ::32] = 0  # else its range is empty
    x = np.full((5, 64), signs[1], np.float32)
    packed = _core.pack(w, _core.Format[form], pool(1))
    for name in kernel_names():
        got = _core.product(x, packed, _core.Format[form], 32, name)
        np.testing.assert_allclose(got, x @ w.T, rtol=2e-3)


# ---- laws of a session ------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["int4", "int6", "int8", "bf16", "fp32", "int4/bf16"])
@pytest.mark.parametrize("kernels", kernel_names())
def test_a_row_is_the_same_to_the_bit_in_any_pass(weights: str, kernels: str) -> None:
    model = load(weights, kernels)
    tokens, count = ids(40), 40
    whole = model.session().score(Pass(tokens, positions(0, count)), everything(count))
    session = model.session()
    for first, last in ((0, 17), (17, 18), (18, 31), (31, 40)):
        part = Pass(tokens[first:last], positions(first, last - first))
        np.testing.assert_array_equal(
            session.score(part, everything(last - first)), whole[first:last]
        )
        session.keep(last - first)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(0, 70))
def test_rows_that_a_row_does_not_see_change_nothing(seed: int, rows: int, cached: int) -> None:
    rng = np.random.default_rng(seed)
    session = _SMALL.session()
    extend(session, ids(cached, seed))
    tokens, at = ids(rows, seed + 1), positions(cached, rows)
    visible = rng.random((rows, rows)) < 0.2
    i = int(rng.integers(rows))
    one = session.score(Pass(tokens, at, visible), np.array([i], np.int32))
    reached = visible | np.eye(rows, dtype=bool)  # seen by what it sees, and so on
    for _ in range(rows):
        reached = reached | (reached @ reached)
    unseen = ~reached[i]
    other = np.where(unseen, ids(rows, seed + 2), tokens)
    two = session.score(Pass(other, at, visible), np.array([i], np.int32))
    np.testing.assert_array_equal(one, two)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 150), st.integers(0, 150), st.integers(1, 5))
def test_truncate_then_extend_equals_never_having_extended(a: int, b: int, c: int) -> None:
    left, right = _SMALL.session(), _SMALL.session()
    extend(left, ids(a))
    extend(left, ids(b, 5))
    left.truncate(a)
    extend(right, ids(a))
    last = extend(left, ids(c, 6)), extend(right, ids(c, 6))
    np.testing.assert_array_equal(*last)


def test_forks_share_the_prefix_and_go_their_own_ways() -> None:
    root = _SMALL.session()
    extend(root, ids(70))
    left, right = root.fork(), root.fork()
    a, b = extend(left, ids(9, 2)), extend(right, ids(9, 3))
    for tokens, got in ((ids(9, 2), a), (ids(9, 3), b)):
        alone = _SMALL.session()
        extend(alone, ids(70))
        np.testing.assert_array_equal(extend(alone, tokens), got)
    assert root.length == 70


def test_hidden_cached_rows_are_not_seen() -> None:
    with_gap, without = _SMALL.session(), _SMALL.session()
    extend(with_gap, ids(20))
    extend(without, ids(10))
    rows = Pass(ids(4, 2), positions(20, 4), "full", hide=(10, 20))
    hidden = with_gap.score(rows, everything(4))
    alone = without.score(replace(rows, hide=(0, 0)), everything(4))
    np.testing.assert_allclose(hidden, alone, atol=1e-4)  # other slots, another order of sums
    seen = with_gap.score(replace(rows, hide=(0, 0)), everything(4))
    assert np.abs(seen - alone).max() > 0.01


def test_the_number_of_threads_changes_no_bit() -> None:
    tokens = Pass(ids(20), positions(0, 20), "full")
    one, three = (load(threads=n).session().score(tokens, everything(20)) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_two_engines_in_two_threads_do_not_deadlock() -> None:
    models = [load(threads=2), load("int8", threads=2)]
    expected = [extend(m.session(), ids(20)) for m in models]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(50):
            if not np.array_equal(extend(models[i].session(), ids(20)), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert not wrong


# ---- wrong use --------------------------------------------------------------------------


def test_wrong_passes_are_refused_by_name() -> None:
    session = _SMALL.session()
    rows = Pass(ids(3), positions(0, 3))
    with pytest.raises(UsageError, match="vocabulary"):
        session.score(Pass(np.array([200], np.int32), positions(0, 1)), everything(1))
    with pytest.raises(UsageError, match="wanted row"):
        session.score(rows, np.array([3], np.int32))
    with pytest.raises(UsageError, match="visibility"):
        session.score(Pass(ids(3), positions(0, 3), np.ones((2, 2), bool)), everything(1))
    with pytest.raises(UsageError, match="keep"):
        session.keep(1)
    session.score(Pass(ids(3), positions(7, 3)), everything(0))
    with pytest.raises(UsageError, match="from 0 on"):
        session.keep(3)
    with pytest.raises(UsageError, match="0 to 0"):
        session.truncate(1)
    session.score(rows, everything(0))
    session.keep(3)
    assert session.length == 3


def test_wrong_choices_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="int5"):
        load("int5")
    with pytest.raises(UsageError, match="sse9"):
        load(kernels="sse9")
    with pytest.raises(UsageError, match="256"):
        load(threads=1000)
    odd = replace(SHAPE, ffn=150)
    with pytest.raises(DamagedModel, match="ffn is 150"):
        NativeModel.load(random_source(odd), cache=False)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_without_memory_a_pass_is_an_error_and_the_session_lives_on() -> None:
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = [sys.executable, "-c", _OUT_OF_MEMORY]
    done = subprocess.run(code, capture_output=True, text=True, env=paths)
    assert done.stdout.split() == ["TooLarge", "10", "True"], done.stderr


_OUT_OF_MEMORY = """
import resource
from mezzotint.errors import TooLarge
from test_engine import *

session = load().session()
before = extend(session, ids(10))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), resource.RLIM_INFINITY))
try:
    session.score(Pass(ids(9000), positions(10, 9000)), everything(9000))
except TooLarge as error:
    print(type(error).__name__)
print(session.length)
session.truncate(0)
print(np.array_equal(extend(session, ids(10)), before))
"""


# ---- the cache on disk ------------------------------------------------------------------


@pytest.mark.parametrize("read_whole", [0, packed.READ_WHOLE])
def test_the_second_load_needs_the_first_ones_file_alone(
    read_whole: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "READ_WHOLE", read_whole)
    file = tmp_path / "model.bin"
    file.write_bytes(b"weights")
    first = NativeModel.load(random_source(file=file), "int4", 2)
    (pack,) = (tmp_path / ".mezzotint").glob("*.pack")
    written = pack.stat().st_mtime_ns
    empty = Source(SHAPE, {}, (file,))  # nothing to pack from: only the cache can serve it
    second = NativeModel.load(empty, "int4", 2)
    assert pack.stat().st_mtime_ns == written
    tokens = ids(9)
    np.testing.assert_array_equal(extend(first.session(), tokens), extend(second.session(), tokens))
    assert not list((tmp_path / ".mezzotint").glob("*.tmp"))


def test_a_changed_model_or_a_damaged_cache_is_packed_anew(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(b"weights")
    source = random_source(file=file)
    expected = extend(NativeModel.load(source, "int4", 2).session(), ids(9))
    (pack,) = (tmp_path / ".mezzotint").glob("*.pack")
    content = bytearray(pack.read_bytes())
    content[-100] ^= 1
    pack.write_bytes(content)
    np.testing.assert_array_equal(
        extend(NativeModel.load(source, "int4", 2).session(), ids(9)), expected
    )
    pack.write_bytes(content[:1000])
    np.testing.assert_array_equal(
        extend(NativeModel.load(source, "int4", 2).session(), ids(9)), expected
    )
    file.write_bytes(b"other weights")
    other = NativeModel.load(random_source(file=file, seed=3), "int4", 2)
    assert not np.array_equal(extend(other.session(), ids(9)), expected)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root on POSIX")
def test_without_room_for_a_cache_the_model_still_runs(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(b"weights")
    (tmp_path / ".mezzotint").write_text("a file where the folder should be")
    model = NativeModel.load(random_source(file=file), "int4", 2)
    assert extend(model.session(), ids(9)) is not None


_SMALL = load()
