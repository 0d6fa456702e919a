"""The fused scores equal the ones written with torch's own parts, gradients included."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.learner.scoring import token_scores as module
from turngym.algos.learner.scoring.token_scores import token_scores


def plain(
    logits: torch.Tensor, targets: torch.Tensor, heat: float
) -> tuple[torch.Tensor, torch.Tensor]:
    logprobs = (logits / heat).log_softmax(-1)
    entropies = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.gather(-1, targets[:, None])[:, 0], entropies


@given(
    st.integers(1, 9),
    st.integers(2, 40),
    st.sampled_from([0.5, 1.0, 1.7]),
    st.integers(0, 2**20),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_scores_and_gradients(n: int, width: int, heat: float, seed: int, entropy: bool) -> None:
    made = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(n, width, generator=made, dtype=torch.float64).float()
    targets = torch.randint(width, (n,), generator=made)
    weights = torch.randn(2, n, generator=made)
    grads = []
    for score in (
        lambda x: token_scores(x, targets, heat, entropy),
        lambda x: plain(x, targets, heat),
    ):
        x = logits.clone().requires_grad_()
        logprobs, entropies = score(x)
        loss = (weights[0] * logprobs).sum()
        if entropy:
            loss = loss + (weights[1] * entropies).sum()
        loss.backward()
        grads.append((logprobs.detach(), entropies.detach(), x.grad))
    # The heat divides what is rounded, logits of up to 20, and their gradient once more.
    allowed = 2e-5 / min(1.0, heat) ** 2
    for mine, theirs in zip(*grads, strict=True):
        assert mine is not None
        assert torch.allclose(mine, theirs, atol=allowed, rtol=1e-4)


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([0, 1, 2, 3, 4, 0, 1])
    whole = token_scores(logits, targets, 1.0)
    monkeypatch.setattr(module, "CACHED_ENTRIES", 10)
    for mine, theirs in zip(token_scores(logits, targets, 1.0), whole, strict=True):
        assert torch.equal(mine, theirs)


def test_a_token_that_is_ruled_out_has_no_share() -> None:
    logits = torch.tensor([[0.0, 0.0, float("-inf")]], requires_grad=True)
    logprobs, entropies = token_scores(logits, torch.tensor([0]), 1.0)
    assert entropies.item() == pytest.approx(0.693147, abs=1e-6)
    (logprobs + entropies).sum().backward()
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([0.5, -0.5, 0.0])


def test_entropies_carry_no_gradient_unless_asked() -> None:
    logits = torch.randn(2, 4, requires_grad=True)
    _, entropies = token_scores(logits, torch.tensor([0, 1]), 1.0, entropy_gradient=False)
    assert not entropies.requires_grad
