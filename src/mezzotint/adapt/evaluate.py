"""What training has reached: losses on held-out samples, and tokens a decoding pass settles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from mezzotint.adapt.batch import bunches, epoch_batches, make_batch
from mezzotint.adapt.model import Trainee
from mezzotint.adapt.objective import CLEAN, NONE, WINDOW, Objective
from mezzotint.adapt.samples import Sample
from mezzotint.backend import Session
from mezzotint.backend.reference import Reference
from mezzotint.checkpoint.adapter import BLOCK, hybrid
from mezzotint.family import Family
from mezzotint.generate import Options, generate
from mezzotint.text import Tokenizer

SEED = 1 << 20  # of the masks of evaluation: the same at every one
RATES = (0.0, 0.3, 0.6, 0.999, 1.0)


@torch.no_grad()
def losses(
    trainee: Trainee, samples: Sequence[Sample], objective: Objective, rows: int
) -> dict[str, float]:
    """Mean losses in nats: `ar`, `masked`, and `masked_R` by mask rate above the last R.

    drafted: leading tokens of a wholly masked window whose likeliest token is right, mean.
    """
    found: dict[str, list[float]] = {"ar": [], "masked": [], "drafted": []}
    found |= {f"masked_{rate:g}": [] for rate in RATES[1:]}
    for some in epoch_batches(bunches(samples), objective.window_rows, rows, SEED, 0):
        batch = make_batch(samples, some, objective, SEED, 0)
        _, loss, hit = trainee(batch, (1.0, 1.0))
        at = batch.targets != NONE
        role, rate, each = batch.role[at], batch.rate[at], loss.cpu().numpy()
        found["ar"] += each[role == CLEAN].tolist()
        found["masked"] += each[role == WINDOW].tolist()
        for low, high in pairwise(RATES):
            found[f"masked_{high:g}"] += each[
                (role == WINDOW) & (rate > low) & (rate <= high)
            ].tolist()
        hits = np.zeros(batch.targets.shape, bool)
        hits[at] = hit.cpu().numpy()
        found["drafted"] += _drafted(batch.group, at, hits, batch.rate)
    return {name: float(np.mean(values)) for name, values in found.items() if values}


def _drafted(group: Any, wanted: Any, hits: Any, rate: Any) -> list[float]:
    """For each wholly masked window, how many of its targets are right before the first wrong."""
    runs = []
    for doc in range(len(group)):
        for number in range(1, int(group[doc].max()) + 1):
            rows = (group[doc] == number) & wanted[doc] & (rate[doc] == 1.0)
            right = hits[doc][rows]
            if len(right):
                runs.append(float(len(right) if right.all() else right.argmin()))
    return runs


@dataclass(frozen=True)
class _Model:
    """What `generate` asks of a model."""

    engine: Reference
    family: Family
    tokenizer: Tokenizer
    context: int

    def session(self) -> Session:
        return self.engine.session()


def decoding(
    trainee: Trainee,
    samples: Sequence[Sample],
    family: Family,
    objective: Objective,
    tokenizer: Tokenizer,
    block: int = BLOCK,
) -> dict[str, float]:
    """Draft and verify on the samples' prompts: tokens_per_pass, and `exact`, the share whose
    text is the target's to the token.
    """
    if trainee.mode == "frozen":
        return {}  # two sets of weights at once: the reference has one
    if trainee.mode == "hybrid":
        family = hybrid(family, objective.mask_id, objective.filler_id, block)
    engine = Reference(trainee.shape, trainee.params())
    model = _Model(engine, family, tokenizer, trainee.shape.context)
    written = passes = exact = 0
    for sample in samples:
        start = int(sample.wanted.argmax())
        answer = sample.tokens[start:].tolist()
        options = Options(max_tokens=len(answer) + block, temperature=0.0)
        result = generate(model, sample.tokens[:start].tolist(), options)
        written, passes = written + result.written, passes + result.passes
        exact += list(result.tokens) == [t for t in answer if t not in family.stop_ids]
    return {"tokens_per_pass": written / max(passes, 1), "exact": exact / max(len(samples), 1)}
