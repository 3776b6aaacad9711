"""Training: what rows see, what they learn, and that a run can be repeated and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from mezzotint.canvas import GIVEN, MASKED, WRITTEN, Canvas
from mezzotint.checkpoint import Checkpoint, open_checkpoint
from mezzotint.checkpoint.adapter import adapted
from mezzotint.errors import UsageError
from mezzotint.plan import Frontier

torch = pytest.importorskip("torch")

from torch.nn.functional import cross_entropy  # noqa: E402

from mezzotint.adapt.batch import Batch, Bunch, bunches, epoch_batches, make_batch  # noqa: E402
from mezzotint.adapt.export import write_folder  # noqa: E402
from mezzotint.adapt.model import AdapterSpec, Trainee  # noqa: E402
from mezzotint.adapt.objective import (  # noqa: E402
    NONE,
    PAD,
    SUFFIX,
    WINDOW,
    Layout,
    Objective,
    lay_out,
)  # fmt: skip
from mezzotint.adapt.recipe import Recipe  # noqa: E402
from mezzotint.adapt.run import Run, prepare  # noqa: E402
from mezzotint.adapt.samples import Sample, read_samples  # noqa: E402
from mezzotint.adapt.save import save_adapter  # noqa: E402
from mezzotint.backend import reference as ref  # noqa: E402

GOAL = Objective(tiny.MASK, tiny.EOS, infill=0.4)
SIZES = ((40, 30), (9, 55), (20, 3), (33, 31))


def sample(prompt: int, answer: int, seed: int = 0) -> Sample:
    ids = np.random.default_rng((seed, prompt)).integers(10, 250, prompt + answer).tolist()
    return Sample.of(ids[:prompt], [*ids[prompt:-1], tiny.TURN])


SAMPLES = [sample(*size) for size in SIZES]


@pytest.fixture(scope="module", params=["llama", "qwen2", "qwen3"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return open_checkpoint(tiny.write(tmp_path_factory.mktemp("a"), request.param)[0])


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return open_checkpoint(tiny.write(tmp_path_factory.mktemp("l"), "llama")[0])


def trainee(base: Checkpoint, mode: str = "hybrid", rank: int = 4, dora: bool = False) -> Trainee:
    """One whose adapter does something, as after some steps."""
    params = ref.load_params(base.shape, base.weights)
    made = Trainee(base.shape, params, AdapterSpec(rank, 8.0, dora), tiny.MASK, mode)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in made.parameters():
            value += 0.05 * torch.randn(value.shape, generator=random)
            value.copy_(value.half())  # what a file keeps
    made.stale = True
    return made


def alone(numbers: Iterable[int], some: Sequence[Sample] = SAMPLES) -> list[Bunch]:
    """Each sample a bunch by itself."""
    return [Bunch((i,), int(some[i].wanted.argmax()) - 1, len(some[i])) for i in numbers]


def all_logits(model: Trainee, batch: Batch) -> np.ndarray:
    """(B, S, V) logits of every row, also of those that training leaves out."""
    with torch.no_grad():
        rows = ref.rms_norm(model.hidden(batch), model.weights["norm"], model.shape.rms_eps)
        return ref.logits(model.weights, rows).numpy()


def windows(layout: Layout) -> list[np.ndarray]:
    """Row numbers of each window."""
    at = np.flatnonzero(layout.role == WINDOW)
    return [at[layout.group[at] == g] for g in np.unique(layout.group[at])]


def canvas_of(layout: Layout, window: np.ndarray) -> Canvas:
    """The canvas that decoding would hold when it comes to this window."""
    start = layout.before[window[0]]
    group = layout.group == layout.group[window[0]]
    suffix = np.flatnonzero(group & (layout.role == SUFFIX))
    rows = np.concatenate((np.arange(start), window, suffix))
    tokens = layout.tokens[rows]
    state = np.full(len(rows), GIVEN, np.uint8)
    inside = slice(start, start + len(window))
    state[inside] = np.where(tokens[inside] == tiny.MASK, MASKED, WRITTEN)
    return Canvas(tokens, state, np.ones(len(rows), np.float32), tiny.MASK)


@pytest.mark.parametrize("rank", [4, 0])
def test_training_logits_are_those_of_decoding(base: Checkpoint, rank: int) -> None:
    """Each window row's, for the very pass that `Frontier` plans over the same canvas."""
    model = trainee(base, rank=rank)
    engine = ref.Reference(base.shape, model.params())
    batch = make_batch(SAMPLES, alone(range(len(SAMPLES))), GOAL, 3, 0)
    got, seen = all_logits(model, batch), set()
    text = np.arange(base.shape.vocab) != tiny.MASK  # a tied head scores it by its new row
    for doc, one in enumerate(SAMPLES):
        layout = lay_out(one, GOAL, np.random.default_rng((3, 0, doc)))
        offset = batch.clean - len(one)  # clean rows are padded in the batch
        for window in windows(layout):
            canvas = canvas_of(layout, window)
            start = canvas.settled
            assert start == layout.before[window[0]]
            span = Frontier(shift=True, masks=len(window), two_way=True).span(canvas, 0, True)
            rows = np.arange(len(span.rows.tokens), dtype=np.int32)
            want = engine.session().score(span.rows, rows)
            mine = got[doc, [start - 1, *(window + offset)]]
            theirs = want[start - 1 : start + len(window)]
            np.testing.assert_allclose(mine[:, text], theirs[:, text], rtol=1e-3, atol=2e-4)
            seen.add((len(canvas) > start + len(window), bool((canvas.state == WRITTEN).any())))
    assert len(seen) == 4  # with text after it and without, wholly masked and in part


