"""Output layer, log-probability and entropy as one function, on a CPU.

The table of logits is made some rows at a time, in one buffer, forward and again backward; the
layer's weights are narrowed once a pass, and not once for every piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .fused_head import HeadSettings
from .layer_parts import layer_parts


def head_scores(
    states: Tensor, weight: Tensor, targets: Tensor, settings: HeadSettings
) -> tuple[Tensor, Tensor]:
    """Compute log-probabilities and entropies ``[n]`` in nats, float32.

    Args:
        states: Last hidden states ``[n, hidden]``.
        weight: Of the output layer, which has no bias ``[vocabulary, hidden]``.
        targets: Token ids ``[n]``.
        settings: How to compute.
    """
    return _HeadScores.apply(states, weight, targets, settings)


class _HeadScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, settings: HeadSettings
    ) -> tuple[Tensor, Tensor]:
        narrow, head = states.to(settings.dtype), weight.to(settings.dtype)
        parts, compute = [], layer_parts()
        for at, logits in _pieces(len(targets), head, settings.entries):
            torch.mm(narrow[at], head.t(), out=logits)
            parts.append(torch.empty(3, len(logits)))
            compute.measure(logits, targets[at], settings.temperature, parts[-1])
        logprobs, entropies, totals = torch.cat(parts, 1)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(states, weight, targets, totals, entropies)
            ctx.settings = settings
        if not settings.entropy_gradient:
            ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, targets, totals, entropies = ctx.saved_tensors
        settings: HeadSettings = ctx.settings
        narrow, head = states.to(settings.dtype), weight.to(settings.dtype)
        of_states = torch.empty_like(states)
        of_weight = torch.zeros(weight.shape) if ctx.needs_input_grad[1] else None
        compute = layer_parts()
        for at, logits in _pieces(len(targets), head, settings.entries):
            torch.mm(narrow[at], head.t(), out=logits)
            slopes = (grads[0][at], grads[1][at] if settings.entropy_gradient else None)
            found = (totals[at], entropies[at])
            compute.slopes(logits, targets[at], settings.temperature, found, slopes)
            of_states[at] = logits @ head
            if of_weight is not None:
                of_weight += logits.t() @ narrow[at]
        if of_weight is not None:
            of_weight = of_weight.to(weight.dtype)
        return of_states, of_weight, None, None


def _pieces(n: int, head: Tensor, entries: int) -> Iterator[tuple[slice, Tensor]]:
    """Return slices of rows and a place for their logits, the same memory every time."""
    step = max(1, min(n, entries // len(head)))
    buffer = torch.empty(step, len(head), dtype=head.dtype)
    for first in range(0, n, step):
        at = slice(first, min(first + step, n))
        yield at, buffer[: at.stop - at.start]
