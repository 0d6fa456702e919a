"""The price of leaving the reference, in the reward as in the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.forests import tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Forest, Group
from turngym.algos.credit import Gae, ReturnsToGo
from turngym.algos.credit.penalty import kl_price
from turngym.algos.losses import Kl
from turngym.envs.core.errors import BadValueError

KINDS = ("k1", "k2", "k3")


@pytest.mark.parametrize(
    ("old", "ref", "want"),
    [(-1, -1.5, (0.5, 0.125, 0.106531)), (-1.5, -1, (-0.5, 0.125, 0.148721)), (-2, -2, (0, 0, 0))],
)
def test_worked_estimates(old: float, ref: float, want: tuple[float, ...]) -> None:
    """E16, unclamped."""
    annotations = {"old_logprobs": [np.array([old])], "ref_logprobs": [np.array([ref])]}
    for kind, value in zip(KINDS, want, strict=True):
        assert kl_price(kind, annotations, 0)[0] == pytest.approx(value, abs=1e-6)


@given(st.sampled_from(KINDS), st.lists(st.floats(-2, 0), min_size=2, max_size=2))
def test_the_estimate_is_the_loss_s(kind: Any, pair: list[float]) -> None:
    annotations = {"old_logprobs": [np.array(pair[:1])], "ref_logprobs": [np.array(pair[1:])]}
    of_loss = Kl(kind=kind)(*(torch.tensor([x], dtype=torch.float64) for x in pair))
    assert kl_price(kind, annotations, 0)[0] == pytest.approx(of_loss.item(), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_pay_it_token_by_token(kind: Any) -> None:
    forest = Forest.of([Group("g", "t", [tree(turn([0.0, 1.0], status="solved"))])])
    old, ref = np.array([-1, -1.5], np.float32), np.array([-1.5, -1], np.float32)
    annotations = {
        "old_logprobs": [old],
        "ref_logprobs": [ref],
        "values": [np.zeros(3, np.float32)],
    }
    price = 0.1 * kl_price(kind, annotations, 0)
    got = Gae(whiten=False, kl_coef=0.1, kl_kind=kind)(forest, annotations).advantages[0]
    assert got == pytest.approx([1 - price.sum(), 1 - price[1]], abs=1e-6)
    plain = ReturnsToGo(kl_coef=0.1, kl_kind=kind)(forest, annotations).advantages[0]
    assert plain == pytest.approx(np.sign(price[0]) * np.array([-1, 1]) * 0.5**0.5, abs=1e-4)


def test_there_are_three_kinds() -> None:
    with pytest.raises(BadValueError, match="k1"):
        ReturnsToGo(kl_kind="k4")  # type: ignore[arg-type]
