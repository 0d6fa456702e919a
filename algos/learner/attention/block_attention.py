"""Tree attention on a CPU, block by block: the work of separate rows, once per distinct token.

A block is some spans after one common context
(:class:`~turngym.algos.learner.attention.packing.Block`). Its
queries meet the context's keys in one product and each span's own keys in another; nothing is
copied per path, no masked square is computed but the triangles on the diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .packing import Block, Range

CHUNK = 128
"""Queries of a span at a time: keys that come later than a chunk are not computed for it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """One block, ready to compute.

    Attributes:
        prefix: Its context as ranges.
        n_prefix: Tokens of the context.
        spans: Number of spans.
        length: Tokens that every span is padded to.
        own: The spans' tokens when they follow each other without padding, else None.
        take: Pack position of every padded token ``[spans * length]``.
        real: Which of those are no padding ``[tokens]``.
        put: Their pack positions ``[tokens]``.
        pads: Which are padding.
    """

    prefix: tuple[Range, ...]
    n_prefix: int
    spans: int
    length: int
    own: Range | None
    take: Tensor
    real: Tensor
    put: Tensor
    pads: Tensor

    @classmethod
    def of(cls, block: Block, device: torch.device) -> _Work:
        starts = torch.tensor(block.starts)
        lengths = torch.tensor(block.lengths)
        length = int(lengths.max())
        column = torch.arange(length)
        inside = column < lengths[:, None]
        take = starts[:, None] + torch.minimum(column, lengths[:, None] - 1)
        first, tokens = block.starts[0], int(lengths.sum())
        unbroken = bool(inside.all()) and block.starts == tuple(
            range(first, first + tokens, length)
        )
        flat = take.flatten()
        real = inside.flatten().nonzero()[:, 0]
        return cls(
            prefix=block.prefix,
            n_prefix=block.n_prefix,
            spans=len(starts),
            length=length,
            own=(first, first + tokens) if unbroken else None,
            take=flat.to(device),
            real=real.to(device),
            put=flat[real].to(device),
            pads=(~inside.flatten()).nonzero()[:, 0].to(device),
        )

    def gather(self, x: Tensor) -> Tensor:
        """Gather own tokens of ``[heads, tokens, width]`` as ``[heads, spans * length, width]``."""
        if self.own is not None:
            return x[:, self.own[0] : self.own[1]]
        return x.index_select(1, self.take)

    def scatter(self, padded: Tensor, out: Tensor) -> None:
        """Write ``[heads, spans * length, width]`` to its tokens in ``out``."""
        if self.own is not None:
            out[:, self.own[0] : self.own[1]] = padded
        else:
            out.index_copy_(1, self.put, padded.index_select(1, self.real).to(out.dtype))

    def context(self, x: Tensor) -> Tensor:
        """Return keys or values of the context ``[heads, n_prefix, width]``."""
        parts = [x[:, start:stop] for start, stop in self.prefix]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def add_context(self, grad: Tensor, out: Tensor) -> None:
        """Add the gradient of :meth:`context` to its tokens in ``out``."""
        at = 0
        for start, stop in self.prefix:
            out[:, start:stop] += grad[:, at : at + stop - start]
            at += stop - start

    def chunks(self) -> Iterator[Range]:
        """Return the queries of each span that are computed together."""
        for start in range(0, self.length, CHUNK):
            yield start, min(start + CHUNK, self.length)


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """The blocks of a pack; a token's block comes before those of its descendants.

    Attributes:
        works: The blocks.
        tokens: Tokens of the pack; what lies behind them sees nothing and gets zeros.
    """

    works: tuple[_Work, ...]
    tokens: int

    @classmethod
    def of(cls, blocks: Sequence[Block], device: torch.device) -> BlockPlan:
        """Prepare the blocks of a pack."""
        works = tuple(_Work.of(block, device) for block in blocks)
        return cls(works, sum(len(work.put) for work in works))


def block_attention(q: Tensor, k: Tensor, v: Tensor, scale: float, plan: BlockPlan) -> Tensor:
    """Compute attention ``[tokens, heads, width]`` of ``[heads, tokens, width]`` queries.

    Args:
        q: Queries.
        k: Keys; fewer heads are shared by neighbouring query heads.
        v: Values.
        scale: Multiplies the scores.
        plan: What sees what.
    """
    return _BlockAttention.apply(q, k, v, scale, plan)


class _BlockAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, plan: BlockPlan) -> Tensor:
        repeats = len(q) // len(k)
        with torch.autocast(q.device.type, enabled=False):
            q = (q * scale).contiguous()
            k, v = (x.repeat_interleave(repeats, 0).contiguous() for x in (k, v))
            out = torch.empty(q.shape[1], len(q), q.shape[2], dtype=q.dtype, device=q.device)
            out[plan.tokens :] = 0
            kept = []
            for work in plan.works:
                kept += _forward(work, q, k, v, out.transpose(0, 1))
        if any(ctx.needs_input_grad[:3]):
            ctx.save_for_backward(q, k, v, *kept)
            ctx.scale, ctx.plan, ctx.repeats = scale, plan, repeats
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *kept = ctx.saved_tensors
        with torch.autocast(q.device.type, enabled=False):
            grad = grads[0].transpose(0, 1).to(q.dtype).contiguous()
            # sums over many descendants, so float32 whatever the products are made in
            of_q, of_k, of_v = (torch.empty(q.shape, device=q.device) for _ in range(3))
            for out in (of_q, of_k, of_v):
                out[:, ctx.plan.tokens :] = 0
            used = 0
            for work in ctx.plan.works:
                steps = len(range(0, work.length, CHUNK))
                _backward(work, (q, k, v), grad, kept[used : used + steps], (of_q, of_k, of_v))
                used += steps
            if ctx.repeats > 1:
                of_k, of_v = (x.unflatten(0, (-1, ctx.repeats)).sum(1) for x in (of_k, of_v))
            of_q *= ctx.scale
        return of_q.to(q.dtype), of_k.to(q.dtype), of_v.to(q.dtype), None, None


