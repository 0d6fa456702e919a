"""Step-level DPO: raise the better side of each fork against the worse one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn.functional import softplus

from ..core.checks import check_above_zero
from ..core.protocols import Loss, LossBatch, LossOut


@dataclass(frozen=True, kw_only=True)
class StepDpoLoss(Loss):
    """``-log sigmoid(beta (margin_better - margin_worse))``, mean over the pairs.

    DPO (arXiv 2305.18290, equation 7) between the two steps of a pair (Step-DPO, arXiv 2406.18629,
    equation 3), where a step's margin is the sum over its tokens of ``logprob - ref_logprob``. The
    pairs come from :class:`~turngym.algos.credit.StepPairs`.

    Its gradient at a fork has the direction of intra-tree GRPO's. Where a better side of
    probability p stands against a worse one of 1 - p, GRPO weighs it p (1 - p) (without the
    deviation) and this loss ``beta sigmoid(-beta (log p - log(1 - p) - reference's difference))``
    (Tree-GRPO, arXiv 2509.21240, section 3.4).

    Attributes:
        beta: Strength of the tie to the reference.
        reference: Subtract the reference's log-probabilities; False compares the policy's alone.
    """

    whole_trees: ClassVar[bool] = True
    """The two sides of a pair must be in one micro batch: trees stay whole."""

    beta: float = 0.1
    reference: bool = True

    def __post_init__(self) -> None:
        check_above_zero(self, "beta")

    @property
    def needs(self) -> frozenset[str]:
        """The pairs' numbers, and the reference."""
        return frozenset({"pair", "ref_logprobs"} if self.reference else {"pair"})

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the loss and the metrics of one micro batch, both as shares of the mini batch."""
        pairs = batch.extra["pair"]
        marked = (pairs >= 0) & (batch.mask > 0) & (batch.advantages != 0)
        gains = batch.logprobs
        if self.reference:
            gains = gains - batch.extra["ref_logprobs"]
        signed = (batch.advantages * gains)[marked]
        _, place = torch.unique(pairs[marked].long(), return_inverse=True)
        n = int(place.max()) + 1 if place.numel() else 0
        margins = signed.new_zeros(n).index_add(0, place, signed)
        total = max(batch.norm.pairs, 1.0)
        loss = softplus(-self.beta * margins).sum() / total
        right = (margins.detach() > 0).to(loss.dtype).sum() / total
        entropy = (batch.entropies.detach() * batch.mask).sum() / batch.norm.tokens
        metrics = {"dpo": loss.detach(), "preferred": right, "entropy_nats": entropy}
        return LossOut(loss=loss + 0.0 * batch.logprobs.sum(), metrics=metrics)
