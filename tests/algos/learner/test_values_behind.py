"""A critic of its own learns behind the policy: the same gradients, memory of one at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.grown import forest as chains
from helpers.nets import small
from helpers.path_notes import streams

from turngym.algos.core.protocols import Loss, LossBatch, LossOut
from turngym.algos.core.recipe import Recipe
from turngym.algos.learner.learner import Learner, LossNotFiniteError
from turngym.algos.learner.loss_traits import split_values
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.losses import ActorCriticLoss, Clip, Kl, PolicyLoss, ValueLoss
from turngym.algos.recipes.grpo import grpo
from turngym.algos.recipes.ppo import ppo

POLICY = PolicyLoss(clip=Clip(dual=1.5), kl=Kl(coef=0.3), entropy_coef=0.1)
BOTH = ActorCriticLoss(policy=POLICY, value=ValueLoss(coef=0.5, clip=0.2))


class AtOnce(ActorCriticLoss):
    """The same sum as one part."""

    @property
    def parts(self) -> tuple[Loss, ...]:
        return (self,)


class Doubting(ValueLoss):
    """A regression that also moves the policy, by its entropy."""

    def __call__(self, batch: LossBatch) -> LossOut:
        out = super().__call__(batch)
        return replace(out, loss=out.loss + (batch.entropies * batch.mask).sum())


class Nudged(ActorCriticLoss):
    """The sum and a term more, by somebody who knows nothing of parts."""

    def __call__(self, batch: LossBatch) -> LossOut:
        out = super().__call__(batch)
        return replace(out, loss=out.loss + (batch.logprobs * batch.mask).sum())


def recipe(loss: Loss) -> Recipe:
    made = ppo()
    optim = replace(made.optim, grad_clip=1e9, warmup_steps=0, epochs=1, minibatches=1)
    return replace(made, loss=loss, optim=optim)


def learner(loss: Loss, **how: Any) -> Learner:
    made = Learner(
        small("qwen2"),
        recipe(loss),
        pad_id=0,
        settings=LearnerSettings(**{"precision": "float32", "micro_batch_tokens": 64, **how}),
        seed=3,
    )
    assert made.critic is not None
    torch.manual_seed(1)
    torch.nn.init.normal_(made.critic.head.weight, std=0.3)
    return made


def update(made: Learner) -> dict[str, float]:
    grown = chains(seed=5)
    return made.update(grown, *streams(grown))


def gradients(made: Learner) -> list[torch.Tensor]:
    assert made.critic is not None
    return [p.grad for model in (made.policy, made.critic) for p in model.parameters()]


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_gradients_and_metrics_are_those_of_the_sum(shared: bool, checkpointing: bool) -> None:
    how = {"shared_prefix": shared, "gradient_checkpointing": checkpointing}
    one, other = learner(BOTH, **how), learner(AtOnce(policy=BOTH.policy, value=BOTH.value), **how)
    assert one.models.values_behind
    assert not other.models.values_behind
    assert update(one) == pytest.approx(update(other), rel=1e-6)
    for a, b in zip(gradients(one), gradients(other), strict=True):
        assert torch.equal(a, b)
    assert all(float(g.abs().sum()) > 0 for g in (gradients(one)[0], gradients(one)[-1]))


@pytest.mark.parametrize("behind", [True, False])
def test_the_policys_graph_is_gone_when_the_critic_begins(behind: bool) -> None:
    made = learner(BOTH if behind else AtOnce(policy=BOTH.policy, value=BOTH.value))
    assert made.critic is not None
    events = []
    made.policy.model.layers[0].register_full_backward_hook(lambda *_: events.append("policy"))
    made.critic.backbone.layers[0].register_forward_pre_hook(lambda *_: events.append("critic"))
    update(made)
    assert len(events) > 2
    assert len(events) % 2 == 0
    order = ["policy", "critic"] if behind else ["critic", "policy"]
    assert events == order * (len(events) // 2)


def test_a_shared_critic_learns_with_the_policy() -> None:
    made = Learner(
        small("qwen2"), recipe(BOTH), pad_id=0, settings=LearnerSettings(critic="shared")
    )
    assert not made.models.values_behind


def test_which_losses_are_split() -> None:
    assert split_values(BOTH) == ((BOTH.policy,), (BOTH.value,))
    doubting = ActorCriticLoss(policy=POLICY, value=Doubting())
    assert split_values(doubting) == ((doubting,), ())
    assert not learner(doubting).models.values_behind
    nudged = Nudged(policy=BOTH.policy, value=BOTH.value)
    assert split_values(nudged) == ((nudged,), ())
    assert split_values(grpo().loss) == ((grpo().loss,), ())
    assert split_values(ValueLoss()) == ((ValueLoss(),), ())


def test_values_that_are_not_finite_are_told() -> None:
    made = learner(BOTH)
    assert made.critic is not None
    with torch.no_grad():
        made.critic.head.bias.fill_(float("nan"))
    before = [p.detach().clone() for p in made.policy.parameters()]
    with pytest.raises(LossNotFiniteError, match="value"):
        update(made)
    assert all(torch.equal(a, b) for a, b in zip(before, made.policy.parameters(), strict=True))
