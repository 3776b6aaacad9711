"""The reference: the whole model in plain torch, to be read and to be compared with.

`forward` is the body as a pure, differentiable function of its parameters; `Reference`
holds parameters on a device; `ReferenceSession` adds a KV cache of explicit tensors.
Written for clarity: fast CPU passes are `native`'s matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from mezzotint.backend import Pass
from mezzotint.canvas import BoolArray, FloatArray, IntArray
from mezzotint.checkpoint.shape import Shape, Weights, rope_table, tensor_shapes
from mezzotint.errors import BackendError, TooLarge, UsageError

try:
    import torch
    from torch import Tensor
    from torch.nn.functional import embedding, linear, silu
except ImportError:
    raise BackendError(
        "the reference backend needs PyTorch, which is not installed",
        "pip install 'mezzotint[torch]'",
    ) from None

Params = Mapping[str, Tensor]  # by canonical name, see checkpoint/shape.py
KV = list[tuple[Tensor, Tensor]]  # per layer: keys and values, each (T, kv_heads, head_dim)


def load_params(
    shape: Shape, weights: Weights, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """All tensors of a model on `device`, as `dtype`."""
    read = {name: torch.from_numpy(weights[name].copy()) for name in tensor_shapes(shape)}
    return {name: tensor.to(device, dtype) for name, tensor in read.items()}


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) · weight over the last dimension, in float32 (arXiv 1910.07467)."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def rotation(shape: Shape, positions: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin (M, 1, head_dim) of RoPE at `positions` (M,), in float32."""
    inverse, factor = rope_table(shape.rope, shape.head_dim)
    angles = positions.float()[:, None] * torch.from_numpy(inverse).to(positions.device)
    both = torch.cat((angles, angles), -1)[:, None]
    return both.cos() * factor, both.sin() * factor


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE, rotate-half form: pairs are (i, i + head_dim / 2). x is (M, heads, head_dim)."""
    left, right = x.chunk(2, -1)
    return (x * cos + torch.cat((-right, left), -1) * sin).to(x.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
    """Grouped-query attention (arXiv 2305.13245): q (M, heads, d), k and v (T + M,
    kv_heads, d), visible (M, T + M) booleans; returns (M, heads · d).
    """
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = torch.einsum("mhd,thd->hmt", q, k) / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~visible, float("-inf")).float().softmax(-1).to(v.dtype)
    return torch.einsum("hmt,thd->mhd", weights, v).flatten(1)


def forward(
    shape: Shape,
    params: Params,
    tokens: Tensor,
    positions: Tensor,
    visible: Tensor,
    cache: KV | None = None,
) -> tuple[Tensor, KV]:
    """Final hidden rows (M, H), after the last norm, and the pass's own keys and values.

    tokens, positions: (M,). visible: (M, T + M) booleans, cached rows first; each row
    must see at least one. `logits` turns hidden rows into logits.
    """
    x = embedding(tokens, params["embed"])
    cos, sin = rotation(shape, positions)
    fresh: KV = []
    for i in range(shape.layers):
        p = _layer(params, i)
        h = rms_norm(x, p["attn_norm"], shape.rms_eps)
        q, k, v = (
            linear(h, p[name], p.get(f"{name}_bias")).view(len(h), -1, shape.head_dim)
            for name in "qkv"
        )
        if shape.qk_norm:
            q = rms_norm(q, p["q_norm"], shape.rms_eps)
            k = rms_norm(k, p["k_norm"], shape.rms_eps)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        fresh.append((k, v))
        if cache:
            k, v = torch.cat((cache[i][0], k)), torch.cat((cache[i][1], v))
        x = x + linear(attend(q, k, v, visible), p["o"])
        h = rms_norm(x, p["ffn_norm"], shape.rms_eps)
        x = x + linear(silu(linear(h, p["gate"])) * linear(h, p["up"]), p["down"])
    return rms_norm(x, params["norm"], shape.rms_eps), fresh


def logits(params: Params, hidden: Tensor) -> Tensor:
    """Logits (…, V) of hidden rows (…, H); a tied head is the embedding."""
    return linear(hidden, params.get("head", params["embed"]))


def _layer(params: Params, i: int) -> dict[str, Tensor]:
    """The parameters of layer `i`, by their last name."""
    prefix = f"layers.{i}."
    return {n.removeprefix(prefix): t for n, t in params.items() if n.startswith(prefix)}


@dataclass(frozen=True)
class Reference:
    """A model held in memory. `session()` starts an empty sequence."""

    shape: Shape
    params: Params

    @classmethod
    def load(
        cls,
        shape: Shape,
        weights: Weights,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Read all weights of a checkpoint onto a device, as `dtype`."""
        return cls(shape, load_params(shape, weights, device, dtype))

    def session(self) -> ReferenceSession:
        return ReferenceSession(self)


