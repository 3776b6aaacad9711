"""The way of decoding that is chosen here, and ends that come last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from mezzotint.adapt.save import save_adapter
from mezzotint.auto import Way, choose, settled, ways
from mezzotint.backend import Pass, toy
from mezzotint.backend.native import NativeModel
from mezzotint.canvas import Canvas, FloatArray, IntArray
from mezzotint.checkpoint import Checkpoint, open_checkpoint
from mezzotint.checkpoint.adapter import adapted, hybrid
from mezzotint.costs import ROWS, cost, costs
from mezzotint.errors import UsageError
from mezzotint.generate import Options, generate
from mezzotint.model import load

AR = Way("left-to-right", 0, tokens=1.0, rows=1.0, right=0.9)
EXACT = Way("verify:0.4", 16, tokens=4.0, rows=20.0, right=0.9)
WRONG = Way("leading:0.5", 16, tokens=9.0, rows=20.0, right=0.6)
FLAT = {1: 3.0, 16: 4.0, 32: 5.0}
STEEP = {1: 3.0, 16: 48.0, 32: 96.0}


def test_the_fastest_way_of_those_that_answer_as_well() -> None:
    assert choose([AR, EXACT, WRONG], FLAT) is EXACT
    assert choose([AR, EXACT, WRONG], STEEP) is AR
    assert choose([AR, replace(EXACT, right=0.895)], FLAT) is not AR  # within the margin
    assert choose([AR, replace(EXACT, right=0.88)], FLAT) is AR


def test_a_cost_lies_between_the_measured_ones() -> None:
    assert cost(FLAT, 16) == 4.0
    assert cost(FLAT, 24) == pytest.approx(4.5)
    assert cost(FLAT, 99) == 5.0


@pytest.fixture
def base(tmp_path: Path) -> Checkpoint:
    return open_checkpoint(tiny.write(tmp_path / "base", "llama")[0])


@pytest.fixture
def adapter(base: Checkpoint, tmp_path: Path) -> Path:
    """A hybrid's, random, with two ways noted."""
    random = np.random.default_rng(0)
    shape = base.shape
    learnt = {"mask": random.normal(size=shape.hidden).astype(np.float32)}
    for layer in range(shape.layers):
        for name in "qkvo":
            out, size = base.weights[f"layers.{layer}.{name}"].shape
            at = f"layers.{layer}.{name}"
            learnt[f"{at}.a"] = random.normal(size=(2, size)).astype(np.float32) * 0.1
            learnt[f"{at}.b"] = random.normal(size=(out, 2)).astype(np.float32) * 0.1
    about = {
        "name": "x", "base": base.name, "mode": "hybrid", "mask_id": tiny.MASK,
        "filler_id": tiny.EOS, "block": 8,
        "ways": [{"policy": "left-to-right", "block": 0, "tokens": 1, "rows": 1, "right": 0.5},
                 {"policy": "verify:0.3", "block": 5, "tokens": 1e6, "rows": 2, "right": 0.5}],
    }  # fmt: skip
    save_adapter(tmp_path / "a", learnt, {"rank": 2, "alpha": 2.0, "dora": False}, about)
    return tmp_path / "a"