def _forward(work: _Work, q: Tensor, k: Tensor, v: Tensor, out: Tensor) -> list[Tensor]:
    """Fill the block's part of ``out``; returns the attention weights of its chunks."""
    heads, _, width = q.shape
    m, n, p = work.spans, work.length, work.n_prefix
    own_q, own_k, own_v = (work.gather(x) for x in (q, k, v))
    own_k, own_v = (x.reshape(heads * m, n, width) for x in (own_k, own_v))
    far_k, far_v = (work.context(x) for x in (k, v)) if p else (None, None)
    filled = out.new_empty(heads, m, n, width)
    kept = []
    for a, b in work.chunks():
        some_q = _chunk(own_q, (heads, m, n, width), a, b)
        scores = q.new_empty(heads * m, b - a, p + b)
        torch.bmm(some_q, own_k[:, :b].mT, out=scores[:, :, p:])
        if far_k is not None:
            far = scores.view(heads, m * (b - a), p + b)[:, :, :p]
            torch.bmm(some_q.view(heads, m * (b - a), width), far_k.mT, out=far)
        scores[:, :, p + a :] += _later(b - a, scores)
        weights = scores.softmax(-1)
        some = torch.bmm(weights[:, :, p:], own_v[:, :b])
        if far_v is not None:
            far = weights.view(heads, m * (b - a), p + b)[:, :, :p]
            some = some.view(heads, m * (b - a), width).baddbmm_(far, far_v)
        filled[:, :, a:b] = some.view(heads, m, b - a, width)
        kept.append(weights)
    work.scatter(filled.view(heads, m * n, width), out)
    return kept


def _backward(
    work: _Work,
    inputs: Sequence[Tensor],
    grad: Tensor,
    kept: Sequence[Tensor],
    grads: Sequence[Tensor],
) -> None:
    """Write the gradients of the block's own tokens, and add those of its context."""
    q, k, v = inputs
    heads, _, width = q.shape
    m, n, p = work.spans, work.length, work.n_prefix
    own_q, own_k, own_v, own_grad = (work.gather(x) for x in (q, k, v, grad))
    if len(work.pads):
        own_grad.index_fill_(1, work.pads, 0.0)
    own_k, own_v = (x.reshape(heads * m, n, width) for x in (own_k, own_v))
    far_k, far_v = (work.context(x) for x in (k, v)) if p else (None, None)
    own_of_q = q.new_empty(heads, m, n, width)
    own_of_k, own_of_v = torch.zeros(2, heads * m, n, width, device=q.device)
    far_of_k, far_of_v = torch.zeros(2, heads, p, width, device=q.device)
    for (a, b), weights in zip(work.chunks(), kept, strict=True):
        some_q, some_grad = (_chunk(x, (heads, m, n, width), a, b) for x in (own_q, own_grad))
        slopes = torch.empty_like(weights)
        torch.bmm(some_grad, own_v[:, :b].mT, out=slopes[:, :, p:])
        rows = (heads, m * (b - a), -1)
        if far_v is not None:
            torch.bmm(some_grad.view(rows), far_v.mT, out=slopes.view(rows)[:, :, :p])
        slopes = torch.ops.aten._softmax_backward_data(slopes, weights, -1, weights.dtype)
        of_q = torch.bmm(slopes[:, :, p:], own_k[:, :b])
        own_of_k[:, :b] += torch.bmm(slopes[:, :, p:].mT, some_q)
        own_of_v[:, :b] += torch.bmm(weights[:, :, p:].mT, some_grad)
        if far_k is not None:
            far_slopes, far_weights = slopes.view(rows)[:, :, :p], weights.view(rows)[:, :, :p]
            of_q = of_q.view(rows).baddbmm_(far_slopes, far_k)
            far_of_k += torch.bmm(far_slopes.mT, some_q.view(rows))
            far_of_v += torch.bmm(far_weights.mT, some_grad.view(rows))
        own_of_q[:, :, a:b] = of_q.view(heads, m, b - a, width)
    flat = (heads, m * n, width)
    for mine, out in zip((own_of_q, own_of_k, own_of_v), grads, strict=True):
        work.scatter(mine.view(flat), out)
    if p:
        work.add_context(far_of_k, grads[1])
        work.add_context(far_of_v, grads[2])


def _chunk(x: Tensor, shape: tuple[int, ...], start: int, stop: int) -> Tensor:
    """Return tokens ``[heads * spans, stop - start, width]`` of every span."""
    heads, spans, _, width = shape
    part = x.reshape(shape)[:, :, start:stop]
    if spans > 1:
        part = part.contiguous()
    return part.reshape(heads * spans, stop - start, width)


def _later(n: int, like: Tensor) -> Tensor:
    """Return ``[n, n]``: minus infinity where a key comes after the query."""
    return torch.full((n, n), float("-inf"), dtype=like.dtype, device=like.device).triu_(1)
