"""DPPO's loss: a mask by how far a token's probability moved, instead of a clip of its ratio."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch

from ..core.checks import check_above_zero, check_choices, check_weights
from ..core.protocols import Loss, LossBatch, LossOut
from .aggregate import Aggregate, TokenMean, check_aggregate, token_share
from .ratio import ratio_at


@dataclass(frozen=True, kw_only=True)
class DppoLoss(Loss):
    """``-keep A rho + tie (log rho)^2`` (DPPO, arXiv 2602.04879; the form of prime-rl).

    A token is dropped where its probability has already gone, in the direction of its advantage,
    further than ``bound`` from what it was when it was sampled. A ratio says little of that: a
    token that rose from .05 to .10 has ratio 2 and moved by .05. The tie acts on all tokens.

    Degenerate cases: at ratio 1 nothing is dropped and the tie has no gradient.

    Attributes:
        bound: How far a probability may go, as a difference; in nats with ``binary-kl``.
        measure: ``"probability"``: the difference of the sampled token's probabilities.
            ``"binary-kl"``: the divergence of "this token or another", which bounds it from below.
        tie: Weight of the squared log ratio.
        aggregate: How tokens become one number.
    """

    bound: float = 0.2
    measure: Literal["probability", "binary-kl"] = "probability"
    tie: float = 1e-3
    aggregate: Aggregate = field(default_factory=TokenMean)

    def __post_init__(self) -> None:
        check_choices(self)
        check_aggregate(self)
        check_above_zero(self, "bound")
        check_weights(self, "tie")

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the loss and the metrics of one micro batch, both as shares of the mini batch."""
        ratio = ratio_at("token", batch)
        dropped = self.drops(batch.logprobs, batch.old_logprobs, batch.advantages)
        policy = -torch.where(dropped, 0.0, batch.advantages * ratio)
        away = batch.logprobs - batch.old_logprobs
        surrogate = self.aggregate(policy, batch.mask, batch.norm)
        loss = surrogate + self.tie * self.aggregate(away**2, batch.mask, batch.norm)
        return LossOut(
            loss=loss,
            metrics={
                "policy": surrogate.detach(),
                "clip_frac": token_share(dropped.to(ratio.dtype), batch),
                "entropy_nats": token_share(batch.entropies, batch),
                "ratio_mean": token_share(ratio, batch),
                "ratio_sq_dev": token_share((ratio - 1.0) ** 2, batch),
            },
        )

    @torch.no_grad()
    def drops(
        self, logprobs: torch.Tensor, old_logprobs: torch.Tensor, advantages: torch.Tensor
    ) -> torch.Tensor:
        """Return a mask of the tokens that have gone too far already, same shape as all."""
        now, old = logprobs.exp(), old_logprobs.exp()
        distance = (now - old).abs()
        if self.measure == "binary-kl":
            distance = binary_kl(old, now)
        return ((now - old) * advantages > 0) & (distance > self.bound)


def binary_kl(old: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Return KL(old || now) of "this token or another" in nats, from its two probabilities."""
    tiny = torch.finfo(old.dtype).tiny
    other_old, other_now = 1.0 - old, 1.0 - now
    here = old * (old.clamp(min=tiny).log() - now.clamp(min=tiny).log())
    return here + other_old * (other_old.clamp(min=tiny).log() - other_now.clamp(min=tiny).log())
