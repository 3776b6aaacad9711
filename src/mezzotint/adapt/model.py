"""The model as it is trained: a frozen base in a small type, and what is learnt in float32.

The arithmetic is `backend.reference`'s, laid out for speed: many samples at once, only
target rows reach the vocabulary, and an adapter is merged into its weights once a step
instead of running beside them. Three ways to train: `hybrid` and `twin` adapt every row;
`frozen` adapts window rows alone, so that AR decoding is the base's to the bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, silu

from mezzotint.adapt.batch import Batch, blocks
from mezzotint.adapt.kernels import Adapted, CrossEntropy, Master, RmsNorm, Rotate, attend
from mezzotint.adapt.objective import CLEAN, NONE
from mezzotint.backend.reference import Params, rotation
from mezzotint.checkpoint.shape import Shape

LINEAR = ("q", "k", "v", "o", "gate", "up", "down")
KV = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class AdapterSpec:
    """LoRA on every linear layer: W + alpha / rank · B A; with `dora`, its rows rescaled.

    rank 0 trains the whole model instead.
    """

    rank: int = 32
    alpha: float = 32.0
    dora: bool = False

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


class Trainee(nn.Module):
    """A base and what is learnt on it. After a step of the optimiser set `stale`."""

    def __init__(
        self,
        shape: Shape,
        base: Params,
        spec: AdapterSpec,
        mask_id: int,
        mode: str = "hybrid",
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.shape, self.spec, self.mask_id, self.mode = shape, spec, mask_id, mode
        self.base = {name: tensor.to(dtype) for name, tensor in base.items()}
        self.learnt = nn.ParameterDict()
        random = torch.Generator().manual_seed(seed)
        if spec.rank:
            for name, weight in self._linears():
                out, size = weight.shape
                bound = 1 / math.sqrt(size)  # peft's: kaiming_uniform with a = √5
                a = torch.empty(spec.rank, size).uniform_(-bound, bound, generator=random)
                self._learn(f"{name}.a", a)
                self._learn(f"{name}.b", torch.zeros(out, spec.rank))
                if spec.dora:
                    self._learn(f"{name}.m", base[name].float().norm(dim=1))
            if mode != "twin":
                self._learn("mask", base["embed"][mask_id].float().clone())
        else:
            for name, tensor in base.items():
                self._learn(name, tensor.float().clone())
        self.weights: dict[str, Tensor] = dict(self.base)
        self._gains: dict[str, Tensor] = {}
        self.stale = True

    def _learn(self, name: str, value: Tensor) -> None:
        device = self.base["embed"].device
        self.learnt[name.replace(".", "/")] = nn.Parameter(value.to(device))

    def param(self, name: str) -> Tensor | None:
        """The learnt tensor called `name`, such as "layers.0.q.a", if there is one."""
        key = name.replace(".", "/")
        return self.learnt[key] if key in self.learnt else None  # noqa: SIM401 (it has no get)

    def _linears(self) -> list[tuple[str, Tensor]]:
        names = [f"layers.{i}.{n}" for i in range(self.shape.layers) for n in LINEAR]
        return [(name, self.base[name]) for name in names]

    @torch.no_grad()
    def merge(self) -> None:
        """Put what is learnt into the weights that passes use, if it has changed."""
        if not self.stale:
            return
        self.stale = False
        if not self.spec.rank:
            for name, weight in self.base.items():
                learnt = self.learnt[name.replace(".", "/")]
                self.weights[name] = learnt.detach().to(weight.dtype)
            return
        for name, weight in self._linears():
            self.weights[name] = self.merged(name).to(weight.dtype)

    def merged(self, name: str) -> Tensor:
        """A linear weight with its adapter, in float32."""
        a, b, m = (self.param(f"{name}.{part}") for part in "abm")
        assert a is not None
        assert b is not None
        weight = torch.addmm(self.base[name].float(), b, a, alpha=self.spec.scale)
        if m is not None:
            self._gains[name] = m / weight.norm(dim=1)
            weight *= self._gains[name][:, None]
        return weight

    @torch.no_grad()
    def params(self) -> dict[str, Tensor]:
        """All weights as a plain model has them, by canonical name."""
        self.merge()
        mask = self.param("mask")
        if mask is None:
            return dict(self.weights)
        embed = self.weights["embed"].clone()
        embed[self.mask_id] = mask.to(embed.dtype)
        return self.weights | {"embed": embed}

    def forward(self, batch: Batch, weights: tuple[float, float]) -> tuple[Tensor, Tensor, Tensor]:
        """The weighted loss; of each target, in the order of the batch, its loss and whether hit.

        weights: of a clean row's target, and of a window row's.
        """
        hidden = self.hidden(batch)
        targets = self._tensor(batch.targets).long()
        wanted = targets != NONE
        clean = self._tensor(batch.role == CLEAN)[wanted]
        share = torch.where(clean, weights[0], weights[1])
        rows = self._norm(hidden[wanted], "norm")
        head = "embed" if self.shape.tied else "head"
        return CrossEntropy.apply(  # type: ignore[no-any-return, no-untyped-call]
            rows, self.weights[head], self.param(head), targets[wanted], share, self.mask_id
        )

    def hidden(self, batch: Batch) -> Tensor:
        """Hidden rows (B, S, H) before the last norm."""
        self.merge()
        size = batch.tokens.shape[1]
        bounds = blocks(batch.clean, size)
        if self.mode != "frozen" or size == batch.clean:
            return self._body(batch, slice(0, size), bounds)[0]
        clean = slice(0, batch.clean)
        with torch.no_grad():
            before, past = self._body(batch, clean, bounds[:-1], frozen=True)
        after, _ = self._body(batch, slice(batch.clean, size), bounds[-1:], past)
        return torch.cat((before, after), 1)

    def _body(
        self,
        batch: Batch,
        part: slice,
        bounds: list[tuple[int, int, int]],
        past: KV | None = None,
        frozen: bool = False,
    ) -> tuple[Tensor, KV]:
        """The layers on rows `part` of each sample, over the keys and values of `past`."""
        shape = self.shape
        x = self._embed(self._tensor(batch.tokens[:, part]).long())
        cos, sin = rotation(shape, self._tensor(batch.positions[:, part]).flatten())
        half = shape.head_dim // 2
        cos, sin = (t[..., :half].view(*x.shape[:2], 1, half) for t in (cos, sin))
        visible = self._tensor(batch.visible)
        bias = [_bias(visible[:, a:b, :end], self.base["embed"].dtype) for a, b, end in bounds]
        bounds = [(a - part.start, b - part.start, end) for a, b, end in bounds]
        kept: KV = []
        for i in range(shape.layers):
            at = f"layers.{i}."
            h = self._norm(x, at + "attn_norm")
            q, k, v = (
                self._linear(h, at + n, frozen).view(*h.shape[:2], -1, shape.head_dim)
                for n in "qkv"
            )
            if shape.qk_norm:
                q, k = self._norm(q, at + "q_norm"), self._norm(k, at + "k_norm")
            q, k = Rotate.apply(q, cos, sin), Rotate.apply(k, cos, sin)  # type: ignore[no-untyped-call]
            kept.append((k, v))
            if past:
                k, v = torch.cat((past[i][0], k), 1), torch.cat((past[i][1], v), 1)
            x = x + self._linear(attend(q, k, v, bias, bounds), at + "o", frozen)
            h = self._norm(x, at + "ffn_norm")
            h = silu(self._linear(h, at + "gate", frozen)) * self._linear(h, at + "up", frozen)
            x = x + self._linear(h, at + "down", frozen)
        return x, kept

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.base["embed"].device)

    def _embed(self, tokens: Tensor) -> Tensor:
        """Rows (B, S, H) in float32: the sum that layers add to keeps its precision."""
        learnt, mask = self.param("embed"), self.param("mask")
        if learnt is not None:
            return embedding(tokens, learnt)
        x = embedding(tokens, self.base["embed"]).float()
        return x if mask is None else torch.where((tokens == self.mask_id)[..., None], mask, x)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight = self.param(name)
        weight = self.weights[name] if weight is None else weight.to(self.weights[name].dtype)
        return RmsNorm.apply(x, weight, self.shape.rms_eps)  # type: ignore[no-any-return, no-untyped-call]

    def _linear(self, x: Tensor, name: str, frozen: bool) -> Tensor:
        weight, bias = self.weights[name], self.base.get(f"{name}_bias")
        a, b, m = (self.param(f"{name}.{part}") for part in "abm")
        if frozen:
            y = linear(x, self.base[name])
        elif a is not None:
            y = Adapted.apply(x, weight, self.spec.scale, a, b, m, self._gains.get(name))  # type: ignore[no-untyped-call]
        else:
            y = Master.apply(x, weight, self.param(name))  # type: ignore[no-untyped-call]
            learnt = self.param(f"{name}_bias")
            bias = bias if learnt is None else learnt.to(y.dtype)
        return y if bias is None else y + bias


def _bias(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where a row sees a column, −inf elsewhere, the same for all heads."""
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -torch.inf)[:, None]
