"""Imitation: raise the probability of demonstrated actions."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.protocols import Loss, LossBatch, LossOut
from .aggregate import Aggregate, TokenMean, check_aggregate


@dataclass(frozen=True, kw_only=True)
class ImitationLoss(Loss):
    """``-A logprob`` per action token: supervised fine-tuning where A is 1.

    Attributes:
        aggregate: How tokens become one number.
    """

    aggregate: Aggregate = field(default_factory=TokenMean)

    def __post_init__(self) -> None:
        check_aggregate(self)

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the loss and the metrics of one micro batch, both as shares of the mini batch."""
        losses = -batch.advantages * batch.logprobs
        loss = self.aggregate(losses, batch.mask, batch.norm)
        entropy = (batch.entropies.detach() * batch.mask).sum() / batch.norm.tokens
        return LossOut(loss=loss, metrics={"nll": loss.detach(), "entropy_nats": entropy})
