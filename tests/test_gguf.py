"""GGUF files: every architecture's layout, every tensor type, and files that are broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

import tiny
from mezzotint.backend import Pass
from mezzotint.checkpoint import open_checkpoint
from mezzotint.checkpoint.gguf_file import open_gguf_file
from mezzotint.checkpoint.shape import Rope, rope_table
from mezzotint.errors import DamagedModel, MezzotintError, ModelError, UnknownFamily

MASK_KEY = "tokenizer.ggml.mask_token_id"
ARCHITECTURES = {
    "llama": (tiny.LLAMA, {}),
    "qwen2": (replace(tiny.QWEN2, tied=True), {}),
    "qwen3": (tiny.QWEN3, {}),
    "dream": (tiny.QWEN2, {MASK_KEY: tiny.MASK, "dream.attention.causal": False}),
    "llada": (tiny.LLADA, {MASK_KEY: tiny.MASK, "diffusion.shift_logits": False}),
}


def write(path: Path, arch: str = "llama", kind: str = "F32") -> dict[str, np.ndarray]:
    shape, extra = ARCHITECTURES[arch]
    weights = tiny.random_weights(shape)
    tiny.write_gguf(path, arch, shape, weights, kind, extra)
    return weights


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_architecture_gives_canonical_weights(arch: str, tmp_path: Path) -> None:
    weights = write(tmp_path / "m.gguf", arch)
    checkpoint = open_checkpoint(tmp_path / "m.gguf")
    wanted = ARCHITECTURES[arch][0]
    assert replace(checkpoint.shape, rms_eps=0, rope=Rope()) == replace(
        wanted, rms_eps=0, rope=Rope()
    )
    assert checkpoint.shape.rms_eps == pytest.approx(wanted.rms_eps)
    assert checkpoint.shape.rope.theta == wanted.rope.theta
    assert set(checkpoint.weights) == set(weights)
    for name, array in weights.items():
        np.testing.assert_array_equal(checkpoint.weights[name], array, err_msg=name)
    assert checkpoint.family.name == arch
    assert checkpoint.family.mask_id == (tiny.MASK if arch in ("dream", "llada") else None)
    assert checkpoint.family.stop_ids[0] == tiny.EOS


# Largest error of a rounded value, in units of its block's step (half a step, and the
# rounding of the step itself to 16 bits).
STEPS = {"Q8_0": 127, "Q5_0": 16, "Q5_1": 15.5, "Q4_0": 8, "Q4_1": 7.5}


@pytest.mark.parametrize("kind", ["F16", "BF16", *STEPS])
def test_tensor_types_are_decoded_within_a_step(kind: str, tmp_path: Path) -> None:
    weights = write(tmp_path / "m.gguf", kind=kind)
    got = open_checkpoint(tmp_path / "m.gguf").weights["layers.1.down"]
    want = weights["layers.1.down"]
    if kind in STEPS:
        blocks = np.abs(want.reshape(-1, 32)).max(1, keepdims=True)
        error = np.abs((got - want).reshape(-1, 32))
        assert (error <= 1.02 * blocks / STEPS[kind]).all()
        assert error.max() > 0
    else:
        rounding = 2**-8 if kind == "BF16" else 2**-11
        np.testing.assert_allclose(got, want, rtol=rounding, atol=2**-25)


def raw_gguf(path: Path, kind: gguf.GGMLQuantizationType, raw: np.ndarray) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("t", raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_q6_k_from_its_layout(tmp_path: Path) -> None:
    """A block of 256: low nibbles, high pairs of bits, 16 int8 scales, a float16 factor."""
    rng = np.random.default_rng(3)
    q = rng.integers(0, 64, 256)
    scales = rng.integers(-127, 128, 16).astype(np.int8)
    low, high = np.zeros(128, np.uint8), np.zeros(64, np.uint8)
    for i in range(256):
        half, j = divmod(i, 128)
        low[64 * half + j % 64] |= (q[i] & 15) << (4 * (j // 64))
        high[32 * half + j % 32] |= (q[i] >> 4) << (2 * (j // 32))
    factor = np.array([0.0625], np.float16)
    raw = np.concatenate([low, high, scales.view(np.uint8), factor.view(np.uint8)])[None]
    path = raw_gguf(tmp_path / "k.gguf", gguf.GGMLQuantizationType.Q6_K, raw)
    want = 0.0625 * np.repeat(scales, 16).astype(np.float32) * (q - 32)
    np.testing.assert_array_equal(open_gguf_file(path).read("t")[0], want)


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K"])
def test_k_quants_have_scale_and_minimum(kind: str, tmp_path: Path) -> None:
    """With all scales and minima 1 and both factors set, a value is d · q − dmin."""
    size = {"Q4_K": 144, "Q5_K": 176}[kind]
    raw = np.zeros((1, size), np.uint8)
    raw[0, :4] = np.array([0.5, 0.25], np.float16).view(np.uint8)
    # Sub-blocks 0…3 hold 6-bit scales in bytes 0…3 and minima in 4…7; sub-blocks 4…7
    # share bytes 8…11, scales in low and minima in high nibbles.
    raw[0, 4:12], raw[0, 12:16] = 1, 0x11
    raw[0, -128:] = 0x73  # nibbles 3 and 7; Q5_K's high bits stay 0
    path = raw_gguf(tmp_path / "k.gguf", gguf.GGMLQuantizationType[kind], raw)
    want = np.tile(np.repeat([3, 7], 32), 4) * 0.5 - 0.25
    np.testing.assert_array_equal(open_gguf_file(path).read("t")[0], want)


def test_a_type_without_a_decoder_is_named(tmp_path: Path) -> None:
    kind = gguf.GGMLQuantizationType.I32
    path = raw_gguf(tmp_path / "k.gguf", kind, np.zeros((1, 32), np.int32))
    with pytest.raises(ModelError, match="I32"):
        open_gguf_file(path).read("t")


def test_rope_scaling_keys(tmp_path: Path) -> None:
    weights = tiny.random_weights(tiny.LLAMA)
    said = {
        "llama.rope.scaling.type": "yarn",
        "llama.rope.scaling.factor": 4.0,
        "llama.rope.scaling.original_context_length": 128,
    }
    tiny.write_gguf(tmp_path / "y.gguf", "llama", tiny.LLAMA, weights, extra=said)
    rope = open_checkpoint(tmp_path / "y.gguf").shape.rope
    assert rope == Rope(1e4, "yarn", 4.0, original_context=128)


def test_llama3_scaling_is_recovered_from_its_divisors(tmp_path: Path) -> None:
    rope = Rope(500000.0, "llama3", 32.0, original_context=8192)
    shape = replace(tiny.LLAMA, rope=rope)
    divisors = rope_table(Rope(500000.0), 32)[0] / rope_table(rope, 32)[0]
    for name, values in ("good", divisors), ("bad", divisors[::-1].copy()):
        tiny.write_gguf(
            tmp_path / f"{name}.gguf", "llama", shape, tiny.random_weights(shape),
            tensors={"rope_freqs.weight": values},
        )  # fmt: skip
    got = open_checkpoint(tmp_path / "good.gguf").shape.rope
    assert (got.kind, got.factor) == ("llama3", pytest.approx(32.0))
    with pytest.raises(UnknownFamily, match="rope_freqs"):
        open_checkpoint(tmp_path / "bad.gguf")


def test_a_diffusion_gguf_under_a_plain_architecture(tmp_path: Path) -> None:
    """Stable-DiffCoder's GGUFs say `llama`; only the name tells."""
    weights = tiny.random_weights(tiny.LLAMA)
    path = tiny.write_gguf(
        tmp_path / "Stable-DiffCoder-8B-Instruct-Q4.gguf", "llama", tiny.LLAMA, weights,
        extra={MASK_KEY: tiny.MASK},
    )  # fmt: skip
    family = open_checkpoint(path).family
    assert (family.name, family.block, family.mask_id) == ("stable-diffcoder", 4, tiny.MASK)


