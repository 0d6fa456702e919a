"""Tree attention on a CPU, block by block: the work of separate rows, once per distinct token.

A block is some spans after one common context
(:class:`~turngym.algos.learner.attention.packing.Block`). Its
queries meet the context's keys in one product and each span's own keys in another; nothing is
copied per path, no masked square is computed but the triangles on the diagonal. In a sliding window
keys that are too far back for a whole chunk of queries are not computed either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
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
        window: How many tokens a query sees, itself the last; None for all.
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
    window: int | None = None

    @classmethod
    def of(cls, block: Block, device: torch.device, window: int | None) -> _Work:
        if window is not None:
            block = block.after_last(window - 1)
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
            window=window,
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

    @property
    def entries(self) -> int:
        """Attention weights of one head."""
        return self.spans * sum((b - a) * self.keys(a, b) for a, b in self.chunks())

    @property
    def most_entries(self) -> int:
        """Those of the chunk that has most."""
        most = max(((b - a) * self.keys(a, b) for a, b in self.chunks()), default=0)
        return self.spans * most

    def keys(self, start: int, stop: int) -> int:
        """Return how many keys a chunk of queries meets, of the context and of its own span."""
        return self.n_prefix + stop - sum(self.first_seen(start))

    def first_seen(self, query: int) -> Range:
        """Return the first token of the context and the first own one that a query sees."""
        if self.window is None:
            return 0, 0
        first = max(0, self.n_prefix + query - self.window + 1)
        return min(first, self.n_prefix), max(0, first - self.n_prefix)

    def hide(self, scores: Tensor, start: int, stop: int) -> None:
        """Hide from a chunk of queries what they do not see of its keys.

        Args:
            scores: ``[heads * spans, stop - start, keys]``, changed; the last key is the last
                query's own, the first one the first that the first query sees.
            start: First query.
            stop: One past the last.
        """
        n = stop - start
        never = torch.full((n, n), float("-inf"), dtype=scores.dtype, device=scores.device)
        scores[:, :, -n:] += never.triu(1)
        if self.window is not None:
            # the first query sees the first key, the last one all but the first n - 1
            last = self.n_prefix + start - sum(self.first_seen(start)) - self.window
            scores[:, :, :n] += never.tril_(last)


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """The blocks of a pack; a token's block comes before those of its descendants.

    Attributes:
        works: The blocks.
        tokens: Tokens of the pack; what lies behind them sees nothing and gets zeros.
        sizes: Attention weights of one head, of each block.
        most_entries: Those that are computed at a time.
    """

    works: tuple[_Work, ...]
    tokens: int
    sizes: tuple[int, ...]
    most_entries: int

    @classmethod
    def of(
        cls, blocks: Sequence[Block], device: torch.device, window: int | None = None
    ) -> BlockPlan:
        """Prepare the blocks of a pack; ``window`` is how many tokens of its path a token sees."""
        works = tuple(_Work.of(block, device, window) for block in blocks)
        sizes = tuple(work.entries for work in works)
        most = max((work.most_entries for work in works), default=0)
        return cls(works, sum(len(work.put) for work in works), sizes, most)

    @property
    def entries(self) -> int:
        """Attention weights of one head, which are kept for the backward pass."""
        return sum(self.sizes)


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
        with torch.autocast(q.device.type, enabled=False):
            out, made = attend_blocks(q, k, v, scale, plan)
        if any(ctx.needs_input_grad[:3]):
            ctx.save_for_backward(*made)
            ctx.scale, ctx.plan, ctx.repeats = scale, plan, len(q) // len(k)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        made = ctx.saved_tensors
        with torch.autocast(grads[0].device.type, enabled=False):
            found = attend_blocks_backward(grads[0], made, ctx.scale, ctx.plan, ctx.repeats)
        return *(x.to(made[0].dtype) for x in found), None, None


def attend_blocks(
    q: Tensor, k: Tensor, v: Tensor, scale: float, plan: BlockPlan
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return :func:`block_attention`'s result, and what its backward pass needs."""
    repeats = len(q) // len(k)
    q = (q * scale).contiguous()
    k, v = (x.repeat_interleave(repeats, 0).contiguous() for x in (k, v))
    out = torch.empty(q.shape[1], len(q), q.shape[2], dtype=q.dtype, device=q.device)
    out[plan.tokens :] = 0
    # one tensor for the weights of all chunks and one for what is computed at a time, in place of
    # two of another size for every chunk
    kept = q.new_empty(len(q) * plan.entries)
    now = q.new_empty(len(q) * plan.most_entries)
    used = 0
    for work, entries in zip(plan.works, plan.sizes, strict=True):
        stop = used + len(q) * entries
        _forward(work, (q, k, v), out.transpose(0, 1), kept[used:stop], now)
        used = stop
    return out, (q, k, v, kept)