def test_a_model_is_decoded_the_way_that_was_noted(
    base: Checkpoint, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEZZOTINT_HOME", str(tmp_path / "home"))
    model = load(str(base.path), weights="fp32", adapter=adapter)
    assert (model.family.name, model.family.policy, model.family.block) == (
        "hybrid", "verify:0.3", 5,
    )  # fmt: skip
    prompt = [40, 41, 42]
    texts = {
        mode: generate(model, prompt, Options(max_tokens=24, policy=mode)).tokens
        for mode in ("ar", "exact")
    }
    assert texts["ar"] == texts["exact"]


def test_costs_are_measured_once(
    base: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEZZOTINT_HOME", str(tmp_path / "home"))
    engine = NativeModel.load(base, "fp32", cache=False)
    found = costs(engine, engine.identity)
    assert set(found) == set(ROWS)
    assert all(ms > 0 for ms in found.values())

    class Unused:
        def session(self) -> toy.ToySession:
            raise AssertionError("measured again")

    assert costs(Unused(), engine.identity) == found
    (file,) = (tmp_path / "home" / "costs").iterdir()
    file.write_text("{broken")
    assert set(costs(engine, engine.identity)) == set(ROWS)
    with pytest.raises(AssertionError, match="measured again"):
        costs(Unused(), engine.identity | {"threads": 99})


class Sure:
    """A session whose rows are all certain: the k-th position after the prompt has token
    answer[k], and fillers follow; the rows of masks see no further than the truth."""

    vocab = tiny.VOCAB

    def __init__(self, answer: list[int], hesitant: set[int]) -> None:
        self.answer, self.hesitant, self.length = answer, hesitant, 0
        self.passes = 0

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        self.passes += 1
        logits = np.zeros((len(want), self.vocab), np.float32)
        for i, row in enumerate(want):
            k = int(rows.positions[row]) + 1 - 3
            token = self.answer[k] if 0 <= k < len(self.answer) else tiny.EOS
            masked = rows.tokens[row] == tiny.MASK
            logits[i, token] = 2.0 if masked and k in self.hesitant else 30.0
        return logits

    def keep(self, count: int) -> None:
        self.length += count

    def truncate(self, length: int) -> None:
        self.length = length

    def fork(self) -> Sure:
        raise AssertionError


@pytest.mark.parametrize("policy", ["threshold:0.9", "leading:0.9", "verify:0.4", "refine", "ar"])
def test_an_end_after_an_open_position_does_not_end_it(base: Checkpoint, policy: str) -> None:
    """Where the window is sure of its end and of fillers, but not of the text before."""

    class Held:
        family = hybrid(base.family, tiny.MASK, tiny.EOS, 8)
        tokenizer = base.load_tokenizer()
        context = 512

    answer = [60, 61, 62, 63, tiny.TURN]
    session = Sure(answer, hesitant={1, 2})
    result = generate(Held(), [40, 41, 42], Options(max_tokens=40, policy=policy), session)
    assert (list(result.tokens), result.stop) == (answer[:-1], "stop")


def test_fillers_are_taken_out_of_a_closed_hole(base: Checkpoint) -> None:
    from mezzotint.canvas import GIVEN, WRITTEN
    from mezzotint.generate import Run

    class Held:
        family = hybrid(base.family, tiny.MASK, tiny.EOS, 8)
        tokenizer = base.load_tokenizer()
        context = 512

    tokens = np.array([40, tiny.EOS, 50, tiny.EOS, 41], np.int32)
    state = np.array([GIVEN, GIVEN, WRITTEN, WRITTEN, GIVEN], np.uint8)
    canvas = Canvas(tokens, state, np.ones(5, np.float32), tiny.MASK)
    run = Run(Held(), canvas, Options(), Sure([], set()), None)
    assert run.result().tokens == (40, tiny.EOS, 50, 41)  # a given one is text


def test_eval_and_tune_from_the_command_line(
    base: Checkpoint, adapter: Path, tmp_path: Path
) -> None:
    rows = [
        {"messages": [{"role": "user", "content": word}], "target": "None.", "unseen": "tool"}
        for word in ("one", "two", "three")
    ]
    prompts = tmp_path / "p.jsonl"
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = os.environ | {"MEZZOTINT_HOME": str(tmp_path / "home")}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mezzotint.cli", "adapt", *args]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)

    common = ("--adapter", str(adapter), "--weights", "fp32", "--json", "--quiet")
    ran = run("eval", str(base.path), str(prompts), "--arm", "ar", "--arm", "exact", *common)
    assert ran.returncode == 0, ran.stderr
    ar, exact = json.loads(ran.stdout)
    assert (ar["prompts"], ar["tokens_per_pass"], exact["same"]) == (3, 1.0, 1.0)
    assert exact["by_part"] == {"tool": exact["exact"]}
    ran = run("tune", str(adapter), str(prompts), "--model", str(base.path), "--weights", "fp32",
              "--limit", "2", "--json")  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    noted = ways(adapted(base, adapter).ways)
    assert noted[0].policy == "left-to-right"
    assert len(noted) == len(json.loads(ran.stdout)) > 8
    assert settled(base.family, noted[1]).block == noted[1].block
    ran = run("eval", str(base.path), str(tmp_path / "none.jsonl"), "--quiet")
    assert (ran.returncode, "cannot read" in ran.stderr) == (2, True)


def test_an_adapter_of_another_model_is_refused(
    base: Checkpoint, adapter: Path, tmp_path: Path
) -> None:
    about = json.loads((adapter / "mezzotint.json").read_text())
    (adapter / "mezzotint.json").write_text(json.dumps(about | {"mode": "frozen"}))
    with pytest.raises(UsageError, match="window rows only"):
        adapted(base, adapter)
