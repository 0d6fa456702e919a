"""The loss of a reward model: the better of two trajectories scores higher."""

from __future__ import annotations

import torch
from torch.nn.functional import softplus


def pair_loss(
    better: torch.Tensor, worse: torch.Tensor, centre: float = 1e-3
) -> tuple[torch.Tensor, torch.Tensor]:
    """Bradley-Terry with a pull of the scores towards 0 (ARMAP, arXiv 2502.12130, released code).

    ``mean(-log sigmoid(better - worse)) + centre |mean(better + worse)|``

    Args:
        better: Scores of the preferred trajectories ``[pairs]``.
        worse: Scores of the others ``[pairs]``.
        centre: Weight of the pull; 0 for none.

    Returns:
        The loss, and the probability that the preferred one is better ``[pairs]``.
    """
    gap = better - worse
    loss = softplus(-gap).mean() + centre * (better + worse).mean().abs()
    return loss, gap.detach().sigmoid()