def attend_blocks_backward(
    grad: Tensor, made: Sequence[Tensor], scale: float, plan: BlockPlan, repeats: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values, float32.

    Args:
        grad: Of the result ``[tokens, heads, width]``.
        made: What :func:`attend_blocks` returned besides.
        scale: As given to it.
        plan: The same.
        repeats: Query heads that share a key head.
    """
    q, k, v, kept = made
    grad = grad.transpose(0, 1).to(q.dtype).contiguous()
    # sums over many descendants, so float32 whatever the products are made in
    of_q, of_k, of_v = (torch.empty(q.shape, device=q.device) for _ in range(3))
    for out in (of_q, of_k, of_v):
        out[:, plan.tokens :] = 0
    now = kept.new_empty(2, len(q) * plan.most_entries)
    used = 0
    for work, entries in zip(plan.works, plan.sizes, strict=True):
        stop = used + len(q) * entries
        _backward(work, (q, k, v), grad, kept[used:stop], now, (of_q, of_k, of_v))
        used = stop
    if repeats > 1:
        of_k, of_v = (x.unflatten(0, (-1, repeats)).sum(1) for x in (of_k, of_v))
    return of_q.mul_(scale), of_k, of_v


def _forward(work: _Work, inputs: Sequence[Tensor], out: Tensor, kept: Tensor, now: Tensor) -> None:
    """Fill the block's part of ``out``, and ``kept`` with its attention weights."""
    q, k, v = inputs
    heads, _, width = q.shape
    m, n, p = work.spans, work.length, work.n_prefix
    own_q, own_k, own_v = (work.gather(x) for x in (q, k, v))
    own_k, own_v = (x.reshape(heads * m, n, width) for x in (own_k, own_v))
    far_k, far_v = (work.context(x) for x in (k, v)) if p else (None, None)
    filled = out.new_empty(heads, m, n, width)
    used = 0
    for a, b in work.chunks():
        (f, o), rows = work.first_seen(a), (heads, m * (b - a), -1)
        some_q = _chunk(own_q, (heads, m, n, width), a, b)
        shape = heads * m, b - a, work.keys(a, b)
        scores = now[: prod(shape)].view(shape)
        torch.bmm(some_q, own_k[:, o:b].mT, out=scores[:, :, p - f :])
        if far_k is not None and f < p:
            far = scores.view(rows)[:, :, : p - f]
            torch.bmm(some_q.view(rows), far_k[:, f:].mT, out=far)
        work.hide(scores, a, b)
        weights = kept[used : used + prod(shape)].view(shape)
        used += prod(shape)
        torch.softmax(scores, -1, out=weights)
        some = torch.bmm(weights[:, :, p - f :], own_v[:, o:b])
        if far_v is not None and f < p:
            some = some.view(rows).baddbmm_(weights.view(rows)[:, :, : p - f], far_v[:, f:])
        filled[:, :, a:b] = some.view(heads, m, b - a, width)
    work.scatter(filled.view(heads, m * n, width), out)


def _backward(
    work: _Work,
    inputs: Sequence[Tensor],
    grad: Tensor,
    kept: Tensor,
    now: Tensor,
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
    used = 0
    for a, b in work.chunks():
        (f, o), rows = work.first_seen(a), (heads, m * (b - a), -1)
        shape = heads * m, b - a, work.keys(a, b)
        weights, of_weights, slopes = (
            x.view(shape) for x in (kept[used : used + prod(shape)], *now[:, : prod(shape)])
        )
        used += prod(shape)
        near, far = slice(p - f, None), slice(p - f)
        some_q, some_grad = (_chunk(x, (heads, m, n, width), a, b) for x in (own_q, own_grad))
        torch.bmm(some_grad, own_v[:, o:b].mT, out=of_weights[:, :, near])
        if far_v is not None and f < p:
            torch.bmm(some_grad.view(rows), far_v[:, f:].mT, out=of_weights.view(rows)[:, :, far])
        torch.ops.aten._softmax_backward_data.out(
            of_weights, weights, -1, weights.dtype, grad_input=slopes
        )
        of_q = torch.bmm(slopes[:, :, near], own_k[:, o:b])
        own_of_k[:, o:b] += torch.bmm(slopes[:, :, near].mT, some_q)
        own_of_v[:, o:b] += torch.bmm(weights[:, :, near].mT, some_grad)
        if far_k is not None and f < p:
            far_slopes, far_weights = slopes.view(rows)[:, :, far], weights.view(rows)[:, :, far]
            of_q = of_q.view(rows).baddbmm_(far_slopes, far_k[:, f:])
            far_of_k[:, f:] += torch.bmm(far_slopes.mT, some_q.view(rows))
            far_of_v[:, f:] += torch.bmm(far_weights.mT, some_grad.view(rows))
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
