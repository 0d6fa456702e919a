"""Distillation on the policy's own samples: a reverse divergence from a teacher, token by token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from ..core.checks import check_above_zero, check_choices, check_weights
from ..core.protocols import Loss, LossBatch, LossOut
from .aggregate import Aggregate, TokenMean, check_aggregate, token_share
from .policy import PolicyLoss
from .ratio import ratio_at


@dataclass(frozen=True, kw_only=True)
class RefKlLoss(Loss):
    """``-keep k rho + tie (log rho)^2`` with ``k = log teacher - log policy``, held constant.

    On the sampled tokens ``k`` is the advantage of a step towards the teacher: its expectation
    times the score is exactly minus the gradient of KL(policy || teacher) at that position. What a
    token does to later states is left out. The form is prime-rl's ``ref_kl``: a token that has lost
    more than ``drop`` of its probability since it was sampled is dropped (on this side alone), and
    all are tied to the policy that sampled.

    It reads no advantages. Where outcomes count as well, :class:`SummedLoss` adds both.

    Degenerate cases: a teacher that is the policy gives exactly 0. A token that the teacher cannot
    emit has no bound.

    Attributes:
        target: The teacher: another model, or the policy with a demonstration in its context.
        drop: Loss of probability since sampling from which a token is dropped.
        tie: Weight of the squared log ratio.
        aggregate: How tokens become one number.
    """

    target: Literal["teacher_logprobs", "context_logprobs"] = "teacher_logprobs"
    drop: float = 0.2
    tie: float = 1e-3
    aggregate: Aggregate = field(default_factory=TokenMean)

    reads_credit: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choices(self)
        check_aggregate(self)
        check_above_zero(self, "drop")
        check_weights(self, "tie")

    @property
    def needs(self) -> frozenset[str]:
        """The teacher's log-probabilities."""
        return frozenset({self.target})

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the loss and the metrics of one micro batch, both as shares of the mini batch."""
        now = batch.logprobs.detach()
        gain = batch.extra[self.target] - now
        dropped = now.exp() - batch.old_logprobs.exp() < -self.drop
        ratio = ratio_at("token", batch)
        away = (batch.logprobs - batch.old_logprobs) ** 2
        losses = -torch.where(dropped, 0.0, gain * ratio) + self.tie * away
        loss = self.aggregate(losses, batch.mask, batch.norm)
        return LossOut(
            loss=loss,
            metrics={
                "distill": loss.detach(),
                "teacher_kl_nats": token_share(-gain, batch),
                "distill_dropped_frac": token_share(dropped.to(losses.dtype), batch),
                "entropy_nats": token_share(batch.entropies, batch),
            },
        )


@dataclass(frozen=True, kw_only=True)
class SummedLoss(Loss):
    """A policy loss, made of advantages, plus ``weight`` times a distillation loss.

    Attributes:
        policy: Reads the credit.
        distill: Reads the teacher.
        weight: Of the distillation.
    """

    policy: PolicyLoss = field(default_factory=PolicyLoss)
    distill: RefKlLoss = field(default_factory=RefKlLoss)
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_above_zero(self, "weight")

    @property
    def needs(self) -> frozenset[str]:
        """Streams that either part reads."""
        return self.policy.needs | self.distill.needs

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the weighted sum of both losses, and the metrics of both."""
        policy, distill = self.policy(batch), self.distill(batch)
        return LossOut(
            loss=policy.loss + self.weight * distill.loss,
            metrics={**distill.metrics, **policy.metrics},
        )
