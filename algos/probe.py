"""What a loss reacts to, found by trying it on a few made-up tokens."""

from __future__ import annotations

import torch

from .contracts import Loss, LossBatch, Norm


def silent_without_advantage(loss: Loss) -> bool:
    """True when a path whose advantages are all 0 has a gradient of exactly 0.

    Then such paths need no forward pass: groups in which every answer earned the same cost
    nothing. A KL, entropy or value term makes every path count, and the answer False.
    """
    steps = torch.linspace(-1.0, 1.0, 8).view(2, 4)
    live = {
        "logprobs": (-1.0 + 0.7 * steps).requires_grad_(),
        "entropies": (1.0 + 0.3 * steps).requires_grad_(),
        "values": (0.2 - 0.5 * steps).requires_grad_(),
    }
    extra = {
        "ref_logprobs": -1.2 - 0.4 * steps,
        "values": live["values"],
        "old_values": 0.1 * steps,
        "value_targets": 1.0 - steps,
    }
    batch = LossBatch(
        logprobs=live["logprobs"],
        old_logprobs=-1.1 - 0.6 * steps,
        entropies=live["entropies"],
        advantages=torch.zeros_like(steps),
        mask=torch.ones_like(steps),
        turns=torch.tensor([[0, 0, 1, 1], [0, 1, 1, 2]]),
        norm=Norm(tokens=8.0, paths=2.0),
        extra={name: extra[name] for name in loss.needs if name in extra},
    )
    value = loss(batch).loss
    if not value.requires_grad:
        return True
    value.backward()
    return all(t.grad is None or not bool(t.grad.any()) for t in live.values())
