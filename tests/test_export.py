"""`export gguf`: what is written is read back, by our reader and by llama.cpp."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from mezzotint.checkpoint import open_checkpoint
from mezzotint.checkpoint.gguf_write import TYPES, interleave_rows, write_gguf
from mezzotint.checkpoint.shape import Rope
from mezzotint.cli import run as command
from mezzotint.errors import UsageError

WITHIN = {  # of the largest value in a block of 32: half a step, and a scale in half floats
    "f32": 0.0, "f16": 2**-11, "bf16": 2**-8, "q8_0": 0.5 / 127 + 2**-11,
    "q5_1": 1.02 / 31, "q5_0": 1.02 / 16, "q4_1": 1.02 / 15, "q4_0": 1.02 / 8,
}  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> Path:
    shape = replace(tiny.LLAMA, tied=True)
    return tiny.write_gguf(tmp_path / "small.gguf", "llama", shape, tiny.random_weights(shape))


@pytest.mark.parametrize("kind", TYPES)
def test_weights_come_back_within_the_rounding_of_the_type(
    kind: str, small: Path, tmp_path: Path
) -> None:
    source = open_checkpoint(small)
    write_gguf(source, tmp_path / "out.gguf", kind)
    back = open_checkpoint(tmp_path / "out.gguf")
    assert (back.shape, back.family) == (source.shape, source.family)
    for name in source.weights:
        want, got = source.weights[name], back.weights[name]
        if want.ndim == 1:
            np.testing.assert_array_equal(got, want)
            continue
        form = "q8_0" if name == "embed" and kind.startswith(("q4", "q5")) else kind
        blocks = np.abs(want).reshape(-1, 32).max(axis=1, keepdims=True)
        error = np.abs(got - want).reshape(-1, 32)
        assert (error <= WITHIN[form] * blocks + 1e-7).all(), name
        assert form == "f32" or error.max() > 0  # it was rounded at all


def test_rows_are_interleaved_as_the_reader_undoes_it() -> None:
    from mezzotint.checkpoint.gguf import rotate_half_rows

    rows = np.arange(64 * 3, dtype=np.float32).reshape(64, 3)
    moved = interleave_rows(rows, 2)
    assert moved[1, 0] == rows[16, 0]  # the second of a pair is from the head's second half
    np.testing.assert_array_equal(rotate_half_rows(moved, 2), rows)


def test_the_vocabulary_and_the_template_come_along(small: Path, tmp_path: Path) -> None:
    write_gguf(open_checkpoint(small), tmp_path / "out.gguf", "q8_0")
    one, two = (open_checkpoint(f).load_tokenizer() for f in (small, tmp_path / "out.gguf"))
    messages = [{"role": "user", "content": "Wie geht's? <|im_end|> 好"}]
    assert two.chat(messages) == one.chat(messages)
    assert two.added == one.added


def test_llama3_divisors_are_kept(tmp_path: Path) -> None:
    from mezzotint.checkpoint.shape import rope_table

    rope = Rope(500000.0, "llama3", 8.0, original_context=8192)
    plain, _ = rope_table(Rope(rope.theta), 32)
    scaled, _ = rope_table(rope, 32)
    shape = replace(tiny.LLAMA, rope=Rope(rope.theta))
    path = tiny.write_gguf(
        tmp_path / "l.gguf", "llama", shape, tiny.random_weights(shape),
        tensors={"rope_freqs.weight": plain / scaled},
    )  # fmt: skip
    source = open_checkpoint(path)
    assert source.shape.rope.kind == "llama3"
    write_gguf(source, tmp_path / "out.gguf", "f16")
    assert open_checkpoint(tmp_path / "out.gguf").shape.rope == source.shape.rope


def test_what_cannot_be_written_is_refused_and_leaves_nothing(small: Path, tmp_path: Path) -> None:
    source, out = open_checkpoint(small), tmp_path / "out.gguf"
    with pytest.raises(UsageError, match="q3_k"):
        write_gguf(source, out, "q3_k")
    with pytest.raises(UsageError, match="no GGUF"):
        write_gguf(replace(source, path=tmp_path), out, "f32")

    class Broken(dict[str, object]):
        def __getitem__(self, name: str) -> object:
            raise OSError("the disk is gone")

    broken = Broken(dict.fromkeys(source.weights))
    with pytest.raises(OSError, match="gone"):
        write_gguf(replace(source, weights=broken), out, "f32")  # type: ignore[arg-type]
    assert [file.name for file in tmp_path.iterdir()] == ["small.gguf"]
    out.write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists"):
        write_gguf(source, out, "f32")
    assert out.read_bytes() == b"mine"


def test_the_command(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "cli.gguf")
    assert command(["export", "gguf", str(small), out, "--type", "f16", "-q"]) == 0
    assert open_checkpoint(out).shape == open_checkpoint(small).shape
    assert command(["export", "gguf", "a", "b", "c"]) == 2
    assert "3 arguments" in capsys.readouterr().err


def test_llama_cpp_writes_what_we_write(smollm2_path: Path, tmp_path: Path) -> None:
    """The adapted model in float32, greedy, token by token, near ties allowed."""
    pytest.importorskip("llama_cpp")
    from mezzotint.backend import extend
    from mezzotint.backend.native import NativeModel
    from mezzotint.bench.llama import Context
    from mezzotint.model import open_named

    merged = open_named("hybrid", quiet=True)
    tokenizer = merged.load_tokenizer()
    write_gguf(merged, tmp_path / "hybrid.gguf", "f32")
    ours = NativeModel.load(merged, "fp32", 1, cache=False)
    theirs = Context(tmp_path / "hybrid.gguf", 256, 1)
    try:
        for text in ("Name a river.", "Wake me at seven", "给安娜打电话"):
            prompt = tokenizer.chat([{"role": "user", "content": text}])
            spelt = tokenizer.decode(prompt, control=True)
            assert theirs.tokenize(spelt) == prompt
            session = ours.session()
            theirs.truncate(0)
            new = prompt
            for _ in range(8):
                mine = extend(session, new)
                assert mine is not None
                theirs.decode(new)
                other = theirs.logits(-1)
                best, said = int(mine.argmax()), int(other.argmax())
                assert best == said or mine[best] - mine[said] < 0.05, text
                assert np.abs(mine - other).max() < 0.5  # llama.cpp's cache is in half floats
                new = [best]
    finally:
        theirs.close()
