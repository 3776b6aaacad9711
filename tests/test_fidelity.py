"""Backends against transformers' own Llama, Qwen2 and Qwen3 classes, family by family.

Each tiny checkpoint lies in its family's exact layout, is opened as a user's would be,
and scores a half-masked canvas under the family's visibility. The oracle gets the same
weights and a 4-D additive mask worked out here from the regime's definition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from mezzotint.backend import Pass, Session, extend
from mezzotint.checkpoint import Checkpoint, open_checkpoint
from mezzotint.checkpoint.shape import Rope, Shape
from mezzotint.family import Family, Regime

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

LENGTH = 43
BACKENDS = ["reference", "native"]
# Largest difference of a logit allowed, for logits whose standard deviation is near 1.
TOLERANCE = 2e-4


# Root mean square of the difference over the logits' standard deviation, on random weights
# (each number about a third above the worst family's).
LOSS = {"bf16": 0.02, "int8": 0.06, "int6": 0.2, "int4": 0.48}


def make_session(backend: str, checkpoint: Checkpoint, weights: str = "fp32") -> Session:
    """An empty session of a backend; the reference is always float32."""
    if backend == "reference":
        from mezzotint.backend.reference import Reference

        return Reference.load(checkpoint.shape, checkpoint.weights).session()
    native = pytest.importorskip("mezzotint.backend.native")
    return native.NativeModel.load(checkpoint, weights, cache=False).session()


def oracle(shape: Shape, weights: dict[str, np.ndarray], rope: dict | None = None) -> object:
    """transformers' class for the shape, with these weights."""
    kind = "Qwen2" if shape.qkv_bias else "Qwen3" if shape.qk_norm else "Llama"
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.ffn,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.context,
        rms_norm_eps=shape.rms_eps,
        tie_word_embeddings=shape.tied,
        rope_parameters=rope or {"rope_type": "default", "rope_theta": shape.rope.theta},
        attn_implementation="eager",
    )
    model = getattr(transformers, f"{kind}ForCausalLM")(config).float().eval()
    state = {tiny.hf_name(n): torch.from_numpy(w) for n, w in weights.items()}
    if shape.tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model


def oracle_logits(model: object, tokens: np.ndarray, visible: np.ndarray) -> np.ndarray:
    mask = torch.zeros(visible.shape).masked_fill(~torch.from_numpy(visible), -torch.inf)
    with torch.no_grad():
        out = model(
            input_ids=torch.from_numpy(tokens.astype(np.int64))[None],
            attention_mask=mask[None, None],
            position_ids=torch.arange(len(tokens))[None],
        )
    return out.logits[0].numpy()


def visibility(family: Family, masked: np.ndarray) -> np.ndarray:
    """visible[i, j]: position i sees position j, straight from the regime's definition."""
    at = np.arange(len(masked))
    if family.regime is Regime.FULL:
        return np.ones((len(at), len(at)), bool)
    if family.regime is Regime.BLOCK_CAUSAL:
        return at[None] // family.block <= at[:, None] // family.block
    if family.regime is Regime.REORDERED:
        rank = np.empty_like(at)
        rank[np.argsort(masked, kind="stable")] = at
        return rank[None] <= rank[:, None]
    assert family.regime in (Regime.CAUSAL, Regime.CAUSAL_MASKS)
    return at[None] <= at[:, None]


@dataclass(frozen=True)
class Case:
    checkpoint: Checkpoint
    weights: dict[str, np.ndarray]
    tokens: np.ndarray
    visible: np.ndarray


def half_masked(family: str, folder: Path) -> Case:
    """A canvas with a given prefix of 11 tokens and half of the rest masked."""
    path, weights = tiny.write(folder, family)
    checkpoint = open_checkpoint(path)
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, 256, LENGTH).astype(np.int32)
    masked = (rng.random(LENGTH) < 0.5) & (np.arange(LENGTH) >= 11)
    if checkpoint.family.mask_id is not None:
        tokens[masked] = checkpoint.family.mask_id
    return Case(checkpoint, weights, tokens, visibility(checkpoint.family, masked))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_logits_are_those_of_transformers(backend: str, family: str, tmp_path: Path) -> None:
    case = half_masked(family, tmp_path)
    assert case.checkpoint.family.name == family
    session = make_session(backend, case.checkpoint)
    at = np.arange(LENGTH, dtype=np.int32)
    got = session.score(Pass(case.tokens, at, case.visible), at)
    want = oracle_logits(oracle(case.checkpoint.shape, case.weights), case.tokens, case.visible)
    assert want.std() > 0.5, "logits too flat to tell anything"
    np.testing.assert_allclose(got, want, atol=TOLERANCE * want.std(), rtol=0)


