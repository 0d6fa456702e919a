"""Attention over a pack, span by span, for models whose products take most of the time.

As :mod:`~turngym.algos.learner.attention.block_attention`, but made for large heads and long
contexts: query heads that share a key head are rows of one product, so that nothing is repeated;
and no attention weights are kept for the backward pass, which makes them again from the scores, a
piece of the queries at a time. Memory grows with the tokens alone, whatever their contexts are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ....agents.models.causal_attention import softmax_kernels
from .packing import Block, Range

QUERIES = 256
"""Queries at a time: keys that come later than these are not computed for them, and every product
lays out its keys anew."""


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
        step, count = QUERIES, self.stop - self.start
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


class SpanAttention:
    """Attention of a pack's tokens, in every layer: its passes share the memory of their scores.

    Args:
        spans: What sees what; a token in none sees nothing, and lies behind all that are in one.
        before: Tokens before the first query, which have keys and values alone.
    """

    def __init__(self, spans: Sequence[Span], before: int = 0) -> None:
        self._spans = tuple(spans)
        self._before = before
        self._stop = max(span.stop for span in spans) - before
        # the room that the largest piece and the longest span need, of one head
        self._scores = max(
            (b - a) * (span.n_prefix + b) for span in self._spans for a, b in span.pieces()
        )
        self._keys = max(span.n_prefix + span.stop - span.start for span in self._spans)
        self._held: dict[str, Tensor] = {}

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return what every token sees, and the logarithms of its sums of exponentials.

        Args:
            q: Queries, scaled; those of the heads that share a key head side by side
                ``[key heads, tokens, group * width]``.
            k: Keys ``[key heads, tokens, width]``.
            v: Values, the same.

        Returns:
            In the queries' shape, tokens outermost; and ``[key heads, tokens, group]`` float32.
        """
        width = k.shape[-1]
        group = q.shape[-1] // width
        out = torch.empty(q.transpose(0, 1).shape, dtype=q.dtype, device=q.device).transpose(0, 1)
        out[:, self._stop :] = 0
        logsumexp = torch.zeros(*q.shape[:2], group, device=q.device)
        softmax, _ = softmax_kernels()
        for span in self._spans:
            keys, values, start = span.gather(k), span.gather(v), span.start - self._before
            for a, b in span.pieces():
                some, reach = _queries(q, start, a, b, width), span.n_prefix + b
                scores = self._room_for_scores("scores", some, group, reach)
                torch.bmm(some, keys[:, :reach].mT, out=scores)
                weights, found = softmax(scores, span.n_prefix + a, reach)
                seen = torch.bmm(weights, values[:, :reach])
                out[:, start + a : start + b] = seen.view(len(q), b - a, -1)
                logsumexp[:, start + a : start + b] = found.view(len(q), b - a, group)
        return out, logsumexp

    def backward(
        self,
        grad: Tensor,
        inputs: tuple[Tensor, Tensor, Tensor],
        logsumexp: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of queries, keys and values.

        Args:
            grad: Of what every token sees, in its shape.
            inputs: Queries, keys and values.
            logsumexp: What the call returned for them beside the output.

        Returns:
            Queries' in their number format; keys' and values' in float32: they are sums over many.
        """
        q, k, v = inputs
        width, group = k.shape[-1], logsumexp.shape[-1]
        of_q = torch.empty_like(q)
        of_q[:, self._stop :] = 0
        of_k, of_v = (torch.zeros(k.shape, device=k.device) for _ in range(2))
        _, softmax_slopes = softmax_kernels()
        for span in self._spans:
            keys, values = span.gather(k), span.gather(v)
            own_k, own_v = (torch.zeros(keys.shape, device=k.device) for _ in range(2))
            start = span.start - self._before
            for a, b in span.pieces():
                some, towards = (_queries(x, start, a, b, width) for x in (q, grad))
                n = span.n_prefix + b
                scores, grads = (
                    self._room_for_scores(name, some, group, n) for name in ("scores", "grads")
                )
                torch.bmm(some, keys[:, :n].mT, out=scores)
                torch.bmm(towards, values[:, :n].mT, out=grads)
                own = logsumexp[:, start + a : start + b].reshape(len(q), -1)
                weights, slopes = softmax_slopes(scores, grads, own, span.n_prefix + a, n)
                shape = len(q), n, width
                product = self._room("product", keys, shape, len(q) * self._keys * width)
                own_v[:, :n] += torch.bmm(weights.mT, towards, out=product)
                own_k[:, :n] += torch.bmm(slopes.mT, some, out=product)
                mine = torch.bmm(slopes, keys[:, :n]).view(len(q), b - a, -1)
                of_q[:, start + a : start + b] = mine
            span.add(own_k, of_k)
            span.add(own_v, of_v)
        return of_q, of_k, of_v

    def _room(self, name: str, like: Tensor, shape: tuple[int, int, int], most: int) -> Tensor:
        """Return memory for at most so many numbers, the same every time.

        Fresh memory costs as much as a product that is written to it.
        """
        if name not in self._held:
            self._held[name] = like.new_empty(most)
        return self._held[name][: math.prod(shape)].view(shape)

    def _room_for_scores(self, name: str, queries: Tensor, group: int, keys: int) -> Tensor:
        heads, rows, _ = queries.shape
        return self._room(name, queries, (heads, rows, keys), heads * group * self._scores)


def _queries(x: Tensor, start: int, a: int, b: int, width: int) -> Tensor:
    """Return tokens ``a`` to ``b`` behind ``start`` as ``[key heads, (b - a) * group, width]``."""
    return x[:, start + a : start + b].reshape(len(x), -1, width)
