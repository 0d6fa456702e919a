"""Attention over a pack, span by span, for models whose products take most of the time.

As :mod:`~turngym.algos.learner.attention.block_attention`, but made for large heads and long
contexts: query heads that share a key head are rows of one product, so that nothing is repeated;
and no attention weights are kept for the backward pass, which makes them again from the scores, a
piece of the queries at a time. Memory grows with the tokens alone, whatever their contexts are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ....agents.models import causal_attention
from ....agents.models.causal_attention import softmax_kernels
from .packing import Block, Range


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens that follow each other, and what all of them see before themselves.

    Attributes:
        prefix: Ranges of the pack, in order.
        start: First own token.
        stop: One past the last.
    """

    prefix: tuple[Range, ...]
    start: int
    stop: int

    @property
    def n_prefix(self) -> int:
        """Tokens of the prefix."""
        return sum(stop - start for start, stop in self.prefix)

    def gather(self, x: Tensor) -> Tensor:
        """Return what the last token sees of ``[heads, tokens, width]``."""
        if self.prefix and self.prefix[-1][1] == self.start:
            parts = [*self.prefix[:-1], (self.prefix[-1][0], self.stop)]
        else:
            parts = [*self.prefix, (self.start, self.stop)]
        found = [x[:, start:stop] for start, stop in parts]
        return found[0] if len(found) == 1 else torch.cat(found, 1)

    def add(self, grad: Tensor, out: Tensor) -> None:
        """Add the gradient of :meth:`gather` to its tokens in ``out``."""
        at = 0
        for start, stop in (*self.prefix, (self.start, self.stop)):
            out[:, start:stop] += grad[:, at : at + stop - start]
            at += stop - start

    def pieces(self) -> Iterator[Range]:
        """Return own tokens, counted from ``start``, that are computed together."""
        step, count = causal_attention.QUERIES, self.stop - self.start
        for first in range(0, count, step):
            yield first, min(first + step, count)


def spans_of(blocks: Iterable[Block], first: int = 0) -> tuple[Span, ...]:
    """Return the spans of blocks, contexts before what continues them.

    Args:
        blocks: Of a pack.
        first: Token from which on they are wanted; earlier ones are context alone.
    """
    whole = (
        Span(block.prefix, start, start + length)
        for block in blocks
        for start, length in zip(block.starts, block.lengths, strict=True)
    )
    return tuple(
        span if span.start >= first else Span((*span.prefix, (span.start, first)), first, span.stop)
        for span in whole
        if span.stop > first
    )


def attend(q: Tensor, k: Tensor, v: Tensor, spans: Sequence[Span], before: int = 0) -> Tensor:
    """Return what every token sees, ``[key heads, tokens, group * width]``, tokens outermost.

    Args:
        q: Queries, scaled; those of the heads that share a key head side by side
            ``[key heads, tokens, group * width]``.
        k: Keys ``[key heads, tokens, width]``.
        v: Values, the same.
        spans: What sees what; a token in none sees nothing, and lies behind all that are in one.
        before: Tokens before the first query, which have keys and values alone.
    """
    out = torch.empty(q.transpose(0, 1).shape, dtype=q.dtype, device=q.device).transpose(0, 1)
    out[:, max(span.stop for span in spans) - before :] = 0
    softmax, _ = softmax_kernels()
    for span in spans:
        keys, values, start = span.gather(k), span.gather(v), span.start - before
        for a, b in span.pieces():
            some = _queries(q, start, a, b, k.shape[-1])
            reach = span.n_prefix + b
            scores = torch.bmm(some, keys[:, :reach].mT)
            weights = softmax(scores, span.n_prefix + a, reach)
            seen = torch.bmm(weights, values[:, :reach])
            out[:, start + a : start + b] = seen.view(len(q), b - a, -1)
    return out


def attend_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, spans: Sequence[Span], before: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values of :func:`attend`.

    Args:
        grad: Of the output, in its shape.
        q: As given to :func:`attend`.
        k: The same.
        v: The same.
        spans: The same.
        before: The same.

    Returns:
        Queries' in their number format; keys' and values' in float32: they are sums over many.
    """
    width = k.shape[-1]
    of_q = torch.empty_like(q)
    of_q[:, max(span.stop for span in spans) - before :] = 0
    of_k, of_v = (torch.zeros(k.shape, device=k.device) for _ in range(2))
    _, softmax_slopes = softmax_kernels()
    for span in spans:
        keys, values = span.gather(k), span.gather(v)
        own_k, own_v = (torch.zeros(keys.shape, device=k.device) for _ in range(2))
        start = span.start - before
        for a, b in span.pieces():
            some, towards = (_queries(x, start, a, b, width) for x in (q, grad))
            n = span.n_prefix + b
            scores, grads = (
                torch.bmm(x, y[:, :n].mT) for x, y in ((some, keys), (towards, values))
            )
            weights, slopes = softmax_slopes(scores, grads, span.n_prefix + a, n)
            own_v[:, :n] += torch.bmm(weights.mT, towards)
            own_k[:, :n] += torch.bmm(slopes.mT, some)
            mine = torch.bmm(slopes, keys[:, :n]).view(len(q), b - a, -1)
            of_q[:, start + a : start + b] = mine
        span.add(own_k, of_k)
        span.add(own_v, of_v)
    return of_q, of_k, of_v


def _queries(x: Tensor, start: int, a: int, b: int, width: int) -> Tensor:
    """Return tokens ``a`` to ``b`` behind ``start`` as ``[key heads, (b - a) * group, width]``."""
    return x[:, start + a : start + b].reshape(len(x), -1, width)
