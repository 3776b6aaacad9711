"""Opening checkpoints: layouts, families and their traps, damage, memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from mezzotint.checkpoint import open_checkpoint
from mezzotint.checkpoint.detect import Clues, family_names, find, settle
from mezzotint.checkpoint.families import TABLE
from mezzotint.checkpoint.memory import check_fits, kv_bytes, weight_bytes
from mezzotint.checkpoint.shape import tensor_shapes
from mezzotint.errors import DamagedModel, ModelError, TooLarge, UnknownFamily, UsageError
from mezzotint.family import Family, Regime
from mezzotint.policy import parse
from mezzotint.sampling import Filtered
from tiny import MASK

BIG = replace(tiny.QWEN3, vocab=151936)


def edit(file: Path, **changes: object) -> None:
    """Change keys of a JSON file; None removes one."""
    data = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({k: v for k, v in data.items() if v is not None}))


# ---- layouts


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_family_is_read_whole(family: str, tmp_path: Path) -> None:
    path, weights = tiny.write(tmp_path, family)
    checkpoint = open_checkpoint(path)
    assert checkpoint.shape == tiny.FAMILIES[family].shape
    assert set(checkpoint.weights) == set(weights) == set(tensor_shapes(checkpoint.shape))
    for name, array in weights.items():
        np.testing.assert_array_equal(checkpoint.weights[name], array, err_msg=name)
    assert checkpoint.family.name == family
    assert checkpoint.family.stop_ids[:2] == (tiny.TURN, tiny.EOS) or family == "dreamon"
    assert checkpoint.family.mask_id == (MASK if checkpoint.family.diffusion else None)
    assert checkpoint.name == tiny.FAMILIES[family].folder


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("shards", [1, 3])
def test_dtypes_and_shards(dtype: str, shards: int, tmp_path: Path) -> None:
    if dtype == "BF16":
        pytest.importorskip("torch")
    path, weights = tiny.write(tmp_path, "qwen2", dtype, shards)
    checkpoint = open_checkpoint(path)
    assert len(checkpoint.files) == shards
    for name, array in weights.items():
        np.testing.assert_array_equal(checkpoint.weights[name], array, err_msg=name)


def test_a_hub_snapshot_goes_by_its_models_name(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "sdar")
    snapshot = tmp_path / "models--JetLM--SDAR-1.7B-Chat" / "snapshots" / "0123abc"
    shutil.copytree(path, snapshot)
    assert open_checkpoint(snapshot).name == "SDAR-1.7B-Chat"
    assert open_checkpoint(snapshot).family.name == "sdar"


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "dream")
    trace = tmp_path / "ran"
    for name in ("modeling_dream.py", "tokenization_dream.py", "__init__.py"):
        (path / name).write_text(f"open({str(trace)!r}, 'w')")
    open_checkpoint(path).load_tokenizer()
    assert not trace.exists()


# ---- families


def test_every_policy_in_the_table_parses() -> None:
    for entry in TABLE:
        f = entry.family
        parse(f.policy, Filtered(f.temperature, f.top_p, f.top_k), f.steps)


def test_facts_that_decide_what_is_decoded() -> None:
    """The matrix of docs/families.md: regime, shift, mask, block."""
    facts = {f.name: (f.regime, f.shift, f.mask_id, f.block) for f in (e.family for e in TABLE)}
    full, block = Regime.FULL, Regime.BLOCK_CAUSAL
    assert facts == {
        "llama": (Regime.CAUSAL, True, None, 0),
        "qwen2": (Regime.CAUSAL, True, None, 0),
        "qwen3": (Regime.CAUSAL, True, None, 0),
        "dream": (full, True, 151666, 0),
        "dreamon": (full, True, 151666, 0),
        "dreamreasoner": (block, False, 151669, 32),
        "llada": (full, False, 126336, 0),
        "illada": (full, False, 5, 0),
        "sdar": (block, False, 151669, 4),
        "i-dlm": (Regime.CAUSAL_MASKS, True, None, 4),
        "fast-dllm-v2": (block, True, 151665, 32),
        "wedlm": (Regime.REORDERED, False, 151665, 16),
        "stable-diffcoder": (block, False, 5, 4),
        "a2d-mdlm": (full, False, None, 0),
        "a2d-bd3lm": (block, False, None, 32),
        "open-dcoder": (full, True, None, 0),
    }


def test_dreamon_ids_come_from_its_tokenizer(tmp_path: Path) -> None:
    family = open_checkpoint(tiny.write(tmp_path, "dreamon")[0]).family
    assert (family.expand_id, family.delete_id) == (tiny.EXPAND, tiny.EOS)
    assert tiny.EOS not in family.stop_ids


def test_the_checkpoints_block_wins(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "sdar", config={"block_size": 16})
    assert open_checkpoint(path).family.block == 16


@pytest.mark.parametrize(
    ("kind", "names", "classes"),
    [
        ("llada", ("LLaDA-MoE-7B-A1B-Instruct",), ("LLaDAMoEModelLM",)),
        ("llada2_moe", ("LLaDA2.0-mini",), ("LLaDA2MoeModelLM",)),
        ("sdar_moe", ("SDAR-30B-A3B-Chat",), ("SDARMoeForCausalLM",)),
        ("rnd1", ("RND1-Base-0910",), ("RND1LM",)),
        ("nemotron_labs_diffusion", ("x",), ("NemotronLabsDiffusionModel",)),
        ("qwen3", ("Efficient-DLM-4B",), ("EfficientDLMForCausalLM",)),
        ("diffusion_gemma", ("x",), ("DiffusionGemmaForBlockDiffusion",)),
        ("mdlm", ("mdlm-owt", "configuration_mdlm.MDLMConfig"), ("MDLM",)),
        ("bd3lm", ("x", "configuration_bd3lm.BD3LMConfig"), ("BD3LM",)),
        ("gpt2", ("diffugpt-m",), ("GPT2LMHeadModel",)),
        ("a2d-modernbert", ("ModernBERT-base-chat-v0.1",), ("ModernBertForMaskedLM",)),
        ("qwen3_moe", ("Qwen3-30B-A3B",), ("Qwen3MoeForCausalLM",)),
    ],
)
def test_known_but_unsupported_is_refused_by_name(
    kind: str, names: tuple[str, ...], classes: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownFamily, match="does not decode it") as caught:
        find(Clues(kind, names, classes, mask_ids=(7,)))
    assert names[0] in str(caught.value)


@pytest.mark.parametrize(
    ("clues", "doubt"),
    [
        (Clues("llama", ("x",), ("LlamaForCausalLM",), remote=True), "code of its own"),
        (Clues("qwen2", ("x",), ("Qwen2ForMaskedLM",)), "class of its own"),
        (Clues("qwen3", ("x",), ("Qwen3ForCausalLM",), mask_ids=(5,)), "mask token"),
        (Clues("qwen3", ("my-dLLM",), ("Qwen3ForCausalLM",)), "name of a diffusion model"),
        (Clues("sdar", ("renamed",), ("SDARForCausalLM",), remote=True), "how to decode"),
        (Clues("a2d-qwen3", ("renamed",), ("A2DQwen3LMHeadModel",)), "how to decode"),
        (Clues("mamba", ("x",), ("MambaForCausalLM",)), "how to decode"),
    ],
)
def test_a_doubtful_checkpoint_is_refused_unless_the_user_names_it(
    clues: Clues, doubt: str
) -> None:
    with pytest.raises(UnknownFamily, match=doubt) as caught:
        find(clues)
    assert "--family" in caught.value.hint
    assert find(clues, "qwen3").family.name == "qwen3"


def test_an_unknown_family_name_lists_the_known() -> None:
    with pytest.raises(UsageError, match="sdar") as caught:
        find(Clues("qwen3", ("x",)), "sdra")
    assert all(name in str(caught.value) for name in family_names())


def settled(family: str, **said: object) -> Family:
    clues = Clues("sdar", ("x",), **said)  # type: ignore[arg-type]
    return settle(find(clues, family), clues, BIG)


def test_mask_ids_from_every_source() -> None:
    assert settled("sdar", special={"<|MASK|>": 151669}).mask_id == 151669
    assert settled("sdar", mask_ids=(7,), special={"<|MASK|>": 7}).mask_id == 7
    # Unnamed: the published id, if the tokenizer spells a mask there or is not known.
    assert settled("sdar").mask_id == 151669
    assert settled("sdar", special={"<mask_0>": 151669}).mask_id == 151669


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"mask_ids": (3,), "special": {"<|MASK|>": 151669}}, "different mask tokens"),
        ({"mask_ids": (3, 4)}, "different mask tokens"),
        ({"special": {"<unk>": 151669}}, "that token is '<unk>'"),
        ({"special": {"<|im_end|>": 151645}}, "that token is 'nothing'"),
        ({"mask_ids": (200000,)}, "outside the vocabulary"),
        ({"mask_ids": (9,), "stop_ids": (9,)}, "both mask and end"),
    ],
)
def test_a_wrong_mask_is_an_error(said: dict, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        settled("sdar", **said)


def test_a_family_without_a_published_mask_must_be_told() -> None:
    with pytest.raises(ModelError, match="does not say which token is its mask"):
        settled("i-dlm")


def test_the_body_must_be_the_familys(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "sdar")
    with pytest.raises(DamagedModel, match="dream has"):
        open_checkpoint(path, family="dream")


# ---- damage


def test_a_path_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model at"):
        open_checkpoint(tmp_path / "nothing")
    with pytest.raises(UsageError, match="neither"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("keep", [0, 7, 100, 0.5, 0.9999])
def test_truncated_weights(keep: float, tmp_path: Path) -> None:
    file = tiny.write(tmp_path, "llama")[0] / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(DamagedModel, match=r"model\.safetensors"):
        open_checkpoint(file.parent)


def test_flipped_header_bits(tmp_path: Path) -> None:
    file = tiny.write(tmp_path, "llama")[0] / "model.safetensors"
    whole = file.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(5)
    found = 0
    for at in rng.choice(8 + len(whole[8 : 8 + size].rstrip()), 120, replace=False):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(7)
        file.write_bytes(damaged)
        try:
            weights = open_checkpoint(file.parent).weights
            for name in weights:
                weights[name]
        except (ModelError, UnknownFamily):
            found += 1
    assert found > 100  # the rest fall on blanks or on equal meanings


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_nan_and_infinity(value: float, tmp_path: Path) -> None:
    path, weights = tiny.write(tmp_path, "llada")
    weights["layers.0.down"][5, 7] = value
    tiny.write_weights(path, {tiny.hf_name(n, "llada"): w for n, w in weights.items()}, "F32", 1)
    checkpoint = open_checkpoint(path)
    with pytest.raises(DamagedModel, match=r"layers\.0\.down holds NaN"):
        checkpoint.weights["layers.0.down"]


def test_missing_misshapen_and_unknown_tensors(tmp_path: Path) -> None:
    path, weights = tiny.write(tmp_path, "qwen3")

    def rewrite(changed: dict[str, np.ndarray], extra: dict[str, np.ndarray]) -> None:
        named = {tiny.hf_name(n): w for n, w in changed.items()}
        tiny.write_weights(path, named | extra, "F32", 1)

    rewrite({n: w for n, w in weights.items() if n != "layers.1.k_norm"}, {})
    with pytest.raises(DamagedModel, match=r"layers\.1\.k_norm \(32,\) is missing"):
        open_checkpoint(path)
    rewrite(weights | {"layers.0.up": weights["layers.0.up"][:-32]}, {})
    with pytest.raises(DamagedModel, match=r"layers\.0\.up has shape \(128, 96\), expected \(160"):
        open_checkpoint(path)
    rewrite(weights, {"model.layers.0.self_attn.o_proj.bias": np.ones(96, np.float32)})
    with pytest.raises(UnknownFamily, match=r"o_proj\.bias is no part"):
        open_checkpoint(path)


def test_a_missing_shard_and_a_shard_elsewhere(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "llama", shards=2)
    index = path / "model.safetensors.index.json"
    edit(index, weight_map={"x": "../secret.safetensors"})
    with pytest.raises(DamagedModel, match="outside its folder"):
        open_checkpoint(path)
    edit(index, weight_map={"x": "model-00009-of-00009.safetensors"})
    with pytest.raises(DamagedModel, match="shard model-00009"):
        open_checkpoint(path)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_size": "96"}, "hidden_size"),
        ({"num_key_value_heads": 3}, "3 KV heads"),
        ({"hidden_act": "gelu"}, "SwiGLU"),
        ({"use_sliding_window": True}, "sliding-window"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised by another tool"),
        ({"rope_scaling": {"type": "longrope", "factor": 2.0}}, "RoPE"),
        ({"rope_scaling": {"type": "yarn"}}, "factor None"),
        ({"partial_rotary_factor": 0.5}, "RoPE"),
    ],
)
def test_configs_that_cannot_be_followed(changes: dict, match: str, tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "llama")
    edit(path / "config.json", **changes)
    with pytest.raises(ModelError, match=match):
        open_checkpoint(path)


def test_a_config_that_is_no_json(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "llama")
    (path / "config.json").write_bytes(b'{"model_type": "llama"')
    with pytest.raises(DamagedModel, match=r"config\.json is not readable JSON"):
        open_checkpoint(path)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "llama")
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    with pytest.raises(DamagedModel) as caught:
        open_checkpoint(path)
    assert "pickled" in caught.value.hint


def test_a_missing_tokenizer(tmp_path: Path) -> None:
    path, _ = tiny.write(tmp_path, "llama")
    (path / "tokenizer.json").unlink()
    checkpoint = open_checkpoint(path)
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        checkpoint.load_tokenizer()


# ---- memory


def test_bytes_needed_are_those_of_the_tensors() -> None:
    floats = sum(w.nbytes for w in tiny.random_weights(tiny.QWEN2).values())
    assert weight_bytes(tiny.QWEN2) == floats
    assert floats / 2 < weight_bytes(tiny.QWEN2, "bf16") < 0.51 * floats
    assert weight_bytes(tiny.QWEN2, "int4") > weight_bytes(tiny.QWEN2, "int4/int4")
    assert kv_bytes(tiny.QWEN2, 100) == 2 * 2 * 2 * 32 * 100 * 2
    with pytest.raises(UsageError, match="int3"):
        weight_bytes(tiny.QWEN2, "int3")


def test_a_model_larger_than_memory_is_refused_with_the_numbers() -> None:
    check_fits(2**30, "it", available=2**30)
    with pytest.raises(TooLarge, match=r"Big needs 3\.5 GiB of memory; 2\.0 GiB are free"):
        check_fits(7 * 2**29, "Big", available=2**31)
    with pytest.raises(TooLarge):
        check_fits(2**60, "Big")
