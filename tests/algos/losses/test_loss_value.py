"""The critic's loss: worked numbers, micro batches, the sum with the policy's."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.loss_batches import batch

from turngym.algos.core.protocols import Norm
from turngym.algos.losses import ActorCriticLoss, Kl, PolicyLoss, ValueLoss
from turngym.envs.core.errors import BadValueError


def one(value: float, target: float, old: float, **norm: Any) -> Any:
    return batch(
        [[0.0]], [[0.0]], values=[[value]], value_targets=[[target]], old_values=[[old]], **norm
    )


@pytest.mark.parametrize(
    ("value", "target", "old", "loss", "gradient"),
    [
        (1.4, 1.0, 0.2, 0.08, 0.4),
        (0.4, 1.0, 0.2, 0.18, -0.6),
        (1.0, 1.0, 0.2, 0.045, 0.0),  # the clipped branch wins although the value is perfect
    ],
)
def test_e19(value: float, target: float, old: float, loss: float, gradient: float) -> None:
    b = one(value, target, old)
    out = ValueLoss(clip=0.5)(b)
    assert out.loss.item() == pytest.approx(loss)
    out.loss.backward()
    assert float(b.extra["values"].grad[0, 0]) == pytest.approx(gradient)
    assert float(out.metrics["value_clip_frac"]) == (value == 1.0)


def test_without_a_clip_it_is_half_the_squared_error() -> None:
    loss = ValueLoss(clip=None, coef=0.5)
    assert loss.needs == {"values", "value_targets"}
    out = loss(one(1.0, 3.0, -9.0))
    assert out.loss.item() == pytest.approx(1.0)
    assert float(out.metrics["value"]) == pytest.approx(2.0)


def test_micro_batches_add_up() -> None:
    rows: dict[str, Any] = {
        "values": [[0.1, 0.9], [0.3]],
        "value_targets": [[1.0, 1.0], [0.0]],
        "old_values": [[0.0, 0.2], [0.9]],
    }
    whole = ValueLoss()(batch([[0.0, 0.0], [0.0]], [[0.0, 0.0], [0.0]], **rows))
    total = 0.0
    for i, n in enumerate((2, 1)):
        part = {k: v[i : i + 1] for k, v in rows.items()}
        total += ValueLoss()(
            batch([[0.0] * n], [[0.0] * n], norm=Norm.of([2, 1]), **part)
        ).loss.item()
    assert total == pytest.approx(whole.loss.item())


def test_actor_and_critic_are_summed() -> None:
    both = ActorCriticLoss(policy=PolicyLoss(kl=Kl(coef=0.1)))
    assert both.needs == {"ref_logprobs", "values", "old_values", "value_targets"}
    b = batch(
        [[0.1]],
        [[2.0]],
        values=[[0.4]],
        value_targets=[[1.0]],
        old_values=[[0.2]],
        ref_logprobs=[[-1.0]],
    )
    out, policy, value = both(b), both.policy(b), both.value(b)
    assert out.loss.item() == pytest.approx(policy.loss.item() + value.loss.item())
    assert set(out.metrics) == set(policy.metrics) | set(value.metrics)


@pytest.mark.parametrize("bad", [{"coef": 0.0}, {"clip": 0.0}])
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadValueError, match="expected"):
        ValueLoss(**bad)
