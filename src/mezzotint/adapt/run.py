"""The training run: data order, optimiser, checkpoints, evaluation, progress.

A run is a function of its recipe, its data and the machine's thread count. Its folder holds

    state.pt        everything needed to go on; written whole, by one rename
    log.jsonl       one line a report; curves.png beside it, if matplotlib is there
    adapter/        what has been learnt so far (see merge.py)

Running the same command again goes on where state.pt ends. Ctrl-C saves first. Under
`accelerate launch` each process takes its share of a step's batches.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mezzotint.adapt.batch import Batch, Bunch, bunches, epoch_batches, make_batch
from mezzotint.adapt.curves import draw
from mezzotint.adapt.evaluate import decoding, losses
from mezzotint.adapt.model import AdapterSpec, Trainee
from mezzotint.adapt.objective import Objective
from mezzotint.adapt.processes import Processes
from mezzotint.adapt.recipe import Recipe, fingerprint, mask_and_filler
from mezzotint.adapt.samples import Sample, read_samples
from mezzotint.adapt.save import read_adapter, save_adapter
from mezzotint.atomic import replacing
from mezzotint.backend.reference import load_params
from mezzotint.checkpoint import Checkpoint
from mezzotint.checkpoint.adapter import BLOCK, TENSORS
from mezzotint.errors import UsageError

STATE = "state.pt"
HELD = "held.pt"  # the last state before the learning rate fell: a longer run goes on from it


def prepare(
    base: Checkpoint,
    data: Path,
    folder: Path,
    recipe: Recipe,
    held_out: Path | None = None,
    mask: str | None = None,
    begin: Path | None = None,
) -> Run:
    """A run on the samples of `data`; the last 2% (at least 1) are held out if no file is given.

    mask: the spelling of an unused control token; found by itself for known tokenizers.
    begin: the folder of a run whose weights and optimiser a new run begins with: those before
    its rate fell, where it kept them. Its place in the data and its log it leaves behind.
    """
    tokenizer = base.load_tokenizer()
    stop = base.family.stop_ids[0]
    samples, longer = read_samples(data, tokenizer, stop, recipe.longest)
    if longer:
        _say(f"{longer} of {longer + len(samples)} samples are longer than {recipe.longest} tokens")
    if held_out:
        tests, _ = read_samples(held_out, tokenizer, stop, recipe.longest)
    else:
        count = max(len(samples) // 50, 1)
        samples, tests = samples[:-count], samples[-count:]
    ids = mask_and_filler(tokenizer.added, stop, mask)
    objective = Objective(*ids, window_rows=recipe.window_rows, infill=recipe.infill)
    return Run(base, samples, tests, objective, recipe, folder, begin)


@dataclass(slots=True)
class Position:
    """How far a run is: optimiser steps, rows trained on, and the next batch's place."""

    step: int = 0
    rows: int = 0
    epoch: int = 0
    batch: int = 0


