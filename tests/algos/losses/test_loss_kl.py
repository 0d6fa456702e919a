"""Estimators of the divergence: worked numbers, and what they estimate."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from turngym.algos.losses import Kl


def estimates(lp: float, ref: float, clamp: float = 1e9) -> list[float]:
    a, b = torch.tensor([lp], dtype=torch.float64), torch.tensor([ref], dtype=torch.float64)
    return [float(Kl(kind=k, clamp=clamp)(a, b)) for k in ("k1", "k2", "k3")]


@pytest.mark.parametrize(
    ("lp", "ref", "expected"),
    [
        (-1.0, -1.5, [0.5, 0.125, 0.106531]),
        (-1.5, -1.0, [-0.5, 0.125, 0.148721]),
        (-6.0, -1.0, [-5.0, 12.5, 142.413159]),
        (-2.0, -2.0, [0.0, 0.0, 0.0]),
    ],
)
def test_e16(lp: float, ref: float, expected: list[float]) -> None:
    assert estimates(lp, ref) == pytest.approx(expected, abs=1e-6)


def test_e16_a_value_is_clamped() -> None:
    assert estimates(-6.0, -1.0, clamp=10.0) == [-5.0, 10.0, 10.0]


@pytest.mark.parametrize("kind", ["k1", "k3"])
def test_the_expectation_is_the_divergence(kind: Any) -> None:
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    q = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    exact = (p * (p / q).log()).sum()
    torch.testing.assert_close((p * Kl(kind=kind)(p.log(), q.log())).sum(), exact)


def test_k2_has_the_divergence_s_gradient_and_k1_has_none() -> None:
    logits = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)

    def gradient(value: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(value, logits)[0]

    lp = logits.log_softmax(0)
    weights = lp.exp().detach()
    exact = gradient((lp.exp() * (lp - q.log())).sum())
    lp = logits.log_softmax(0)
    torch.testing.assert_close(gradient((weights * Kl(kind="k2")(lp, q.log())).sum()), exact)
    lp = logits.log_softmax(0)
    zero = gradient((weights * Kl(kind="k1")(lp, q.log())).sum())
    torch.testing.assert_close(zero, torch.zeros_like(zero))