def test_a_window_sees_its_past_and_itself_alone(llama: Checkpoint) -> None:
    model = trainee(llama)
    batch = make_batch(SAMPLES, alone([0]), GOAL, 3, 0)
    before = all_logits(model, batch)[0]
    changed = 0
    for row in range(batch.tokens.shape[1]):
        if batch.role[0, row] == PAD:
            continue
        tokens = batch.tokens.copy()
        tokens[0, row] = (tokens[0, row] + 17) % 250
        after = all_logits(model, replace(batch, tokens=tokens))[0]
        moved = np.abs(after - before).max(-1) > 0
        sees = batch.visible[0, :, row]
        assert not moved[~_reach(batch.visible[0], row)].any()
        assert moved[sees & (batch.role[0] != PAD)].mean() > 0.9
        changed += 1
    assert changed > 100
    layout = lay_out(SAMPLES[0], GOAL, np.random.default_rng((3, 0, 0)))
    sees = layout.visible()
    for window in windows(layout):
        start, n = layout.before[window[0]], len(SAMPLES[0])
        assert sees[window, :start].all()
        assert not sees[window, start:n].any()
        assert sees[np.ix_(window, window)].all()


def _reach(visible: np.ndarray, row: int) -> np.ndarray:
    """Rows that see `row`, at first or at second hand."""
    reach = visible[:, row]
    return reach | (visible[:, reach].any(1))


def test_targets_are_the_tokens_that_come_there() -> None:
    """Every target is the sample's next token, or a filler after its end or in a hole."""
    learnt, fillers = np.zeros(90, int), 0
    for seed in range(200):
        one = SAMPLES[seed % 4]
        layout = lay_out(one, GOAL, np.random.default_rng(seed))
        assert (layout.role != 0).sum() <= GOAL.window_rows
        for window in windows(layout):
            group = layout.group == layout.group[window[0]]
            hole = bool((group & (layout.role == SUFFIX)).any())
            start = layout.before[window[0]]
            assert layout.tokens[window[0]] == tiny.MASK
            targets = layout.targets[window]
            for i in np.flatnonzero(targets != NONE):
                at = start + i + 1
                if targets[i] == tiny.EOS:
                    fillers += 1
                    assert hole or len(one) <= at < len(one) + GOAL.trailing
                else:
                    assert targets[i] == one.tokens[at]
                    learnt[at] += 1
                if i + 1 < len(window):
                    assert layout.tokens[window[i + 1]] == tiny.MASK
    assert (learnt[41:69] > 0).all()
    assert 0 < fillers < 0.3 * learnt.sum()