@pytest.mark.parametrize("weights", LOSS)
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_packed_weights_lose_no_more_than_stated(weights: str, family: str, tmp_path: Path) -> None:
    case = half_masked(family, tmp_path)
    at = np.arange(LENGTH, dtype=np.int32)
    rows = Pass(case.tokens, at, case.visible)
    got = make_session("native", case.checkpoint, weights).score(rows, at)
    want = make_session("native", case.checkpoint).score(rows, at)
    lost = np.sqrt(np.mean((got - want) ** 2)) / want.std()
    assert 0 < lost < LOSS[weights], lost


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", ["sdar", "fast-dllm-v2", "llama", "wedlm"])
def test_a_window_over_cached_rows_is_the_whole_pass(
    backend: str, family: str, tmp_path: Path
) -> None:
    """Where no earlier row sees a later one, caching rows changes nothing."""
    case = half_masked(family, tmp_path)
    # As much of the given prefix as sees nothing after it: whole blocks only.
    cut = max(n for n in range(12) if not case.visible[:n, n:].any())
    session = make_session(backend, case.checkpoint)
    extend(session, case.tokens[:cut], case.visible[:cut, :cut])
    at = np.arange(cut, LENGTH, dtype=np.int32)
    got = session.score(Pass(case.tokens[cut:], at, case.visible[cut:, cut:]), at - cut)
    want = oracle_logits(oracle(case.checkpoint.shape, case.weights), case.tokens, case.visible)
    np.testing.assert_allclose(got, want[cut:], atol=TOLERANCE * want.std(), rtol=0)
    assert session.length == cut


ROPES = {
    "default": (Rope(1e4), {"rope_type": "default"}),
    "linear": (Rope(1e4, "linear", 4.0), {"rope_type": "linear", "factor": 4.0}),
    "llama3": (
        Rope(1e4, "llama3", 8.0, original_context=64),
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
    "yarn": (
        Rope(1e4, "yarn", 4.0, original_context=128),
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    ),
    "yarn-attention-factor": (
        Rope(1e4, "yarn", 4.0, original_context=128, beta_fast=16.0, attention_factor=0.8),
        {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 128,
            "beta_fast": 16.0,
            "attention_factor": 0.8,
        },
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("spelling", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize("name", ROPES)
def test_rope_scaling(backend: str, spelling: str, name: str, tmp_path: Path) -> None:
    rope, said = ROPES[name]
    shape = replace(tiny.LLAMA, rope=rope)
    old = {k.replace("rope_type", "type"): v for k, v in said.items()}
    new = {**said, "rope_theta": rope.theta}
    config = {"rope_parameters": new} if spelling == "rope_parameters" else {"rope_scaling": old}
    path, weights = tiny.write(tmp_path, "llama", shape=shape, config=config)
    checkpoint = open_checkpoint(path)
    assert checkpoint.shape == shape
    tokens = np.random.default_rng(2).integers(0, 256, 300).astype(np.int32)
    at = np.arange(300, dtype=np.int32)
    got = make_session(backend, checkpoint).score(Pass(tokens, at), at)
    want = oracle_logits(oracle(shape, weights, new), tokens, np.tri(300, dtype=bool))
    np.testing.assert_allclose(got, want, atol=TOLERANCE * want.std(), rtol=0)


PROMPTS = [
    "What is the capital of France?", "Name three primary colours.", "Write a haiku about rain.",
    "What is 17 + 25?", "Translate 'good morning' into Spanish.", "Who wrote Hamlet?",
    "List the days of the week.", "Explain gravity to a child.", "What is a mezzotint?",
    "Give me a recipe for pancakes.", "Why is the sky blue?", "Reverse the word 'stone'.",
    "What does CPU stand for?", "Tell me a joke.", "Define entropy.", "How do bees make honey?",
    "Write a Python function that adds two numbers.", "Is water wet?", "What is DNA?",
    "Suggest a name for a cat.",
]  # fmt: skip


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", [pytest.param("reference", marks=pytest.mark.slow), "native"])
def test_smollm2_writes_what_transformers_writes(backend: str, smollm2_path: Path) -> None:
    """Greedy text of 20 prompts, 64 tokens each, token for token.

    transformers scores our whole text in one causal pass: had it chosen otherwise
    anywhere, its argmax there would differ from our next token.
    """
    checkpoint = open_checkpoint(smollm2_path)
    tokenizer = checkpoint.load_tokenizer()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        smollm2_path.parent, gguf_file=smollm2_path.name, dtype=torch.float32
    )
    first = make_session(backend, checkpoint)
    for prompt in PROMPTS:
        ids = tokenizer.chat([{"role": "user", "content": prompt}])
        session = first.fork()
        logits = extend(session, ids)
        written: list[int] = []
        for _ in range(64):
            assert logits is not None
            written.append(int(logits.argmax()))
            logits = extend(session, written[-1:])
        with torch.no_grad():
            theirs = model(torch.tensor([ids + written])).logits[0]
        assert theirs[len(ids) - 1 : -1].argmax(-1).tolist() == written, prompt
