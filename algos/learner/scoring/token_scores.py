"""Log-probability and entropy of chosen tokens, straight from logits.

The table ``[tokens, vocabulary]`` is the largest tensor of a small model's update. Written with
torch's own parts it is made six times over (log-softmax, its backward, zeros for the gather, and
the entropy's); here the forward pass makes nothing of that size and the backward pass only the
gradient itself, in pieces that a processor's cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

CACHED_ENTRIES = 2**17
"""Entries of a piece on a CPU."""


def token_scores(
    logits: Tensor, targets: Tensor, temperature: float, entropy_gradient: bool = True
) -> tuple[Tensor, Tensor]:
    """Compute log-probabilities and entropies ``[n]`` in nats, float32.

    Args:
        logits: ``[n, vocabulary]``, any number format.
        targets: Token ids ``[n]``.
        temperature: Divides the logits.
        entropy_gradient: Whether the entropies carry gradient.
    """
    return _TokenScores.apply(logits, targets, temperature, entropy_gradient)


class _TokenScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, temperature: float, entropy_gradient: bool
    ) -> tuple[Tensor, Tensor]:
        shape, device = targets.shape, logits.device
        logprobs, entropies, totals = (
            torch.empty(shape, dtype=torch.float32, device=device) for _ in range(3)
        )
        measure_into(logits, targets, temperature, (logprobs, entropies, totals))
        ctx.save_for_backward(logits, targets, totals, entropies)
        ctx.temperature, ctx.entropy_gradient = temperature, entropy_gradient
        if not entropy_gradient:
            ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        logits, targets, totals, entropies = ctx.saved_tensors
        out = torch.empty_like(logits)
        of_entropies = grads[1] if ctx.entropy_gradient else None
        found = (totals, entropies)
        slopes_into(logits, targets, ctx.temperature, found, (grads[0], of_entropies), out)
        return out, None, None, None


def measure_into(
    logits: Tensor, targets: Tensor, temperature: float, out: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Write log-probabilities, entropies and logarithms of the sums of exponentials ``[n]``.

    Args:
        logits: ``[n, vocabulary]``.
        targets: ``[n]``.
        temperature: Divides the logits.
        out: The three.
    """
    logprobs, entropies, totals = out
    for at in _pieces(logits):
        x = _tempered(logits[at], temperature)
        top = x.amax(-1, keepdim=True)
        mass = (x - top).exp_()
        whole = mass.sum(-1)
        total = top[:, 0] + whole.log()
        mean = torch.linalg.vecdot(mass, x) / whole
        if not bool(mean.isfinite().all()):  # ruled-out tokens: 0 * -inf counts as 0
            mean = torch.linalg.vecdot(mass, x.nan_to_num(neginf=0.0)) / whole
        totals[at], entropies[at] = total, (total - mean).clamp_(0.0)
        logprobs[at] = x.gather(-1, targets[at][:, None])[:, 0] - total


def slopes_into(
    logits: Tensor,
    targets: Tensor,
    temperature: float,
    found: tuple[Tensor, Tensor],
    grads: tuple[Tensor, Tensor | None],
    out: Tensor,
) -> None:
    """Write the gradient of logits ``[n, vocabulary]``; ``out`` may be the logits themselves.

    Args:
        logits: As measured.
        targets: ``[n]``.
        temperature: As measured.
        found: Logarithms of the sums of exponentials, and entropies ``[n]``.
        grads: Of log-probabilities and of entropies ``[n]``; None for no gradient of entropies.
        out: Written.
    """
    (totals, entropies), (of_logprobs, of_entropies) = found, grads
    for at in _pieces(logits):
        logp = _tempered(logits[at], temperature) - totals[at][:, None]
        p = logp.exp()
        grad = p * -of_logprobs[at][:, None]
        if of_entropies is not None:
            logp = logp.nan_to_num(neginf=0.0)
            grad -= p * (logp + entropies[at][:, None]) * of_entropies[at][:, None]
        grad.scatter_add_(-1, targets[at][:, None], of_logprobs[at][:, None])
        out[at] = grad if temperature == 1.0 else grad / temperature


def _tempered(logits: Tensor, temperature: float) -> Tensor:
    x = logits.float()
    return x if temperature == 1.0 else x / temperature


def _pieces(logits: Tensor) -> Iterator[slice]:
    """Return slices of rows; one for all where there is no small cache to stay in."""
    n, width = logits.shape
    step = max(1, CACHED_ENTRIES // width) if logits.device.type == "cpu" else max(1, n)
    return (slice(i, i + step) for i in range(0, n, step))