@pytest.mark.parametrize("kind", ["lora", "dora", "full"])
def test_gradients_are_those_of_the_plain_model(base: Checkpoint, kind: str) -> None:
    """Against autograd through the reference, with the adapter written as its formula."""
    model = trainee(base, rank=0 if kind == "full" else 4, dora=kind == "dora")
    batch = make_batch(SAMPLES, alone([0, 3]), GOAL, 3, 0)
    loss, _, _ = model(batch, (0.01, 0.02))
    loss.backward()
    mine = {n: p.grad.clone() for n, p in model.learnt.items()}
    model.zero_grad()
    plain = _plain_loss(model, batch, (0.01, 0.02))
    assert loss.item() == pytest.approx(plain.item(), rel=1e-4)
    plain.backward()
    for name, value in model.learnt.items():
        scale = value.grad.abs().max().item()
        torch.testing.assert_close(mine[name], value.grad, rtol=2e-3, atol=2e-3 * scale + 1e-7)


def _plain_loss(model: Trainee, batch: Batch, share: tuple[float, float]) -> torch.Tensor:
    params = dict(model.base)
    if model.spec.rank:
        for name, weight in model._linears():
            a, b, m = (model.param(f"{name}.{part}") for part in "abm")
            params[name] = weight + model.spec.scale * b @ a
            if m is not None:
                gain = m / params[name].norm(dim=1).detach()
                params[name] = gain[:, None] * params[name]
        head = params["embed"]
        mask = torch.zeros(len(head), 1)
        mask[tiny.MASK] = 1.0
        params["embed"] = head * (1 - mask) + mask * model.param("mask")
    else:
        params = {name: model.param(name) for name in params}
    total = torch.zeros(())
    for doc in range(len(batch.tokens)):
        arrays = (batch.tokens[doc], batch.positions[doc], batch.visible[doc])
        tokens, at, visible = (torch.from_numpy(a.copy()) for a in arrays)
        hidden, _ = ref.forward(model.shape, params, tokens.long(), at, visible)
        logits = ref.logits(params, hidden).index_fill(1, torch.tensor(tiny.MASK), -torch.inf)
        targets = torch.from_numpy(batch.targets[doc]).long()
        each = cross_entropy(logits, targets, ignore_index=NONE, reduction="none")
        clean = torch.from_numpy(batch.role[doc] == 0)
        total = total + (each * torch.where(clean, *share)).sum()
    return total


def test_frozen_leaves_next_token_logits_alone(llama: Checkpoint) -> None:
    model = trainee(llama, "frozen")
    batch = make_batch(SAMPLES, alone([0, 3]), GOAL, 3, 0)
    got = all_logits(model, batch)
    plain = Trainee(model.shape, model.base, AdapterSpec(4), tiny.MASK, "twin")
    want = all_logits(plain, batch.without_windows())
    clean = batch.role[:, : batch.clean] != PAD
    assert np.array_equal(got[:, : batch.clean][clean], want[clean])
    loss, _, _ = model(batch, (0.01, 0.02))
    loss.backward()
    assert all(value.grad is not None for value in model.parameters())


@pytest.mark.parametrize(("rank", "dora"), [(4, False), (4, True), (0, False)])
def test_merged_is_the_adapter_applied(
    base: Checkpoint, tmp_path: Path, rank: int, dora: bool
) -> None:
    model = trainee(base, rank=rank, dora=dora)
    save(model, base, tmp_path)
    merged = adapted(base, tmp_path)
    assert (merged.family.mask_id, merged.family.stop_ids) == (tiny.MASK, base.family.stop_ids)
    for name, value in model.params().items():
        np.testing.assert_allclose(merged.weights[name], value.numpy(), atol=2e-6, err_msg=name)


