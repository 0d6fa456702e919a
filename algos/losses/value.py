"""The critic's regression, and the sum of policy and value losses."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ...envs.core.errors import BadValueError
from ..core.checks import check_above_zero, check_numbers
from ..core.protocols import Loss, LossBatch, LossOut
from .policy import PolicyLoss


@dataclass(frozen=True, kw_only=True)
class ValueLoss(Loss):
    """``0.5 max((V - target)^2, (clip(V, V_old +- clip) - target)^2)``, mean over tokens.

    The pessimistic form of PPO's reference code, as verl and Search-R1 use it: the clipped branch
    can win, and stop the gradient, even where the value is perfect.

    Attributes:
        coef: Weight in the loss.
        clip: How far a value may usefully move from the old one; None does not clip. Search-R1
            uses 0.5.
    """

    coef: float = 1.0
    clip: float | None = 0.5

    def __post_init__(self) -> None:
        check_numbers(self)
        check_above_zero(self, "coef")
        if self.clip is not None and not self.clip > 0:
            raise BadValueError(f"ValueLoss.clip is {self.clip}; expected above 0, or none.")

    @property
    def needs(self) -> frozenset[str]:
        """Current and old values of the critic, and their targets."""
        wanted = {"values", "value_targets"}
        return frozenset(wanted if self.clip is None else wanted | {"old_values"})

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the loss and the metrics of one micro batch, both as shares of the mini batch."""
        values, targets = batch.extra["values"], batch.extra["value_targets"]
        errors = (values - targets) ** 2
        held = torch.zeros_like(errors)
        if self.clip is not None:
            old = batch.extra["old_values"]
            near = torch.maximum(torch.minimum(values, old + self.clip), old - self.clip)
            bounded = (near - targets) ** 2
            held = (bounded > errors).to(errors.dtype)
            errors = torch.maximum(errors, bounded)
        loss = 0.5 * (errors * batch.mask).sum() / batch.norm.tokens
        return LossOut(
            loss=self.coef * loss,
            metrics={
                "value": loss.detach(),
                "value_clip_frac": (held * batch.mask).sum() / batch.norm.tokens,
                "value_mean": (values.detach() * batch.mask).sum() / batch.norm.tokens,
            },
        )


@dataclass(frozen=True, kw_only=True)
class ActorCriticLoss(Loss):
    """Policy loss plus value loss.

    Attributes:
        policy: Moves the policy.
        value: Moves the critic.
    """

    policy: PolicyLoss = field(default_factory=PolicyLoss)
    value: ValueLoss = field(default_factory=ValueLoss)

    @property
    def needs(self) -> frozenset[str]:
        """Streams that either part reads."""
        return self.policy.needs | self.value.needs

    @property
    def parts(self) -> tuple[Loss, ...]:
        """Both losses: each moves a model of its own, unless the critic is the policy's."""
        return self.policy, self.value

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the sum of both losses, and the metrics of both."""
        policy, value = self.policy(batch), self.value(batch)
        return LossOut(loss=policy.loss + value.loss, metrics={**policy.metrics, **value.metrics})
