"""The few differentiable functions whose plain form is slow on a CPU.

Each is the plain formula with a backward written by hand: adapted linear layers as one
product with merged weights, RMSNorm, RoPE, attention in blocks, and cross-entropy in chunks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import linear

CHUNK = 256  # rows of logits in memory at once


class Adapted(Function):
    """x W'ᵀ with W' = gain · (W + scale · B A), merged beforehand; gain is 1 or DoRA's.

    The gradient of A and B comes from thin products only, so that W' costs a forward and
    a backward as if it were frozen (LoRA, arXiv 2106.09685; DoRA, arXiv 2402.09353, whose
    norm is held constant: gain = magnitude / norm).
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        merged: Tensor,
        scale: float,
        a: Tensor,
        b: Tensor,
        magnitude: Tensor | None,
        gain: Tensor | None,
    ) -> Tensor:
        y = linear(x, merged)
        ctx.save_for_backward(x, merged, a, b, magnitude, gain, y if gain is not None else None)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, merged, a, b, magnitude, gain, y = ctx.saved_tensors
        dx = dy @ merged if ctx.needs_input_grad[0] else None
        dy2, x2 = dy.flatten(0, -2), x.flatten(0, -2)
        dm = None
        if gain is not None:
            dm = (dy2.float() * y.flatten(0, -2)).sum(0) / magnitude
            dy2 = dy2 * gain.to(dy2.dtype)
        da = ((dy2 @ b.to(dy.dtype)).t() @ x2).float() * ctx.scale
        db = (dy2.t() @ (x2 @ a.to(dy.dtype).t())).float() * ctx.scale
        return dx, None, None, da, db, dm, None


class Master(Function):
    """x W'ᵀ where W' is a rounded copy of the float32 `master`, which gets the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rounded: Tensor, master: Tensor) -> Tensor:
        ctx.save_for_backward(x, rounded)
        return linear(x, rounded)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, rounded = ctx.saved_tensors
        dx = dy @ rounded if ctx.needs_input_grad[0] else None
        return dx, None, (dy.flatten(0, -2).t() @ x.flatten(0, -2)).float()


class RmsNorm(Function):
    """x / rms(x) · weight over the last dimension (arXiv 1910.07467), in `weight`'s type."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        scale = torch.rsqrt(norm.square() / x.shape[-1] + eps)
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).to(weight.dtype).mul_(weight)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        dw = None
        if ctx.needs_input_grad[1]:
            dw = (dy.float() * (x * scale)).flatten(0, -2).sum(0)
        g = (dy * weight).float()
        inner = torch.linalg.vecdot(g, x.float()).unsqueeze(-1)
        # d/dx of x·s(x), s = rms⁻¹: s·g − s³·(g·x / n)·x
        dx = g.mul_(scale).sub_(x * (inner * scale.pow(3) / x.shape[-1]))
        return dx.to(x.dtype), dw, None


class Rotate(Function):
    """RoPE, rotate-half form, on x (B, S, heads, d) with cos and sin (B, S, 1, d / 2)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return _turn(dy, cos, -sin), None, None


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    first, second = out.chunk(2, -1)
    first.copy_(left * cos - right * sin)
    second.copy_(right * cos + left * sin)
    return out


def attend(
    q: Tensor, k: Tensor, v: Tensor, bias: list[Tensor], blocks: list[tuple[int, int, int]]
) -> Tensor:
    """Grouped-query attention block by block: q (B, S, heads, d), k and v (B, T, kv_heads, d).

    blocks: (start, stop, end), query rows [start, stop) over columns [0, end); bias: for
    each, (B, 1, stop − start, end), −inf where a row does not see a column. Returns
    (B, S, heads · d).
    """
    batch, _, heads, d = q.shape
    kv = k.shape[2]
    groups = heads // kv
    q = (q * d**-0.5).view(batch, -1, kv, groups, d).permute(0, 2, 3, 1, 4)
    k = k.permute(0, 2, 3, 1).reshape(batch * kv, d, -1)
    v = v.transpose(1, 2).reshape(batch * kv, -1, d)
    outs = []
    for (start, stop, end), hidden in zip(blocks, bias, strict=True):
        rows = q[:, :, :, start:stop].reshape(batch * kv, -1, d)
        scores = torch.bmm(rows, k[:, :, :end]).view(batch, heads, stop - start, end)
        weights = (scores + hidden).softmax(-1).view(batch * kv, -1, end)
        outs.append(torch.bmm(weights, v[:, :end]).view(batch, kv, groups, stop - start, d))
    return torch.cat(outs, 3).permute(0, 3, 1, 2, 4).flatten(2)


class CrossEntropy(Function):
    """−log p(target) of each hidden row, weighted and summed; chunk by chunk, never all logits.

    hidden (N, H), head (V, H), targets (N,), weights (N,); token `banned` is never
    predicted (a mask is not an answer). Returns the sum, and without gradient (N,) losses
    and (N,) booleans: the target is the likeliest token. The gradient is found on the way.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        head: Tensor,
        master: Tensor | None,
        targets: Tensor,
        weights: Tensor,
        banned: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        backward = any(ctx.needs_input_grad[:3])
        dhidden = torch.empty_like(hidden)
        dhead = torch.zeros_like(master) if master is not None else None
        losses = torch.empty(len(hidden), device=hidden.device)
        hits = torch.empty(len(hidden), dtype=torch.bool, device=hidden.device)
        for start in range(0, len(hidden), CHUNK):
            part = slice(start, start + CHUNK)
            rows, want = hidden[part], targets[part, None]
            logits = linear(rows, head).float()
            logits[:, banned] = -torch.inf
            hits[part] = logits.argmax(-1) == targets[part]
            logits = logits.log_softmax(-1)
            losses[part] = -logits.gather(1, want)[:, 0]
            if backward:
                slope = logits.exp_()
                slope.scatter_add_(1, want, slope.new_full(want.shape, -1.0))
                slope = slope.mul_(weights[part, None]).to(hidden.dtype)
                dhidden[part] = slope @ head
                if dhead is not None:
                    dhead += (slope.t() @ rows).float()
        ctx.save_for_backward(dhidden, dhead)
        ctx.mark_non_differentiable(losses, hits)
        return (losses * weights).sum(), losses, hits

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        dhidden, dhead = ctx.saved_tensors
        return (
            dhidden * dy.to(dhidden.dtype),
            None,
            None if dhead is None else dhead * dy,
            None,
            None,
            None,
        )
