"""The reward model's loss."""

from __future__ import annotations

import pytest
import torch

from turngym.algos.losses.pairwise import pair_loss


@pytest.mark.parametrize(
    ("better", "worse", "plain", "centred", "chance"),
    [
        (2.0, 0.5, 0.201413, 0.203913, 0.817574),
        (0.3, 0.4, 0.744397, 0.745097, 0.475021),
        (5.0, -1.0, 0.002476, 0.006476, 0.997527),
    ],
)
def test_pairs(better: float, worse: float, plain: float, centred: float, chance: float) -> None:
    """Example 12 of ARMAP."""
    scores = torch.tensor([better]), torch.tensor([worse])
    assert pair_loss(*scores, centre=0.0)[0].item() == pytest.approx(plain, abs=1e-6)
    loss, right = pair_loss(*scores)
    assert loss.item() == pytest.approx(centred, abs=1e-6)
    assert right.item() == pytest.approx(chance, abs=1e-6)


def test_the_pull_is_on_the_batch_s_mean() -> None:
    both = torch.tensor([2.0, -2.0]), torch.tensor([1.0, -1.0])
    assert pair_loss(*both)[0].item() == pytest.approx(pair_loss(*both, centre=0.0)[0].item())
