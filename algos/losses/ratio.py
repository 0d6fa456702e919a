"""The importance ratio new / old policy of a token, of its turn, or of its whole path."""

from __future__ import annotations

from typing import Literal

import torch

from ..core.protocols import LossBatch

Level = Literal["token", "turn", "sequence", "sequence-sum"]

MAX_LOG_RATIO = 20.0


def ratio_at(level: Level, batch: LossBatch) -> torch.Tensor:
    """Return ratios ``[paths, tokens]``, equal within a unit, with gradient.

    A unit's ratio is the geometric mean of its tokens' ratios: ``exp(mean(logprob - old))``. GSPO
    (arXiv 2507.18071, equation 7) is ``"sequence"``. ``"sequence-sum"`` is the product of the
    tokens' ratios, ``exp(sum(logprob - old))``: the true ratio of a path (RLOO, arXiv 2402.14740).

    The gradient flows through each token's own log-probability (GSPO-token, equation 14): the same
    as the unit's where all tokens of the unit have one advantage, and right where they have
    different ones. It is scaled such that the mean over a unit's tokens has the gradient of the
    unit's ratio: a token of ``"sequence-sum"`` carries it as many times as the path has tokens.
    """
    times: torch.Tensor | float = 1.0
    with torch.no_grad():
        log_ratios = batch.logprobs - batch.old_logprobs
        if level == "sequence-sum":
            times = batch.mask.sum(1, keepdim=True)
            log_ratios = (log_ratios * batch.mask).sum(1, keepdim=True).expand_as(log_ratios)
        elif level != "token":
            log_ratios = _unit_means(log_ratios, level, batch)
        unit = log_ratios.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return unit * (times * (batch.logprobs - batch.logprobs.detach())).exp()


def _unit_means(x: torch.Tensor, level: Level, batch: LossBatch) -> torch.Tensor:
    at = batch.turns.clamp(min=0) if level == "turn" else torch.zeros_like(batch.turns)
    units = x.new_zeros(x.shape[0], int(at.max()) + 1 if at.numel() else 1)
    sums = units.scatter_add(1, at, x * batch.mask)
    counts = units.scatter_add(1, at, batch.mask)
    return (sums / counts.clamp(min=1.0)).gather(1, at)
