"""Output layer, log-probability and entropy as one function, for CUDA.

A table of logits is made for some tokens at a time, forward and again backward, in float32; the
gradient of the layer's weights is added up in place. Memory beyond inputs, outputs and gradients
is that of :data:`TABLES` such pieces, however many tokens are scored (as in Liger's fused linear
loss, and Cut Cross-Entropy, arXiv 2411.09009).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....agents.models.products import wide_product

TABLES = 3
"""Tables of float32 that a piece has at a time, at most: logits, probabilities, and a difference
or the slopes in the products' format."""
MIN_ENTRIES, MAX_ENTRIES = 2**24, 2**28
DEVICE_SHARE = 64
"""A table of float32 takes at most this part of a device's memory."""
LOWEST = -1e30
"""Stands for the logit of a token that is ruled out: a weight of 0 times it is 0."""


def piece_entries(device_bytes: int) -> int:
    """Return the most logits of a piece on a device with so much memory."""
    return max(MIN_ENTRIES, min(MAX_ENTRIES, device_bytes // (4 * DEVICE_SHARE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSettings:
    """How :func:`fused_head` computes.

    Attributes:
        temperature: Divides the logits.
        entropy_gradient: Whether the entropies carry gradient.
        dtype: Number format of the products' factors.
        entries: Most logits of a piece.
    """

    temperature: float
    entropy_gradient: bool
    dtype: torch.dtype
    entries: int


def fused_head(
    states: Tensor, weight: Tensor, targets: Tensor, settings: HeadSettings
) -> tuple[Tensor, Tensor]:
    """Compute log-probabilities and entropies ``[n]`` in nats, float32.

    Args:
        states: Last hidden states ``[n, hidden]``.
        weight: Of the output layer, which has no bias ``[vocabulary, hidden]``.
        targets: Token ids ``[n]``.
        settings: How to compute.
    """
    return _FusedHead.apply(states, weight, targets, settings)


class _FusedHead(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, settings: HeadSettings
    ) -> tuple[Tensor, Tensor]:
        shape, device = targets.shape, states.device
        logprobs, entropies, totals = (
            torch.empty(shape, dtype=torch.float32, device=device) for _ in range(3)
        )
        narrow, head = states.to(settings.dtype), weight.to(settings.dtype)
        for at in _pieces(len(targets), len(head), settings.entries):
            logits = _tempered(narrow[at], head, settings.temperature)
            picked = logits.gather(-1, targets[at][:, None])[:, 0]
            top = logits.clamp_(min=LOWEST).amax(-1, keepdim=True)
            mass = (logits - top).exp_()
            whole = mass.sum(-1)
            total = top[:, 0] + whole.log()
            mean = torch.linalg.vecdot(mass, logits) / whole
            totals[at], entropies[at] = total, (total - mean).clamp_(0.0)
            logprobs[at] = picked - total
            del logits, mass
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
        of_states = torch.empty_like(states) if ctx.needs_input_grad[0] else None
        of_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        for at in _pieces(len(targets), len(head), settings.entries):
            logits = _tempered(narrow[at], head, settings.temperature)
            of_entropies = grads[1][at] if settings.entropy_gradient else None
            found = totals[at], entropies[at]
            slopes = _slopes(logits, targets[at], found, (grads[0][at], of_entropies))
            del logits
            if settings.temperature != 1.0:
                slopes.div_(settings.temperature)
            slopes = slopes.to(settings.dtype)
            if of_states is not None:
                of_states[at] = (slopes @ head).to(states.dtype)
            if of_weight is not None:
                _add_product(of_weight, slopes, narrow[at], settings.entries)
            del slopes
        return of_states, of_weight, None, None


def _slopes(
    logits: Tensor,
    targets: Tensor,
    found: tuple[Tensor, Tensor],
    grads: tuple[Tensor, Tensor | None],
) -> Tensor:
    """Return the gradient of tempered logits, which are overwritten."""
    (totals, entropies), (of_logprobs, of_entropies) = found, grads
    logp = logits.sub_(totals[:, None]).clamp_(min=LOWEST)
    slopes = logp.exp()
    if of_entropies is None:
        slopes.mul_(-of_logprobs[:, None])
    else:
        logp.add_(entropies[:, None]).mul_(-of_entropies[:, None]).sub_(of_logprobs[:, None])
        slopes.mul_(logp)
    return slopes.scatter_add_(-1, targets[:, None], of_logprobs[:, None])


def _add_product(total: Tensor, slopes: Tensor, states: Tensor, entries: int) -> None:
    """Add ``slopes.T @ states`` to ``total`` without a second tensor of its size."""
    if total.dtype == slopes.dtype:
        total.addmm_(slopes.t(), states)
        return
    step = max(1, entries // states.shape[1])
    for first in range(0, len(total), step):
        part = slice(first, first + step)
        total[part].add_(slopes[:, part].t() @ states)


def _tempered(states: Tensor, head: Tensor, temperature: float) -> Tensor:
    logits = wide_product(states, head)
    return logits if temperature == 1.0 else logits.div_(temperature)


def _pieces(n: int, vocabulary: int, entries: int) -> Iterator[slice]:
    step = max(1, entries // vocabulary)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))