class Run:
    """One run. `train()` takes it to its end, or to Ctrl-C."""

    def __init__(
        self,
        base: Checkpoint,
        samples: list[Sample],
        held_out: list[Sample],
        objective: Objective,
        recipe: Recipe,
        folder: Path,
        begin: Path | None = None,
    ) -> None:
        _reuse_memory()
        self.base, self.samples, self.held_out = base, samples, held_out
        self.objective, self.recipe, self.folder = objective, recipe, folder
        self.processes = Processes()
        self.trainee = Trainee(
            base.shape,
            load_params(base.shape, base.weights, self.processes.device),
            AdapterSpec(recipe.rank, recipe.alpha, recipe.dora),
            objective.mask_id,
            recipe.mode,
            getattr(torch, recipe.dtype),
            recipe.seed,
        )
        self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            self.trainee.parameters(), recipe.lr, betas=(0.9, 0.99), weight_decay=0.0, fused=True
        )
        self.at, self.log, self.stopped = Position(), list[dict[str, Any]](), False
        self._bunches = bunches(samples)
        self._order: tuple[int, list[list[Bunch]]] = (-1, [])
        self._data = fingerprint(samples)
        found = self._found() if (folder / STATE).is_file() else None
        before = found or (self._before(begin) if begin else None)
        if before:
            self.trainee.learnt.load_state_dict(before["learnt"])
        if found:
            self.at, self.log = Position(**found["at"]), found["log"]
        self._model, self.optimizer = self.processes.share(self.trainee, self.optimizer)
        if before and "optimizer" in before:
            self.processes.load(self.optimizer, before["optimizer"])

    def train(self, steps: int = 0) -> None:
        """Train to the end, or to that step. Raises KeyboardInterrupt after saving, if it was asked
        to stop."""
        began = saved = time.monotonic()
        first, sums = self.at.rows, np.zeros(4)
        with self._stopping():
            while not (self.done or self.stopped or 0 < steps <= self.at.step):
                sums += self.step()
                if self._due(self.recipe.report_every):
                    self._report(sums, (self.at.rows - first) / (time.monotonic() - began))
                    sums[:] = 0
                if self._due(self.recipe.eval_every):
                    self._evaluate_first()
                if time.monotonic() - saved > 60 * self.recipe.save_minutes:
                    self.save()
                    saved = time.monotonic()
        self.save()
        self.processes.wait()
        if self.stopped:
            raise KeyboardInterrupt

    @property
    def done(self) -> bool:
        return self.at.rows >= self.recipe.tokens

    def step(self) -> np.ndarray:
        """One optimiser step; (4,): summed AR loss and targets, summed masked loss and targets."""
        count = self.recipe.accumulate * self.processes.count
        batches = [self._next_batch() for _ in range(count)]
        self.at.rows += sum(b.rows for b in batches)
        if self.recipe.mode == "twin":
            batches = [b.without_windows() for b in batches]
        learnt = np.maximum(np.sum([b.learnt for b in batches], axis=0), 1)
        weights = np.array([1.0, self.recipe.masked_weight]) / learnt * self.processes.count
        sums = np.zeros(4)
        for batch in self.processes.mine(batches):
            loss, each, _ = self._model(batch, weights.tolist())
            loss.backward()
            clean, found = batch.clean_targets, each.cpu().numpy()
            sums += (found[clean].sum(), clean.sum(), found[~clean].sum(), (~clean).sum())
        torch.nn.utils.clip_grad_norm_(self.trainee.parameters(), self.recipe.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self._lr()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.trainee.stale = True
        self.at.step += 1
        *found, stops = self.processes.sum(np.append(sums, self.stopped))
        self.stopped = stops > 0  # whichever process was asked, all end at this step
        return np.array(found)

    def _evaluate_first(self) -> None:
        with self.processes.whole(self.trainee):
            if self.processes.first:
                self.evaluate()

    def evaluate(self) -> dict[str, float]:
        """Losses and decoding on held-out samples, into the log and onto stderr."""
        some = self.held_out[: self.recipe.eval_samples]
        found = losses(self.trainee, some, self.objective, self.recipe.rows)
        prompts = some[: self.recipe.decode_samples]
        found |= decoding(
            self.trainee, prompts, self.base.family, self.objective, self.base.load_tokenizer()
        )
        self.log.append({"eval": True, "step": self.at.step, "rows": self.at.rows, **found})
        _say("  held out: " + " · ".join(f"{n} {v:.3f}" for n, v in found.items()))
        return found

    def save(self) -> None:
        """The state, the log, the curves and the adapter, each file whole or not at all."""
        learnt = self.processes.gather(dict(self.trainee.learnt.state_dict()))
        optimizer = self.processes.gather(self.optimizer.state_dict())
        if not self.processes.first:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        state = {
            "learnt": learnt,
            "optimizer": optimizer,
            "at": asdict(self.at),
            "log": self.log,
            "recipe": asdict(self.recipe),
            "data": self._data,
        }
        with replacing(self.folder / STATE) as partial:
            torch.save(state, partial)
        if self.at.rows < (1 - self.recipe.decay) * self.recipe.tokens:
            shutil.copyfile(self.folder / STATE, self.folder / HELD)
        lines = "".join(json.dumps(entry) + "\n" for entry in self.log)
        (self.folder / "log.jsonl").write_text(lines, "utf-8")
        draw(self.log, self.folder / "curves.png")
        self._save_adapter(learnt)

    def _save_adapter(self, learnt: dict[str, torch.Tensor]) -> None:
        r, o = self.recipe, self.objective
        arrays = {name.replace("/", "."): value.cpu().numpy() for name, value in learnt.items()}
        config = {"rank": r.rank, "alpha": r.alpha, "dora": r.dora} if r.rank else {}
        about = {"name": f"{self.base.name}-{r.mode}", "base": self.base.name, "mode": r.mode,
                 "mask_id": o.mask_id, "filler_id": o.filler_id, "block": BLOCK,
                 "recipe": asdict(r), "data": self._data, **asdict(self.at)}  # fmt: skip
        save_adapter(self.folder / "adapter", arrays, config, about)

    def _found(self) -> dict[str, Any]:
        """The state to go on from. Raises UsageError if it is another run's."""
        state, recipe = self._read(self.folder / STATE), asdict(self.recipe)
        if state["recipe"]["tokens"] < self.recipe.tokens and (self.folder / HELD).is_file():
            state = self._read(self.folder / HELD)  # it slowed down: a longer run has yet to
        recipe["tokens"] = state["recipe"]["tokens"]
        for what, mine in (("recipe", recipe), ("data", self._data)):
            if state[what] != mine:
                raise UsageError(
                    f"{self.folder} holds a run of another {what}", "choose another folder"
                )
        return state

    def _before(self, begin: Path) -> dict[str, Any]:
        """The state of another run to begin with, or an adapter's weights. Raises UsageError if
        those are of another form, or there are none."""
        if (begin / TENSORS).is_file():
            names = {key: key.replace("/", ".") for key in self.trainee.learnt}
            shapes = {names[key]: tuple(x.shape) for key, x in self.trainee.learnt.items()}
            read = read_adapter(begin, shapes)
            return {"learnt": {key: torch.from_numpy(read[names[key]]) for key in names}}
        file = next((begin / name for name in (HELD, STATE) if (begin / name).is_file()), None)
        if file is None:
            raise UsageError(
                f"{begin} holds no run and no adapter", "--from takes the folder of one"
            )
        state, mine = self._read(file), asdict(self.recipe)
        for what in ("mode", "rank", "alpha", "dora"):
            if state["recipe"][what] != mine[what]:
                raise UsageError(
                    f"{begin} has {what} {state['recipe'][what]}, this run {mine[what]}",
                    "go on with the options that it was begun with",
                )
        return state

    def _read(self, file: Path) -> dict[str, Any]:
        state: dict[str, Any] = torch.load(file, weights_only=True, map_location="cpu")
        return state

    def _next_batch(self) -> Batch:
        r, at = self.recipe, self.at
        if self._order[0] != at.epoch:
            order = epoch_batches(self._bunches, r.window_rows, r.rows, r.seed, at.epoch)
            self._order = (at.epoch, order)
        some = self._order[1][at.batch]
        batch = make_batch(self.samples, some, self.objective, r.seed, at.epoch)
        at.batch += 1
        if at.batch == len(self._order[1]):
            at.epoch, at.batch = at.epoch + 1, 0
        return batch

    def _lr(self) -> float:
        """Warm up, hold, and fall in a line (WSD, arXiv 2404.06395)."""
        r, share = self.recipe, min(self.at.rows / self.recipe.tokens, 1.0)
        if share < r.warmup:
            return r.lr * share / r.warmup
        return r.lr * (r.floor + (1 - r.floor) * min((1 - share) / r.decay, 1.0))

    def _due(self, every: int) -> bool:
        return self.done or self.at.step % every == 0

    def _report(self, sums: np.ndarray, rate: float) -> None:
        ar, masked = (float(sums[i] / max(sums[i + 1], 1)) for i in (0, 2))
        entry = {"step": self.at.step, "rows": self.at.rows, "lr": self._lr(), "ar": ar}
        self.log.append(entry if self.recipe.mode == "twin" else entry | {"masked": masked})
        left = max(self.recipe.tokens - self.at.rows, 0) / rate / 60
        if self.processes.first:
            _say(f"step {self.at.step} · {self.at.rows / 1e3:.0f}k of"
                 f" {self.recipe.tokens / 1e3:.0f}k rows · AR {ar:.3f} · masked {masked:.3f} ·"
                 f" {rate:.0f} rows/s · {left:.0f} min left")  # fmt: skip

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end the run after the step in hand; a second one at once."""

        def stop(signum: int, frame: Any) -> None:
            if self.stopped:
                raise KeyboardInterrupt
            self.stopped = True
            _say("saving after this step …")

        before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _reuse_memory() -> None:
    """Let glibc keep freed activations: returning and mapping them costs a tenth of a step."""
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL("libc.so.6").mallopt
        except OSError:  # another C library
            return
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
        mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