class ReferenceSession:
    """`Session` over explicit tensors. Cached tensors are never written, so forks share."""

    def __init__(self, model: Reference) -> None:
        self.model = model
        shape, embed = model.shape, model.params["embed"]
        empty = embed.new_empty(0, shape.kv_heads, shape.head_dim)
        self._cache: KV = [(empty, empty)] * shape.layers
        self._last: tuple[Pass, KV] | None = None

    @property
    def length(self) -> int:
        return len(self._cache[0][0])

    @property
    def vocab(self) -> int:
        return self.model.shape.vocab

    @torch.no_grad()
    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        tokens, positions = np.asarray(rows.tokens), np.asarray(rows.positions)
        if len(tokens) and (tokens.min() < 0 or tokens.max() >= self.vocab):
            raise UsageError(f"token ids must lie in 0 … {self.vocab - 1}, got {tokens.tolist()}")
        if len(positions) and positions.max() >= self.model.shape.context:
            limit = self.model.shape.context
            raise TooLarge(f"position {positions.max()} is outside the context of {limit}")
        where = self.model.params["embed"].device
        visible = torch.from_numpy(visibility(rows, self.length)).to(where)
        hidden, fresh = forward(
            self.model.shape,
            self.model.params,
            torch.from_numpy(tokens.astype(np.int64)).to(where),
            torch.from_numpy(positions.astype(np.int64)).to(where),
            visible,
            self._cache,
        )
        self._last = (rows, fresh)
        wanted = hidden[torch.from_numpy(np.asarray(want, np.int64)).to(where)]
        return logits(self.model.params, wanted).float().cpu().numpy()

    def keep(self, count: int) -> None:
        if self._last is None:
            raise UsageError("keep needs a pass that has just been scored")
        rows, fresh = self._last
        expected = np.arange(self.length, self.length + count)
        if not np.array_equal(rows.positions[:count], expected):
            raise UsageError(f"kept rows must be at {expected}, not {rows.positions[:count]}")
        pairs = zip(self._cache, fresh, strict=True)
        self._cache = [
            (torch.cat((k, a[:count])), torch.cat((v, b[:count]))) for (k, v), (a, b) in pairs
        ]
        self._last = None

    def truncate(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise UsageError(f"cannot truncate to {length} of {self.length} cached rows")
        self._cache = [(k[:length], v[:length]) for k, v in self._cache]
        self._last = None

    def fork(self) -> Self:
        other = type(self)(self.model)
        other._cache = list(self._cache)
        return other


def visibility(rows: Pass, cached: int) -> BoolArray:
    """Which columns (cached rows, then the pass's) each row sees: (M, T + M) booleans."""
    count = len(rows.tokens)
    if isinstance(rows.visible, str):
        inside = np.ones((count, count), bool)
        inside = np.tril(inside) if rows.visible == "causal" else inside
    else:
        inside = np.asarray(rows.visible, bool) | np.eye(count, dtype=bool)
    before = np.ones((count, cached), bool)
    before[:, slice(*rows.hide)] = False
    return np.concatenate((before, inside), 1)
