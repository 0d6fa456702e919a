"""Attention weights as one compiled loop, held to torch's operations."""

from __future__ import annotations

import pytest
import torch

from turngym.agents.models.causal_attention import masked_slopes, masked_softmax

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
        alone = causal_kernels.causal_softmax(scores.clone(), first, stop)
        weights, slopes = causal_kernels.causal_slopes(scores.clone(), grad.clone(), first, stop)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(alone, weights)
    wanted = masked_slopes(scores.clone(), grad, first, stop)
    close = {"rtol": 2**-7, "atol": 2**-7} if dtype == torch.bfloat16 else {}
    for mine, other in zip((weights, slopes), wanted, strict=True):
        torch.testing.assert_close(mine, other, **close)
    later = torch.arange(stop) > first + torch.arange((stop - first) * group)[:, None] // group
    assert not weights[:, later].any()
    assert not slopes[:, later].any()
    assert torch.equal(wanted[0], masked_softmax(scores.clone(), first, stop))


def test_no_number_stays_none() -> None:
    scores = torch.zeros(1, 2, 4)
    scores[0, 0, 1] = float("nan")
    assert causal_kernels.causal_softmax(scores, 2, 4)[0, 0, :3].isnan().all()
