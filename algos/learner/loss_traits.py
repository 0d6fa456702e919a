"""Properties of a loss, found by evaluating it on a few made-up tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..core.kinds import Streams
from ..core.protocols import Loss, LossBatch, LossOut, Norm


def computed(loss: Loss, batch: LossBatch) -> LossOut:
    """Return what a loss gives for a batch.

    Raises:
        TypeError: It is something else than a :class:`LossOut` of tensors with one number each.
        UnknownNameError: It read a stream that it does not name in ``needs``.
    """
    out: Any = loss(batch)
    name = type(loss).__name__
    if not isinstance(out, LossOut):
        raise TypeError(
            f"{name} returned a {type(out).__name__}; expected LossOut(loss=..., metrics={{...}})."
        )
    if not isinstance(out.metrics, Mapping):
        raise TypeError(
            f"{name} gave metrics as a {type(out.metrics).__name__}; expected a mapping of tensors "
            "by name, {} for none."
        )
    for what, value in {"loss": out.loss, **out.metrics}.items():
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            shape = list(value.shape) if isinstance(value, torch.Tensor) else repr(value)[:100]
            raise TypeError(
                f"{name} gave {what!r} as a {type(value).__name__} ({shape}); expected a tensor of "
                "one number, such as a sum over batch.mask by batch.norm."
            )
    return out


def silent_without_advantage(loss: Loss) -> bool:
    """Return whether a path whose advantages are all 0 has a gradient of exactly 0.

    Then such paths need no forward pass: groups in which every answer earned the same cost
    nothing. A KL, entropy or value term makes every path count, and the answer False.
    """
    return not _moved_by(loss, advantage=0.0)


def reads_entropy(loss: Loss) -> bool:
    """Return whether entropies carry gradient; else no graph over the vocabulary is needed."""
    return "entropies" in _moved_by(loss, advantage=1.0)


def split_values(loss: Loss) -> tuple[tuple[Loss, ...], tuple[Loss, ...]]:
    """Return the parts of a loss that move the policy, and those that move a critic of its own.

    A loss with a part that reads both, with gradient, stays whole, and is one of the former; so
    does one that is not the sum of its parts, such as a class that adds a term to another's.
    """
    values = tuple(part for part in loss.parts if "values" in part.needs)
    others = tuple(part for part in loss.parts if "values" not in part.needs)
    if not others or any(_moved_by(part, advantage=1.0) - {"values"} for part in values):
        return (loss,), ()
    whole, *terms = (
        computed(one, _made_up(one, 1.0)[0]).loss.detach() for one in (loss, *loss.parts)
    )
    return (others, values) if torch.allclose(whole, torch.stack(terms).sum()) else ((loss,), ())


def _moved_by(loss: Loss, advantage: float) -> set[str]:
    """Return the names of the inputs whose gradient is not 0 on a few made-up tokens."""
    batch, live = _made_up(loss, advantage)
    value = computed(loss, batch).loss
    if not value.requires_grad:
        return set()
    value.backward()
    return {name for name, t in live.items() if t.grad is not None and bool(t.grad.any())}


def _made_up(loss: Loss, advantage: float) -> tuple[LossBatch, dict[str, torch.Tensor]]:
    """Return a few made-up tokens, and those of their streams that carry gradient."""
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
        "teacher_logprobs": -0.9 - 0.5 * steps,
        "context_logprobs": -0.8 + 0.2 * steps,
        "pair": torch.zeros_like(steps),
    }
    batch = LossBatch(
        logprobs=live["logprobs"],
        old_logprobs=-1.1 - 0.6 * steps,
        entropies=live["entropies"],
        advantages=torch.full_like(steps, advantage),
        mask=torch.ones_like(steps),
        turns=torch.tensor([[0, 0, 1, 1], [0, 1, 1, 2]]),
        norm=Norm(tokens=8.0, paths=2.0, pairs=1.0),
        extra=Streams({name: extra.get(name, 0.3 * steps) for name in loss.needs}),
    )
    return batch, live