@pytest.mark.parametrize("mode", ["twin", "hybrid"])
def test_a_merged_folder_is_a_model_like_any_other(
    base: Checkpoint, tmp_path: Path, mode: str
) -> None:
    model = trainee(base, mode)
    save(model, base, tmp_path / "adapter")
    merged = adapted(base, tmp_path / "adapter")
    write_folder(merged, tmp_path / "adapter", tmp_path / "out")
    again = open_checkpoint(tmp_path / "out")
    assert again.family == merged.family
    assert again.family.name == (base.family.name if mode == "twin" else "hybrid")
    for name in merged.weights:
        np.testing.assert_allclose(again.weights[name], merged.weights[name], rtol=2**-8)
    with pytest.raises(UsageError, match="exists"):
        write_folder(merged, tmp_path / "adapter", tmp_path / "out")


def save(model: Trainee, base: Checkpoint, folder: Path) -> None:
    learnt = {n.replace("/", "."): p.detach().numpy() for n, p in model.learnt.items()}
    spec = model.spec
    config = {"rank": spec.rank, "alpha": spec.alpha, "dora": spec.dora} if spec.rank else {}
    about = {"name": "x", "base": base.name, "mode": model.mode, "mask_id": tiny.MASK,
             "filler_id": tiny.EOS, "block": 8}  # fmt: skip
    save_adapter(folder, learnt, config, about)


