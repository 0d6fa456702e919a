"""The output layer as one function, as on CUDA: same numbers, memory of a few pieces."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.allocations import peak_bytes
from helpers.nets import small
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from turngym.agents.models.products import wide_product
from turngym.algos.learner.scoring import scoring
from turngym.algos.learner.scoring.fused_head import (
    MAX_ENTRIES,
    MIN_ENTRIES,
    TABLES,
    HeadSettings,
    fused_head,
    piece_entries,
)
from turngym.algos.learner.scoring.scoring import TokenModel


def made(
    n: int, width: int, vocabulary: int, seed: int = 0, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draws = torch.Generator().manual_seed(seed)
    states = torch.randn(n, width, generator=draws).to(dtype).requires_grad_()
    weight = torch.randn(vocabulary, width, generator=draws).to(dtype).requires_grad_()
    targets = torch.randint(vocabulary, (n,), generator=draws)
    return states, weight, targets, torch.randn(2, n, generator=draws)


def settings_of(entries: int, heat: float = 1.0, **more: Any) -> HeadSettings:
    given = {"temperature": heat, "entropy_gradient": True, "dtype": torch.float32} | more
    return HeadSettings(entries=entries, **given)


def by_hand(states: Tensor, weight: Tensor, targets: Tensor, heat: float) -> tuple[Tensor, Tensor]:
    logprobs = ((states.double() @ weight.double().t()) / heat).log_softmax(-1)
    entropies = -(logprobs.exp() * logprobs).sum(-1)
    return logprobs.gather(-1, targets[:, None])[:, 0], entropies


@given(
    st.integers(1, 9),
    st.integers(1, 60),
    st.sampled_from([0.5, 1.0, 1.7]),
    st.integers(0, 2**20),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_numbers_and_gradients(n: int, entries: int, heat: float, seed: int, both: bool) -> None:
    states, weight, targets, mix = made(n, 6, 13, seed)
    found: list[list[Tensor]] = []
    how = settings_of(entries, heat, entropy_gradient=both)
    for score in (
        lambda: fused_head(states, weight, targets, how),
        lambda: by_hand(states, weight, targets, heat),
    ):
        logprobs, entropies = score()
        loss = mix[0].to(logprobs.dtype) @ logprobs
        if both:
            loss = loss + mix[1].to(loss.dtype) @ entropies
        grads = torch.autograd.grad(loss, [states, weight])
        found.append([logprobs.float(), entropies.float(), *grads])
    allowed = 3e-5 / min(1.0, heat) ** 2  # it divides what is rounded, and the gradient once more
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, atol=allowed, rtol=1e-4)


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_products_in_bfloat16_keep_logits_and_gradients_in_float32(weights: torch.dtype) -> None:
    states, weight, targets, mix = made(40, 32, 300, dtype=torch.float32)
    exact = by_hand(states.bfloat16(), weight.bfloat16(), targets, 1.0)
    weight = weight.detach().to(weights).requires_grad_()
    how = settings_of(7 * 300, dtype=torch.bfloat16)
    logprobs, entropies = fused_head(states, weight, targets, how)
    # what it was before: logits rounded to bfloat16
    rounded = (states.bfloat16() @ weight.bfloat16().t()).float().log_softmax(-1)
    rounded = rounded.gather(-1, targets[:, None])[:, 0]
    off = (logprobs - exact[0]).abs().max()
    assert off < 1e-4
    assert (rounded - exact[0]).abs().max() > 30 * off
    torch.testing.assert_close(entropies.double(), exact[1], atol=1e-4, rtol=1e-4)
    (mix[0] @ logprobs + mix[1] @ entropies).backward()
    assert weight.grad is not None
    assert weight.grad.dtype == weights
    plain = weight.detach().float().requires_grad_()
    one, two = by_hand(states.detach(), plain, targets, 1.0)
    (mix[0].double() @ one + mix[1].double() @ two).backward()
    assert plain.grad is not None
    assert (weight.grad.float() - plain.grad).norm() < 0.02 * plain.grad.norm()


def test_a_token_that_is_ruled_out_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    states, weight, _, _ = made(1, 2, 3)
    logits = torch.tensor([[0.0, 0.0, float("-inf")]])
    module = "turngym.algos.learner.scoring.fused_head.wide_product"
    monkeypatch.setattr(module, lambda _a, _b: logits.clone())
    logprobs, entropies = fused_head(states, weight, torch.tensor([0]), settings_of(100))
    assert entropies.item() == pytest.approx(0.693147, abs=1e-6)
    gradients = torch.autograd.grad((logprobs + entropies).sum(), [states, weight])
    slopes = torch.tensor([[0.5, -0.5, 0.0]])
    torch.testing.assert_close(gradients[0], slopes @ weight)
    torch.testing.assert_close(gradients[1], slopes.t() @ states)
    assert fused_head(states, weight, torch.tensor([2]), settings_of(100))[0].item() == -torch.inf


def test_broken_weights_are_not_hidden() -> None:
    states, weight, targets, _ = made(3, 4, 5)
    broken = weight.detach().clone()
    broken[1] = float("nan")
    logprobs, _ = fused_head(states.detach(), broken, targets, settings_of(100))
    assert logprobs.isnan().all()


def test_entropies_carry_no_gradient_unless_asked() -> None:
    states, weight, targets, _ = made(3, 4, 5)
    how = settings_of(100, entropy_gradient=False)
    assert not fused_head(states, weight, targets, how)[1].requires_grad


# ---------------------------------------------------------------- memory

WIDTH, VOCABULARY, PIECE = 64, 4096, 16
TABLE = 4 * VOCABULARY * PIECE  # bytes
GRADIENT = 4 * VOCABULARY * WIDTH


def trained(n: int, entries: int) -> int:
    """Return the peak of a forward and backward pass."""
    states, weight, targets, mix = made(n, WIDTH, VOCABULARY)

    def work() -> None:
        logprobs, entropies = fused_head(states, weight, targets, settings_of(entries))
        (mix[0] @ logprobs + mix[1] @ entropies).backward()

    return peak_bytes(work)


def test_memory_is_that_of_a_few_pieces_whatever_the_number_of_tokens() -> None:
    peaks = {n: trained(n, PIECE * VOCABULARY) for n in (PIECE, 8 * PIECE, 32 * PIECE)}
    for n, peak in peaks.items():
        vectors = 4 * n * (2 * WIDTH + 8)  # gradients of states, a piece of them, sums
        assert GRADIENT <= peak <= GRADIENT + TABLES * TABLE + vectors
    # more tokens cost their own states and sums, and no other table
    assert peaks[32 * PIECE] - peaks[PIECE] < 31 * 4 * PIECE * (2 * WIDTH + 8)


@pytest.mark.parametrize("factor", [1, 4])
def test_a_larger_piece_costs_its_own_tables_only(factor: int) -> None:
    n = 16 * PIECE
    vectors = 4 * n * (2 * WIDTH + 8)
    assert trained(n, factor * PIECE * VOCABULARY) <= GRADIENT + TABLES * TABLE * factor + vectors


def test_the_way_by_pieces_has_another_gradient_of_the_weights_for_each() -> None:
    """What it was before: autograd adds up one gradient as large as the weights per piece."""
    states, weight, targets, mix = made(8 * PIECE, WIDTH, VOCABULARY)

    def piece(part: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        return scoring.token_scores(part @ weight.t(), wanted, 1.0)

    def work() -> None:
        parts = [
            checkpoint(piece, s, t, use_reentrant=False)
            for s, t in zip(states.split(PIECE), targets.split(PIECE), strict=True)
        ]
        logprobs, entropies = (torch.cat([p[i] for p in parts]) for i in (0, 1))
        (mix[0] @ logprobs + mix[1] @ entropies).backward()

    assert peak_bytes(work) > trained(8 * PIECE, PIECE * VOCABULARY) + 0.9 * GRADIENT


def test_pieces_are_sized_by_a_device_s_memory() -> None:
    assert piece_entries(80 * 10**9) == MAX_ENTRIES
    assert MIN_ENTRIES < piece_entries(24 * 10**9) < MAX_ENTRIES
    assert piece_entries(2 * 10**9) == MIN_ENTRIES


# ---------------------------------------------------------------- in the learner


def test_the_learner_s_scores_stay_and_its_head_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    from turngym.algos.learner.batching.micro_batch import MicroBatch
    from turngym.algos.learner.batching.rows import Row

    at = torch.arange(3, 25).numpy()
    ids = torch.randint(320, (25,), generator=torch.Generator().manual_seed(0)).numpy()
    row = Row(ids, at, at * 0, at.astype("float32"), torch.arange(25).numpy())
    batch = MicroBatch.padded([row], 0, torch.device("cpu"))
    found: list[list[Tensor]] = []
    uses: list[int] = []
    real = scoring.fused_head

    def spy(*given: Any) -> tuple[Tensor, Tensor]:
        uses.append(1)
        return real(*given)

    monkeypatch.setattr(scoring, "fused_head", spy)
    for fused in (False, True):
        net = small("qwen2")
        tokens = TokenModel(net, 0.7)
        assert not tokens.fused  # on a CPU
        tokens.fused = fused
        logprobs, entropies = tokens.score(batch)
        (logprobs.sum() + 0.3 * entropies.sum()).backward()
        found.append([logprobs, entropies, *(p.grad for p in net.parameters())])  # type: ignore[list-item]
    assert uses == [1]
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, atol=2e-5, rtol=1e-4)


def test_a_wide_product_is_not_rounded() -> None:
    draws = torch.Generator().manual_seed(0)
    a, b = torch.randn(5, 64, generator=draws), torch.randn(7, 64, generator=draws)
    torch.testing.assert_close(wide_product(a, b), a @ b.t())
    half = wide_product(a.bfloat16(), b.bfloat16())
    assert half.dtype == torch.float32
    exact = a.bfloat16().double() @ b.bfloat16().double().t()
    assert (half - exact).abs().max() < 1e-5
    assert ((a.bfloat16() @ b.bfloat16().t()).double() - exact).abs().max() > 1e-3


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numbers_and_gradients_on_a_gpu_equal_those_of_a_cpu(dtype: torch.dtype) -> None:
    found: list[list[Tensor]] = []
    for device in ("cpu", "cuda"):
        states, weight, targets, mix = (x.detach().to(device) for x in made(300, 64, 5000))
        states.requires_grad_()
        weight.requires_grad_()
        how = settings_of(70 * 5000, dtype=dtype)
        logprobs, entropies = fused_head(states, weight, targets, how)
        (mix[0] @ logprobs + mix[1] @ entropies).backward()
        grads = (states.grad, weight.grad)
        found.append([logprobs.cpu(), entropies.cpu(), *(g.cpu() for g in grads if g is not None)])
    for here, there in zip(*found, strict=True):
        exact = dtype == torch.float32
        torch.testing.assert_close(there, here, atol=1e-3 if exact else 0.05, rtol=1e-3)
