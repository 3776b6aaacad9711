"""Train the agent's retriever: which tools a request needs, from the samples of `adapt practice`.

One logistic regression a tool over the words of the request, with words left out at random so
that none is relied on alone. It knows samples and the retriever's features; no language model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from mezzotint import toolcall
from mezzotint.agent.retrieve import Retriever, features
from mezzotint.atomic import replacing
from mezzotint.errors import UsageError

SEEN = 4  # requests that a feature must be in
DROPPED = 0.3  # of a request's features, at each look
EPOCHS, BATCH, RATE, DECAY, ABSENT = 16, 512, 0.05, 1e-6, -3.0


@dataclass(frozen=True, slots=True)
class Labelled:
    """A request, and the tools that it needs in the end."""

    request: str
    tools: frozenset[str]


def read(files: Sequence[Path], names: Iterable[str]) -> list[Labelled]:
    """Requests of samples, with every tool of `names` that a sample of the same request calls;
    parts of requests, which may call none.

    Raises UsageError for a file that cannot be read.
    """
    known, found = set(names), dict[tuple[str, str], set[str]]()
    for file in files:
        try:
            lines = file.read_text("utf-8").splitlines()
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}") from None
        for line in lines:
            row = json.loads(line)
            system, *turns = row["messages"]
            asked = [turn["content"] for turn in turns if turn["role"] == "user"]
            called = {call.name for call in toolcall.parse(row["target"])}
            if (called or row.get("kind") == "part") and called <= known and len(asked) == 1:
                found.setdefault((system["content"], asked[0]), set()).update(called)
    return [Labelled(request, frozenset(tools)) for (_, request), tools in found.items()]


def fit(samples: Sequence[Labelled], names: Sequence[str], seed: int = 0) -> Retriever:
    """Of the tools `names` those that samples call. Raises UsageError without samples."""
    called = frozenset[str]().union(*(one.tools for one in samples))
    names = [name for name in names if name in called]
    if not names:
        raise UsageError("no request calls a tool of the agent", "take what adapt practice made")
    torch.manual_seed(seed)
    said = [features(one.request) for one in samples]
    counts = Counter(feature for some in said for feature in some)
    index = {f: i for i, f in enumerate(sorted(f for f, n in counts.items() if n >= SEEN))}
    rows = [torch.tensor([index[f] for f in some if f in index], dtype=torch.long) for some in said]
    wanted = torch.tensor([[float(n in one.tools) for n in names] for one in samples])
    weights = torch.zeros(len(index), len(names), requires_grad=True)
    bias = torch.full((len(names),), ABSENT, requires_grad=True)
    optimizer = torch.optim.Adam([weights, bias], RATE)
    for _ in range(EPOCHS):
        order = torch.randperm(len(rows)).tolist()
        for some in (order[at : at + BATCH] for at in range(0, len(order), BATCH)):
            kept = [rows[i][torch.rand(len(rows[i])) > DROPPED] for i in some]
            starts = torch.tensor([0, *np.cumsum([len(k) for k in kept])[:-1].tolist()])
            odds = torch.nn.functional.embedding_bag(torch.cat(kept), weights, starts, mode="sum")
            loss = torch.nn.functional.binary_cross_entropy_with_logits(odds + bias, wanted[some])
            loss = loss + DECAY * weights.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
    return _rounded(names, index, weights.detach().numpy(), bias.detach().numpy())


def _rounded(
    names: Sequence[str], index: dict[str, int], weights: np.ndarray, bias: np.ndarray
) -> Retriever:
    """In int8, without features that have come to say nothing."""
    scale = np.maximum(np.abs(weights).max(axis=0), 1e-9) / 127
    codes = np.round(weights / scale).astype(np.int8)
    says = np.flatnonzero(np.abs(codes).max(axis=1) > 2)
    words = np.array(list(index))[says].tolist()
    kept = {word: i for i, word in enumerate(words)}
    return Retriever(tuple(names), kept, codes[says], scale.astype(np.float32), bias)


def write(retriever: Retriever, file: Path) -> None:
    with replacing(file) as partial, partial.open("wb") as out:
        np.savez_compressed(
            out, names=np.array(retriever.names), features=np.array(list(retriever.index)),
            weights=retriever.weights, scale=retriever.scale, bias=retriever.bias,
        )  # fmt: skip


def recalled(retriever: Retriever, samples: Sequence[Labelled], most: int) -> float:
    """Share of the requests all of whose tools are among the `most` likeliest."""
    hits = 0
    for one in samples:
        odds = retriever.odds(one.request)
        hits += one.tools <= set(sorted(odds, key=lambda name: -odds[name])[:most])
    return hits / len(samples)
