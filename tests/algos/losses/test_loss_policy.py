"""The clipped loss: worked numbers, gradients, ratio levels, micro batches."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from helpers.loss_batches import batch
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.protocols import Norm
from turngym.algos.losses import (
    Clip,
    DppoLoss,
    ImitationLoss,
    Kl,
    MaskedLoss,
    PathMeanConstant,
    PathMeanTokenMean,
    PathMeanTokenSum,
    PolicyLoss,
    RefKlLoss,
    TokenMean,
    ValueLoss,
    ratio_at,
)
from turngym.envs.core.errors import BadValueError

AGGREGATES = (TokenMean(), PathMeanTokenMean(), PathMeanTokenSum(), PathMeanConstant(length=8))


@pytest.mark.parametrize(
    ("ratio", "advantage", "high", "loss", "gradient"),
    [
        (1.5, 1.0, 0.2, -1.2, 0.0),
        (1.5, 1.0, 0.28, -1.28, 0.0),
        (0.5, 1.0, 0.2, -0.5, -0.5),
        (0.5, -1.0, 0.2, 0.8, 0.0),
        (1.5, -1.0, 0.2, 1.5, 1.5),
        (5.0, -1.0, 0.2, 3.0, 0.0),
        (1.0, -2.0, 0.2, 2.0, 2.0),
    ],
)
def test_e15_dual_clip(
    ratio: float, advantage: float, high: float, loss: float, gradient: float
) -> None:
    b = batch([[math.log(ratio)]], [[advantage]])
    out = PolicyLoss(clip=Clip(high=high, dual=3.0))(b)
    assert out.loss.item() == pytest.approx(loss)
    out.loss.backward()
    assert float(b.logprobs.grad[0, 0]) == pytest.approx(gradient)  # pyright: ignore
    assert float(out.metrics["clip_frac"]) == (gradient == 0.0)


def test_without_dual_clip_a_bad_token_may_cost_anything() -> None:
    out = PolicyLoss()(batch([[math.log(5.0)]], [[-1.0]]))
    assert out.loss.item() == pytest.approx(5.0)


def test_e14_gspo() -> None:
    ratios = [0.002, -0.001, 0.0005, 0.0009]
    gspo = PolicyLoss(
        ratio="sequence", clip=Clip(low=3e-4, high=4e-4), aggregate=PathMeanTokenMean()
    )
    for rows, advantage, loss, gradient in (
        (ratios, 1.0, -1.0004, 0.0),
        (ratios, -1.0, 1.000600, 0.250150),
        ([-r for r in ratios], 1.0, -0.999400, -0.249850),
        ([-r for r in ratios], -1.0, 0.9997, 0.0),
    ):
        b = batch([rows], [[advantage] * 4])
        out = gspo(b)
        assert out.loss.item() == pytest.approx(loss, abs=1e-6)
        out.loss.backward()
        assert b.logprobs.grad[0].tolist() == pytest.approx([gradient] * 4, abs=1e-6)  # pyright: ignore


def test_the_sequence_ratio_has_the_gradient_of_the_geometric_mean() -> None:
    """Written out as in the paper, with the mean inside the graph."""
    rows, advantages = [[0.01, -0.03, 0.02], [0.04, 0.0]], [[0.7] * 3, [-1.3] * 2]
    b = batch(rows, advantages)
    wide = PolicyLoss(ratio="sequence", clip=Clip(low=0.5, high=0.5), aggregate=PathMeanTokenMean())
    wide(b).loss.backward()
    again = batch(rows, advantages)
    losses = []
    for i, row in enumerate(rows):
        n = len(row)
        s = (again.logprobs[i, :n] - again.old_logprobs[i, :n]).mean().exp()
        losses.append(-advantages[i][0] * s)
    torch.stack(losses).mean().backward()
    torch.testing.assert_close(b.logprobs.grad, again.logprobs.grad)


def test_e28_turn_level_ratio() -> None:
    b = batch([[0.1, 0.3, -0.2, -0.4]], [[1.0] * 4], turns=[[0, 0, 1, 1]])
    assert ratio_at("turn", b)[0].tolist() == pytest.approx(
        [1.221403, 1.221403, 0.740818, 0.740818], abs=1e-6
    )


def test_levels_agree_where_units_are_single_tokens() -> None:
    rows = [[0.1, -0.2, 0.3], [0.5]]
    b = batch(rows, [[1.0] * 3, [1.0]], turns=[[0, 1, 2], [0]])
    torch.testing.assert_close(ratio_at("turn", b) * b.mask, ratio_at("token", b) * b.mask)
    one = batch([[0.1, 0.5]], [[1.0, 1.0]])
    torch.testing.assert_close(ratio_at("turn", one), ratio_at("sequence", one))


def test_a_wild_log_ratio_stays_finite() -> None:
    b = batch([[1000.0, -1000.0]], [[-1.0, 1.0]])
    out = PolicyLoss()(b)
    out.loss.backward()
    assert math.isfinite(out.loss.item())
    assert bool(torch.isfinite(b.logprobs.grad).all())  # pyright: ignore


def test_e13_aggregation() -> None:
    b = batch([[0.0] * 2, [0.0] * 6], [[0.0] * 2, [0.0] * 6])
    losses = torch.tensor([[1.0, 3.0, 9, 9, 9, 9], [1.0] * 6], dtype=torch.float64)
    got = [float(a(losses, b.mask, b.norm)) for a in AGGREGATES]
    assert got == pytest.approx([1.25, 1.5, 5.0, 0.625])


def test_e13b_micro_batches_add_up_to_the_mini_batch() -> None:
    losses = torch.tensor([[1.0, 3.0, 0, 0, 0, 0], [1.0] * 6], dtype=torch.float64)
    mask = torch.tensor([[1.0] * 2 + [0.0] * 4, [1.0] * 6], dtype=torch.float64)
    norm = Norm.of([2, 6])
    parts = [float(TokenMean()(losses[i : i + 1], mask[i : i + 1], norm)) for i in range(2)]
    assert sum(parts) == pytest.approx(1.25)


def test_a_path_without_a_trained_token_counts_nowhere() -> None:
    assert Norm.of([2, 0, 6]) == Norm(tokens=8.0, paths=2.0)
    losses = torch.ones(2, 3, dtype=torch.float64)
    mask = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    norm = Norm.of(mask.sum(1).tolist())
    assert float(PathMeanTokenMean()(losses, mask, norm)) == pytest.approx(1.0)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.sampled_from(AGGREGATES),
    st.sampled_from(["token", "turn", "sequence", "sequence-sum"]),
    st.integers(0, 99),
)
def test_one_micro_batch_is_many(lengths: list[int], aggregate: Any, level: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def draw(scale: float) -> list[list[float]]:
        return [(scale * rng.normal(size=n)).tolist() for n in lengths]

    ratios, advantages, refs = draw(0.3), draw(1.0), draw(1.0)
    entropies = [[abs(x) for x in row] for row in draw(1.0)]
    turns = [sorted(rng.integers(0, 3, size=n).tolist()) for n in lengths]
    loss = PolicyLoss(
        ratio=level, aggregate=aggregate, kl=Kl(coef=0.1), entropy_coef=0.05, clip=Clip(dual=3.0)
    )

    def parts(cut: slice) -> tuple[Any, Any, Any]:
        b = batch(
            ratios[cut],
            advantages[cut],
            turns=turns[cut],
            norm=Norm.of(lengths),
            entropies=entropies[cut],
            ref_logprobs=refs[cut],
        )
        out = loss(b)
        out.loss.backward()
        grads = [
            row[: len(r)].tolist()
            for row, r in zip(b.logprobs.grad, ratios[cut], strict=True)  # pyright: ignore
        ]
        return out.loss.item(), grads, {k: float(v) for k, v in out.metrics.items()}

    whole, grads, metrics = parts(slice(None))
    pieces = [parts(slice(i, i + 1)) for i in range(len(lengths))]
    assert sum(p[0] for p in pieces) == pytest.approx(whole)
    for mine, theirs in zip(grads, [p[1][0] for p in pieces], strict=True):
        assert mine == pytest.approx(theirs)
    for key, value in metrics.items():
        assert sum(p[2][key] for p in pieces) == pytest.approx(value)


def test_the_parts_are_named_and_weighted() -> None:
    b = batch([[0.0, 0.0]], [[1.0, 3.0]], entropies=[[0.5, 1.5]], ref_logprobs=[[-1.5, -1.0]])
    out = PolicyLoss(kl=Kl(coef=0.5, kind="k2"), entropy_coef=0.25)(b)
    assert out.loss.item() == pytest.approx(-2.0 + 0.5 * 0.0625 - 0.25 * 1.0)
    named = {k: float(v) for k, v in out.metrics.items()}
    assert named == pytest.approx(
        {
            "policy": -2.0,
            "kl_nats": 0.0625,
            "entropy_nats": 1.0,
            "clip_frac": 0.0,
            "approx_kl_nats": 0.0,
            "ratio_mean": 1.0,
            "ratio_sq_dev": 0.0,
        }
    )


def test_metrics_of_a_policy_that_moved() -> None:
    out = PolicyLoss()(batch([[math.log(1.5), math.log(0.9)]], [[1.0, 1.0]]))
    assert float(out.metrics["clip_frac"]) == 0.5
    assert float(out.metrics["ratio_mean"]) == pytest.approx(1.2)
    assert float(out.metrics["ratio_sq_dev"]) == pytest.approx((0.25 + 0.01) / 2)
    expected = (0.5 - math.log(1.5) - 0.1 - math.log(0.9)) / 2
    assert float(out.metrics["approx_kl_nats"]) == pytest.approx(expected)


def test_on_policy_it_is_the_policy_gradient() -> None:
    b = batch([[0.0, 0.0, 0.0]], [[1.0, -2.0, 0.5]])
    PolicyLoss()(b).loss.backward()
    assert b.logprobs.grad[0].tolist() == pytest.approx([-1 / 3, 2 / 3, -0.5 / 3])  # pyright: ignore


def test_needs_follow_the_settings() -> None:
    assert PolicyLoss().needs == frozenset()
    assert PolicyLoss(kl=Kl(coef=0.1)).needs == {"ref_logprobs"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Kl(clamp="10"), "Kl.clamp is '10'; expected a number"),  # type: ignore[arg-type]
        (lambda: MaskedLoss(delta="0.2"), "MaskedLoss.delta is '0.2'; expected a number"),  # type: ignore[arg-type]
        (lambda: ValueLoss(clip="0.5"), "ValueLoss.clip is '0.5'; expected a number"),  # type: ignore[arg-type]
        (lambda: MaskedLoss(of="grpo"), "MaskedLoss.of is 'grpo'; expected a PolicyLoss"),  # type: ignore[arg-type]
        *(
            (partial(loss, aggregate="mean"), f"{loss.__name__}.aggregate is 'mean'; expected a")
            for loss in (PolicyLoss, DppoLoss, ImitationLoss, RefKlLoss)
        ),
    ],
)
def test_settings_of_another_kind_are_refused_by_name(make: Any, said: str) -> None:
    with pytest.raises(BadValueError, match=said):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Clip(low=0.0),
        lambda: Clip(low=1.5),
        lambda: Clip(high=0.0),
        lambda: Clip(dual=1.0),
        lambda: PathMeanConstant(length=0),
        lambda: Kl(coef=-1.0),
        lambda: Kl(kind="k4"),  # type: ignore[arg-type]
        lambda: PolicyLoss(ratio="path"),  # type: ignore[arg-type]
        lambda: Kl(clamp=0.0),
        lambda: PolicyLoss(entropy_coef=float("nan")),
    ],
)
def test_settings_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(BadValueError, match="expected"):
        make()