@pytest.mark.parametrize(
    ("arch", "extra", "match"),
    [
        ("llama", {"llama.attention.causal": False}, "not causal"),
        ("llama", {MASK_KEY: tiny.MASK}, "mask token"),
        ("dream", {"diffusion.shift_logits": False, MASK_KEY: tiny.MASK}, "shift_logits"),
        ("llama", {"llama.expert_count": 8}, "mixture of experts"),
        (
            "llama",
            {"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 2.0},
            "RoPE",
        ),
        ("gemma3", {}, "gemma3"),
    ],
)
def test_what_is_not_decoded_rightly_is_refused(
    arch: str, extra: dict, match: str, tmp_path: Path
) -> None:
    shape = ARCHITECTURES.get(arch, (tiny.LLAMA,))[0]
    path = tiny.write_gguf(
        tmp_path / "m.gguf", arch, shape, tiny.random_weights(shape), extra=extra
    )
    with pytest.raises(UnknownFamily, match=match):
        open_checkpoint(path)


@pytest.mark.parametrize("keep", [0, 3, 20, 400, 5000, 0.5, 0.999])
def test_a_truncated_file(keep: float, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(DamagedModel):
        open_checkpoint(path)


def test_no_flipped_header_bit_escapes_as_another_error(tmp_path: Path) -> None:
    """A flipped bit is found, or harmless (in a text); never a crash or a traceback."""
    path = tmp_path / "m.gguf"
    write(path)
    whole = path.read_bytes()
    start = min(t.offset for t in open_gguf_file(path).tensors.values())
    rng = np.random.default_rng(4)
    found = 0
    for at in rng.choice(start, 150, replace=False):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            open_checkpoint(path).load_tokenizer()
        except MezzotintError:
            found += 1
    assert found > 10


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_found_when_read(value: float, tmp_path: Path) -> None:
    weights = tiny.random_weights(tiny.LLAMA)
    weights["layers.1.up"][3, 5] = value
    path = tiny.write_gguf(tmp_path / "m.gguf", "llama", tiny.LLAMA, weights)
    checkpoint = open_checkpoint(path)
    with pytest.raises(DamagedModel, match=r"layers\.1\.up holds NaN or infinity"):
        checkpoint.weights["layers.1.up"]


def test_missing_and_misshapen_tensors_are_named(tmp_path: Path) -> None:
    weights = tiny.random_weights(tiny.LLAMA)
    lost = {n: w for n, w in weights.items() if n != "layers.1.gate"}
    bent = {**weights, "layers.0.o": weights["layers.0.o"].T.copy()}
    path = tiny.write_gguf(tmp_path / "lost.gguf", "llama", tiny.LLAMA, lost)
    with pytest.raises(DamagedModel, match=r"layers\.1\.gate .* is missing"):
        open_checkpoint(path)
    path = tiny.write_gguf(tmp_path / "bent.gguf", "llama", tiny.LLAMA, bent)
    with pytest.raises(
        DamagedModel, match=r"layers\.0\.o has shape \(128, 96\), expected \(96, 12"
    ):
        open_checkpoint(path)


def test_smollm2_as_transformers_reads_it(smollm2_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from mezzotint.backend.reference import Reference

    checkpoint = open_checkpoint(smollm2_path)
    tokens = checkpoint.load_tokenizer().encode("Denoising everywhere at once, light from black.")
    at = np.arange(len(tokens), dtype=np.int32)
    session = Reference.load(checkpoint.shape, checkpoint.weights).session()
    got = session.score(Pass(np.array(tokens, np.int32), at), at)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        smollm2_path.parent, gguf_file=smollm2_path.name, dtype=torch.float32
    )
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0].numpy()
    np.testing.assert_allclose(got, want, atol=1e-3, rtol=0)