@pytest.mark.parametrize("dora", [False, True])
def test_peft_reads_what_we_write(base: Checkpoint, tmp_path: Path, dora: bool) -> None:
    """peft on the same base gives the logits that our merged weights give."""
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    model = trainee(base, dora=dora)
    save(model, base, tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(base.path, dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(theirs, tmp_path)
    ids = torch.from_numpy(SAMPLES[0].tokens).long()
    ids[5] = tiny.MASK
    with torch.no_grad():
        want = theirs(ids[None]).logits[0].numpy()
    ours = ref.Reference(base.shape, model.params()).session()
    at = np.arange(len(ids), dtype=np.int32)
    got = ours.score(ref.Pass(ids.numpy().astype(np.int32), at), at)
    if base.shape.tied:  # peft keeps the base's row in a tied head, which nothing reads
        got[:, tiny.MASK] = want[:, tiny.MASK] = 0.0
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def alike(count: int) -> list[Sample]:
    """Samples under one beginning of 30 tokens, then a question and an answer of their own."""
    rng = np.random.default_rng(7)
    first = rng.integers(0, 200, 30)
    return [
        Sample.of([*first, i, *rng.integers(0, 200, 4 + i)], rng.integers(0, 200, 5 + 2 * i))
        for i in range(count)
    ]


def test_a_shared_beginning_changes_no_loss(base: Checkpoint) -> None:
    """A bunch of samples, computed together, gives each target the loss it has alone."""
    model, some = trainee(base), alike(5)
    (bunch,) = bunches(some)
    assert (bunch.members, bunch.shared) == ((0, 1, 2, 3, 4), 30)
    assert bunch.clean == 30 + sum(len(one) - 30 for one in some)
    together = make_batch(some, [bunch], GOAL, 3, 0)
    apart = make_batch(some, alone(range(5), some), GOAL, 3, 0)
    assert together.rows == apart.rows - 4 * 30
    found = []
    for batch in (together, apart):
        _, loss, _ = model(batch, (1.0, 1.0))
        at = batch.targets != NONE
        keys = np.stack((batch.role[at], batch.positions[at], batch.targets[at], batch.tokens[at]))
        order = np.lexsort((loss.detach().numpy(), *keys))
        found.append((keys[:, order], loss.detach().numpy()[order]))
    assert np.array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-5)


def test_an_epoch_has_each_sample_once() -> None:
    some = [*alike(19), *SAMPLES]
    found = bunches(some)
    assert [i for bunch in found for i in bunch.members] == list(range(len(some)))
    assert [len(bunch.members) for bunch in found[:3]] == [8, 8, 3]
    one, two = (epoch_batches(found, 40, 800, 5, epoch) for epoch in (0, 1))
    for batches in (one, two):
        assert sorted(b.members for each in batches for b in each) == [b.members for b in found]
    assert one != two
    assert one == epoch_batches(found, 40, 800, 5, 0)


# Runs -----------------------------------------------------------------------------------

QUICK = Recipe(
    rank=8, alpha=16.0, lr=4e-3, tokens=60_000, rows=1024, dtype="float32", eval_every=1000,
    eval_samples=24, decode_samples=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file, rng = tmp_path_factory.mktemp("d") / "d.jsonl", random.Random(0)
    with open(file, "w") as out:
        for _ in range(300):
            words = [rng.choice("abcdef") for _ in range(3)]
            target = f"say({','.join(words)}) and again {''.join(words)}"
            user = {"role": "user", "content": " ".join(words)}
            out.write(json.dumps({"messages": [user], "target": target}) + "\n")
    return file


def start(base: Checkpoint, data: Path, folder: Path, recipe: Recipe) -> Run:
    torch.set_num_threads(1)
    return prepare(base, data, folder, recipe, mask="<|pad|>")


def test_a_short_run_lowers_both_losses(base: Checkpoint, data: Path, tmp_path: Path) -> None:
    run = start(base, data, tmp_path, QUICK)
    first = run.evaluate()
    run.train()
    last = run.log[-1]
    assert last["ar"] < 0.35 * first["ar"]
    assert last["masked"] < 0.35 * first["masked"]
    assert last["tokens_per_pass"] >= 1.0
    assert adapted(base, tmp_path / "adapter").family.name == "hybrid"


@pytest.mark.parametrize("recipe", [
    QUICK, replace(QUICK, mode="twin", accumulate=2), replace(QUICK, mode="frozen", dora=True),
    replace(QUICK, rank=0, lr=1e-3),
])  # fmt: skip
def test_a_resumed_run_is_the_uninterrupted_one(
    llama: Checkpoint, data: Path, tmp_path: Path, recipe: Recipe
) -> None:
    """To the bit: weights, optimiser state and place in the data."""
    whole = start(llama, data, tmp_path / "whole", recipe)
    for _ in range(6):
        whole.step()
    part = start(llama, data, tmp_path / "part", recipe)
    part.train(3)
    again = start(llama, data, tmp_path / "part", recipe)
    for _ in range(3):
        again.step()
    assert again.at == whole.at
    for name, value in whole.trainee.learnt.items():
        assert torch.equal(value, again.trainee.learnt[name]), name


def test_ctrl_c_saves_and_the_run_goes_on(llama: Checkpoint, data: Path, tmp_path: Path) -> None:
    run = start(llama, data, tmp_path, replace(QUICK, tokens=20_000))
    steps = run.step

    def step() -> np.ndarray:
        if run.at.step == 4:
            signal.raise_signal(signal.SIGINT)
        return steps()

    run.step = step  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.train()
    again = start(llama, data, tmp_path, replace(QUICK, tokens=20_000))
    assert again.at.step == 5
    again.train()
    assert again.at.rows >= 20_000
    with pytest.raises(UsageError, match="another recipe"):
        start(llama, data, tmp_path, replace(QUICK, tokens=20_000, lr=1e-3))


def test_a_longer_run_goes_on_from_before_the_rate_fell(
    llama: Checkpoint, data: Path, tmp_path: Path
) -> None:
    """To the bit: as if it had been meant to be that long from the start."""
    short, long = (replace(QUICK, tokens=t, warmup=0.0, save_minutes=0.0) for t in (9_000, 14_000))
    start(llama, data, tmp_path / "a", short).train()
    longer = start(llama, data, tmp_path / "a", long)
    assert 0 < longer.at.rows < 0.7 * 9_000
    longer.train()
    whole = start(llama, data, tmp_path / "b", long)
    whole.train()
    assert longer.at == whole.at
    for name, value in whole.trainee.learnt.items():
        assert torch.equal(value, longer.trainee.learnt[name]), name


@pytest.mark.parametrize("mode", ["hybrid", "twin"])
def test_a_new_run_begins_with_what_another_learnt(
    llama: Checkpoint, data: Path, tmp_path: Path, mode: str
) -> None:
    """Weights and optimiser are those before the other's rate fell; place and log are its own."""
    recipe = replace(QUICK, mode=mode, tokens=9_000, save_minutes=0.0)
    start(llama, data, tmp_path / "a", recipe).train()
    held = torch.load(tmp_path / "a" / "held.pt", weights_only=True)
    last = torch.load(tmp_path / "a" / "state.pt", weights_only=True)
    other = tmp_path / "other.jsonl"
    other.write_text("".join(data.read_text().splitlines(keepends=True)[:100]))
    new = prepare(llama, other, tmp_path / "b", recipe, mask="<|pad|>", begin=tmp_path / "a")
    assert (new.at.rows, new.log) == (0, [])
    for name, value in new.trainee.learnt.items():
        assert torch.equal(value, held["learnt"][name]), name
    assert any(not torch.equal(held["learnt"][n], last["learnt"][n]) for n in held["learnt"])
    moments = new.optimizer.state_dict()["state"]
    assert torch.equal(moments[0]["exp_avg"], held["optimizer"]["state"][0]["exp_avg"])
    new.step()
    new.save()
    again = prepare(llama, other, tmp_path / "b", recipe, mask="<|pad|>", begin=tmp_path / "a")
    assert again.at == new.at  # its own state goes before the other's


@pytest.mark.parametrize("mode", ["hybrid", "twin"])
def test_a_new_run_begins_with_an_adapter(
    llama: Checkpoint, data: Path, tmp_path: Path, mode: str
) -> None:
    """Its weights, in the precision that it is kept in, and an optimiser that knows nothing."""
    recipe = replace(QUICK, mode=mode, tokens=9_000)
    before = start(llama, data, tmp_path / "a", recipe)
    before.train()
    adapter = tmp_path / "a" / "adapter"
    new = prepare(llama, data, tmp_path / "b", recipe, mask="<|pad|>", begin=adapter)
    for name, value in new.trainee.learnt.items():
        assert torch.equal(value, before.trainee.learnt[name].half().float()), name
    assert not new.optimizer.state_dict()["state"]
    with pytest.raises(UsageError, match="another form"):
        prepare(llama, data, tmp_path / "c", replace(recipe, rank=2), None, "<|pad|>", adapter)


def test_a_run_of_another_form_is_not_begun_with(
    llama: Checkpoint, data: Path, tmp_path: Path
) -> None:
    start(llama, data, tmp_path / "a", QUICK).save()
    for wrong, change in (("rank", {"rank": 2}), ("mode", {"mode": "twin"})):
        with pytest.raises(UsageError, match=wrong):
            prepare(llama, data, tmp_path / "b", replace(QUICK, **change), None, "<|pad|>",
                    tmp_path / "a")  # fmt: skip
    with pytest.raises(UsageError, match="no run"):
        prepare(llama, data, tmp_path / "b", QUICK, None, "<|pad|>", tmp_path / "none")


def test_the_twin_sees_the_same_samples(llama: Checkpoint, data: Path, tmp_path: Path) -> None:
    runs = [start(llama, data, tmp_path / m, replace(QUICK, mode=m)) for m in ("hybrid", "twin")]
    for run in runs:
        for _ in range(3):
            run.step()
    assert runs[0].at == runs[1].at


TWO = """
import sys, torch
from pathlib import Path
from mezzotint.adapt.recipe import Recipe
from mezzotint.adapt.run import prepare
from mezzotint.checkpoint import open_checkpoint
torch.set_num_threads(1)
base, data, out, each, rank, sharded = sys.argv[1:]
if sharded == "yes":  # accelerate itself offers FSDP for accelerators alone
    from accelerate import Accelerator, FullyShardedDataParallelPlugin
    from accelerate.state import AcceleratorState, DistributedType
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, cpu_ram_efficient_loading=False)
    shared = Accelerator().state._shared_state
    shared.update(distributed_type=DistributedType.FSDP, fsdp_plugin=plugin)
for tokens in (4000, 9000):  # the second goes on from the first
    recipe = Recipe(rank=int(rank), tokens=tokens, rows=1024, dtype="float32",
                    accumulate=int(each), eval_samples=2, decode_samples=1)
    prepare(open_checkpoint(base), Path(data), Path(out), recipe, mask="<|pad|>").train()
"""


@pytest.mark.parametrize(("rank", "sharded"), [(4, "no"), (4, "yes"), (0, "yes")])
def test_two_processes_learn_what_one_does(
    llama: Checkpoint, data: Path, tmp_path: Path, rank: int, sharded: str
) -> None:
    """Gradients averaged, or what is learnt in shards: the same state to the end."""
    pytest.importorskip("accelerate")
    script = tmp_path / "two.py"
    script.write_text(TWO)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    env = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    for name, head, each, how in (("one", [], "2", "no"), ("two", launch, "1", sharded)):
        arguments = [str(script), str(llama.path), str(data), str(tmp_path / name), each, str(rank)]
        command = [sys.executable, *head, *arguments, how]
        done = subprocess.run(command, capture_output=True, env=env, timeout=120, text=True)
        assert done.returncode == 0, done.stderr
    one, two = (torch.load(tmp_path / n / "state.pt") for n in ("one", "two"))
    assert one["at"] == two["at"]
    for name, value in one["learnt"].items():
        torch.testing.assert_close(value, two["learnt"][name], rtol=1e-3, atol=1e-5)
    for number, state in one["optimizer"]["state"].items():
        torch.testing.assert_close(state, two["optimizer"]["state"][number], rtol=1e-2, atol=1e-5)


def test_samples_in_every_form(llama: Checkpoint, tmp_path: Path) -> None:
    rows = (
        {"prompt_ids": [40, 41], "target_ids": [42, 43]},
        {"prompt": "hello", "target": "world"},
        {"messages": [{"role": "user", "content": "hello"}], "target": "wor"},
    )
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenizer = llama.load_tokenizer()
    samples, longer = read_samples(file, tokenizer, tiny.TURN, 20)
    assert (len(samples), longer) == (2, 1)
    assert samples[0].tokens.tolist() == [40, 41, 42, 43]
    assert samples[0].wanted.tolist() == [False, False, True, True]
    assert tokenizer.decode(samples[1].tokens[samples[1].wanted].tolist()) == "world"
    assert samples[1].tokens[-1] == tiny.TURN
    file.write_text('{"prompt": "x"}\n')
    with pytest.raises(UsageError, match="line 1 is no sample"):
        read_samples(file, tokenizer, tiny.TURN, 20)


def test_a_mean_lies_between_two_runs(llama: Checkpoint, data: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    from mezzotint.cli import run as command

    folders = [tmp_path / name for name in ("a", "b", "mean", "other")]
    for folder, seed in zip(folders[:2], (0, 1), strict=True):
        start(llama, data, folder, replace(QUICK, seed=seed)).train(2)
    paths = [str(folder / "adapter") for folder in folders]
    assert command(["adapt", "average", *paths[:3], "--share", "0.25"]) == 0
    one, other, mean = (load_file(f"{path}/adapter_model.safetensors") for path in paths[:3])
    for name, tensor in mean.items():
        between = 0.75 * one[name].astype(np.float32) + 0.25 * other[name].astype(np.float32)
        assert np.allclose(tensor, between, atol=1e-3), name
    assert any((one[name] != other[name]).any() for name in mean)
    start(llama, data, folders[3], replace(QUICK, mode="twin")).train(1)
    assert command(["adapt", "average", paths[0], paths[3], str(tmp_path / "c")]) == 2
    assert command(["adapt", "average", paths[0], str(tmp_path), str(tmp_path / "c")]) == 2
    assert not (tmp_path / "c").exists()
