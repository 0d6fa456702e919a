"""Losses of imitation and of preferences between steps, and ratios of whole paths."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.loss_batches import batch
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.protocols import Norm
from turngym.algos.credit import GroupCredit
from turngym.algos.learner.loss_traits import silent_without_advantage
from turngym.algos.losses import (
    ActorCriticLoss,
    Clip,
    ImitationLoss,
    PathMeanTokenMean,
    PolicyLoss,
    StepDpoLoss,
    TokenMean,
    ValueLoss,
)
from turngym.envs.core.errors import BadValueError


def grads(loss: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(loss, of, retain_graph=True)[0]


def test_imitation_is_the_likelihood_of_what_was_shown() -> None:
    made = batch([[0.2, -0.4], [0.1]], [[1, 1], [1]])
    out = ImitationLoss()(made)
    assert out.loss.item() == pytest.approx(-(-0.8 - 1.4 - 0.9) / 3)
    got = grads(out.loss, made.logprobs).flatten().tolist()
    assert got == pytest.approx([-1 / 3, -1 / 3, -1 / 3, 0])
    assert silent_without_advantage(ImitationLoss())


def test_the_true_ratio_of_a_path_is_the_product_of_its_tokens() -> None:
    made = batch([[0.1, 0.2], [-0.3]], [[1, 1], [-1]])
    free = PolicyLoss(
        ratio="sequence-sum", clip=Clip(low=0.9, high=9), aggregate=PathMeanTokenMean()
    )
    out = free(made)
    first, second = math.exp(0.3), math.exp(-0.3)
    assert out.loss.item() == pytest.approx((-first + second) / 2)
    # the mean over two paths of -A exp(sum): every token carries its path's whole ratio
    got = grads(out.loss, made.logprobs)
    assert got[0].tolist() == pytest.approx([-first / 2, -first / 2])
    assert got[1].tolist() == pytest.approx([second / 2, 0])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 99))
def test_the_gradient_of_a_path_s_ratio_is_that_of_the_objective_as_written(
    lengths: list[int], seed: int
) -> None:
    """RLOO: mean over paths of ``-A exp(sum(logprob - old))``, clipped, with the sum in the graph.

    A log-ratio of 0 makes it REINFORCE: every token gets ``-A / paths``, however long the path.
    """
    rng = np.random.default_rng(seed)
    gaps = [(0.2 * rng.normal(size=n)).tolist() for n in lengths]
    gains = rng.normal(size=len(lengths))
    made = batch(gaps, [[a] * n for a, n in zip(gains, lengths, strict=True)])
    rule = PolicyLoss(
        ratio="sequence-sum", clip=Clip(low=0.2, high=0.2), aggregate=PathMeanTokenMean()
    )
    written = []
    for i, n in enumerate(lengths):
        ratio = (made.logprobs[i, :n] - made.old_logprobs[i, :n]).sum().exp()
        bounded = torch.maximum(-gains[i] * ratio, -gains[i] * ratio.clamp(0.8, 1.2))
        written.append(bounded)
    objective = torch.stack(written).mean()
    out = rule(made)
    assert out.loss.item() == pytest.approx(objective.item())
    torch.testing.assert_close(grads(out.loss, made.logprobs), grads(objective, made.logprobs))


def test_at_the_first_step_a_path_s_ratio_is_plain_reinforce() -> None:
    made = batch([[0.0, 0.0, 0.0], [0.0]], [[0.5] * 3, [-2.0]])
    rule = PolicyLoss(ratio="sequence-sum", aggregate=PathMeanTokenMean())
    got = grads(rule(made).loss, made.logprobs)
    assert got.tolist() == [[-0.25] * 3, [1.0, 0, 0]]


def pair(gaps: list[list[float]], signs: list[list[float]], ids: list[list[float]], **norm: float):
    zeros = [[-1.0] * len(g) for g in gaps]
    tokens = float(sum(map(len, gaps)))
    counts = Norm(tokens=tokens, paths=float(len(gaps)), pairs=norm.get("pairs", 1.0))
    return batch(gaps, signs, ref_logprobs=zeros, pair=ids, norm=counts)


def test_a_pair_is_compared_by_the_sums_over_its_steps() -> None:
    made = pair([[0.5, 0.1], [0.2, 0.3]], [[1, 0], [-1, -1]], [[0, -1], [0, 0]])
    out = StepDpoLoss(beta=2.0)(made)
    margin = 0.5 - (0.2 + 0.3)
    assert out.loss.item() == pytest.approx(math.log1p(math.exp(-2 * margin)))
    push = 2.0 / (1 + math.exp(2 * margin))
    assert grads(out.loss, made.logprobs).flatten().tolist() == pytest.approx(
        [-push, 0, push, push]
    )


def test_micro_batches_of_pairs_add_up() -> None:
    gaps, signs = [[0.5], [0.2], [0.1], [-0.4]], [[1.0], [-1.0], [1.0], [-1.0]]
    whole = StepDpoLoss()(pair(gaps, signs, [[0], [0], [5], [5]], pairs=2.0))
    parts = [
        StepDpoLoss()(pair(gaps[i : i + 2], signs[i : i + 2], [[i], [i]], pairs=2.0))
        for i in (0, 2)
    ]
    assert whole.loss.item() == pytest.approx(sum(p.loss.item() for p in parts))


def test_without_a_reference_the_policy_alone_is_compared() -> None:
    made = pair([[0.5], [0.2]], [[1], [-1]], [[0], [0]])
    alone = StepDpoLoss(beta=1.0, reference=False)
    assert alone.needs == {"pair"}
    assert alone(made).loss.item() == pytest.approx(math.log1p(math.exp(-0.3)))


def test_no_pair_is_no_gradient() -> None:
    made = pair([[0.5], [0.2]], [[0], [0]], [[-1], [-1]], pairs=0.0)
    out = StepDpoLoss()(made)
    assert out.loss.item() == 0
    assert not grads(out.loss, made.logprobs).any()
    assert silent_without_advantage(StepDpoLoss())


@given(st.floats(0.02, 0.98))
def test_intra_tree_grpo_and_step_dpo_push_the_same_way_with_two_weights(p: float) -> None:
    """E9: a fork whose better side has probability p; the direction is grad log p - grad log q."""
    logit = torch.tensor(math.log(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    log_p, log_q = torch.nn.functional.logsigmoid(logit), torch.nn.functional.logsigmoid(-logit)
    direction = float(grads(log_p - log_q, logit))

    # the expected gradient of GRPO without deviation: the group is exactly the fork's continuations
    expected = p * (1 - p) * log_p - (1 - p) * p * log_q  # sum over sides of mass * advantage
    grpo = float(torch.autograd.grad(expected, logit, retain_graph=True)[0])
    assert grpo / direction == pytest.approx(p * (1 - p))
    deviation = math.sqrt(p * (1 - p))
    assert grpo / deviation / direction == pytest.approx(math.sqrt(p * (1 - p)))

    beta = 0.7
    loss = torch.nn.functional.softplus(-beta * (log_p - log_q))
    dpo = -float(torch.autograd.grad(loss, logit)[0])
    weight = beta * (1 - p) ** beta / (p**beta + (1 - p) ** beta)
    assert dpo / direction == pytest.approx(weight)
    assert math.copysign(1, dpo) == math.copysign(1, grpo)


@pytest.mark.parametrize(
    ("p", "grpo", "scaled", "dpo_low", "dpo_high"),
    [(0.25, 0.1875, 0.433013, 0.052744, 0.75), (0.9, 0.09, 0.3, 0.044529, 0.1)],
)
def test_the_two_weights_in_numbers(
    p: float, grpo: float, scaled: float, dpo_low: float, dpo_high: float
) -> None:
    """E9, through the code: a group of many continuations, and the loss of one pair."""
    n = 4000
    wins = round(p * n)
    returns = np.array([1.0] * wins + [0.0] * (n - wins))
    for scale, weight in (("none", grpo), ("std", scaled)):
        got = GroupCredit(scale=scale).compare(returns)  # type: ignore[arg-type]
        assert wins / n * got[0] == pytest.approx(weight, rel=1e-3)
        assert (n - wins) / n * got[-1] == pytest.approx(-weight, rel=1e-3)
    for beta, weight in ((0.1, dpo_low), (1.0, dpo_high)):
        made = pair([[1 + math.log(p)], [1 + math.log(1 - p)]], [[1], [-1]], [[0], [0]])
        out = StepDpoLoss(beta=beta, reference=False)(made)
        assert grads(out.loss, made.logprobs).flatten().tolist() == pytest.approx(
            [-weight, weight], abs=1e-6
        )


def test_pasa_s_losses() -> None:
    """Example 7: policy and value, weight 10 with the half, and the critic alone."""
    gaps = [[0.3, -0.1, 0.5]]
    extra = {"values": [[1.0, 0.2, 0.5]], "old_values": [[0.6, 0.3, 0.5]]}
    made = batch(gaps, [[1.2, -0.8, 0.3]], value_targets=[[1.5, -0.4, 0.55]], **extra)
    policy = PolicyLoss(clip=Clip(low=0.2, high=0.2), aggregate=TokenMean())
    value = ValueLoss(coef=10.0, clip=0.2)
    assert policy(made).loss.item() == pytest.approx(-0.35871, abs=1e-6)
    assert value(made).loss.item() / 10 == pytest.approx(0.142083, abs=1e-6)
    both = ActorCriticLoss(policy=policy, value=value)(made)
    assert both.loss.item() == pytest.approx(1.062123, abs=1e-5)
    assert value(made).loss.item() == pytest.approx(1.420833, abs=1e-5)


def test_beta_is_checked() -> None:
    for bad in (0.0, -1.0, math.inf):
        with pytest.raises(BadValueError):
            StepDpoLoss(beta=bad)
