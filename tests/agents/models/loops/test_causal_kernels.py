"""Attention weights as one compiled loop, held to torch's operations."""

from __future__ import annotations

import pytest
import torch

from turngym.agents.models.causal_attention import Slopes, masked_slopes, masked_softmax

causal_kernels = pytest.importorskip("turngym.agents.models.loops.causal_kernels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_and_slopes_are_those_of_torch(dtype: torch.dtype, threads: int) -> None:
    rng = torch.Generator().manual_seed(0)
    first, stop, group = 37, 97, 3
    scores, grad = (
        torch.randn(2, (stop - first) * group, stop, generator=rng).mul(4).to(dtype)
        for _ in range(2)
    )
    scores[0, 5, :20] = float("-inf")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        alone, sums = causal_kernels.causal_softmax(scores.clone(), first, stop)
        weights, slopes = causal_kernels.causal_slopes(
            scores.clone(), grad.clone(), sums, first, stop
        )
    finally:
        torch.set_num_threads(before)
    wanted = masked_slopes(scores.clone(), grad, sums, first, stop)
    close = {"rtol": 2**-7, "atol": 2**-7} if dtype == torch.bfloat16 else {}
    for mine, other in zip((weights, slopes), wanted, strict=True):
        torch.testing.assert_close(mine, other, **close)
    later = torch.arange(stop) > first + torch.arange((stop - first) * group)[:, None] // group
    assert not weights[:, later].any()
    assert not slopes[:, later].any()
    torch.testing.assert_close(alone, weights, **close)
    plain = masked_softmax(scores.clone(), first, stop)
    torch.testing.assert_close((alone, sums), plain, **close)


@pytest.mark.parametrize("kernels", [causal_kernels.causal_slopes, masked_slopes])
def test_slopes_are_those_of_automatic_differentiation(kernels: Slopes) -> None:
    rng = torch.Generator().manual_seed(0)
    first, stop, group = 5, 12, 2
    scores = torch.randn(3, (stop - first) * group, stop, generator=rng, dtype=torch.float64)
    later = torch.arange(stop) > first + torch.arange((stop - first) * group)[:, None] // group
    wanted = scores.masked_fill(later, float("-inf")).requires_grad_()
    grad = torch.randn(scores.shape, generator=rng, dtype=torch.float64)
    weights = wanted.softmax(-1)
    weights.backward(grad)
    sums = wanted.detach().logsumexp(-1).float()
    _, slopes = kernels(scores.float(), grad.float(), sums, first, stop)
    assert wanted.grad is not None
    torch.testing.assert_close(slopes, wanted.grad.float(), rtol=1e-4, atol=1e-6)


def test_no_number_stays_none() -> None:
    scores = torch.zeros(1, 2, 4)
    scores[0, 0, 1] = float("nan")
    assert causal_kernels.causal_softmax(scores, 2, 4)[0][0, 0, :3].isnan().all()
