"""The law of shared prefixes: every number equals that of separate padded rows."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.grown import forest as chains
from helpers.nets import FAMILIES, gemma3, small
from helpers.path_notes import streams
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Credit, Credits, Loss, LossBatch, LossOut
from turngym.algos.core.recipe import Recipe
from turngym.algos.credit import Gae, StepPairs
from turngym.algos.learner.batching import micro_batch
from turngym.algos.learner.batching.micro_batch import MicroBatch, round_up
from turngym.algos.learner.batching.rows import distinct_tokens, rows_of
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.losses import (
    ActorCriticLoss,
    Aggregate,
    Clip,
    Kl,
    PathMeanConstant,
    PathMeanTokenMean,
    PathMeanTokenSum,
    PolicyLoss,
    StepDpoLoss,
    TokenMean,
    ValueLoss,
)
from turngym.algos.recipes.grpo import grpo
from turngym.algos.recipes.ppo import ppo
from turngym.algos.rollouts import Expand
from turngym.envs.core.errors import BadValueError


@pytest.fixture(scope="module", autouse=True)
def pack_always() -> Any:
    """However little there is to share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turngym.algos.learner.batching.micro_batch.SHARE_BELOW", np.inf)
        yield


def everything() -> Recipe:
    """Clip, KL, entropy and critic at once; the gradient stays as it is."""
    recipe = ppo()
    policy = PolicyLoss(clip=Clip(dual=1.5), kl=Kl(coef=0.3), entropy_coef=0.1)
    return replace(
        recipe,
        credit=Gae(),
        loss=ActorCriticLoss(policy=policy, value=ValueLoss(coef=0.5, clip=0.2)),
        optim=replace(recipe.optim, grad_clip=1e9, warmup_steps=0, epochs=1, minibatches=1),
    )


def policy_only() -> Recipe:
    recipe = grpo()
    return replace(
        recipe,
        loss=PolicyLoss(kl=Kl(coef=0.0)),
        optim=replace(recipe.optim, lr=1e-2, grad_clip=1e9, warmup_steps=0, minibatches=1),
    )


def learner(recipe: Recipe, *, family: str = "qwen2", net: Any = None, **how: Any) -> Learner:
    made = Learner(
        net or small(family),
        recipe,
        pad_id=0,
        settings=LearnerSettings(**{"precision": "float32", **how}),
        seed=3,
    )
    if made.critic is not None:  # it starts at 0, which would hide what it reads
        torch.manual_seed(1)
        torch.nn.init.normal_(made.critic.head.weight, std=0.3)
    return made


def gradients(made: Learner) -> torch.Tensor:
    owners = [made.policy] if made.critic is None else [made.policy, made.critic]
    return torch.cat([p.grad.flatten() for m in owners for p in m.parameters()])


def assert_same_update(one: Learner, other: Learner, forest: Forest, seed: int = 0) -> None:
    annotations, credits = streams(forest, seed)
    rows = [made.update(forest, annotations, credits) for made in (one, other)]
    a, b = gradients(one), gradients(other)
    assert float(a.norm()) > 0
    assert float((a - b).norm()) <= 1e-5 * float(a.norm())
    for key, value in rows[0].items():
        assert value == pytest.approx(rows[1][key], rel=2e-5, abs=2e-6), key
    if "loss/clip_frac" in rows[0] and sum(1 for _ in forest) > 2:  # two paths may need no clip
        assert rows[0]["loss/clip_frac"] > 0


# ---------------------------------------------------------------- equal to padded rows


@pytest.mark.parametrize("critic", ["own", "shared"])
@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients(family: str, critic: Any) -> None:
    forest = branching(5)
    rows = rows_of(forest)
    assert distinct_tokens(rows) < 0.7 * sum(len(r.ids) for r in rows)
    one, other = (
        learner(everything(), family=family, critic=critic, shared_prefix=shared)
        for shared in (True, False)
    )
    assert_same_update(one, other, forest)


@pytest.mark.parametrize("critic", ["own", "shared"])
def test_a_model_that_is_run_whole_for_its_logits_may_have_a_critic(critic: Any) -> None:
    one, whole = (learner(everything(), family="llama", critic=critic) for _ in range(2))
    whole.models.tokens.separable = False  # as of one that scales or caps its logits
    assert_same_update(one, whole, branching(5))


@pytest.mark.parametrize("critic", ["own", "shared"])
def test_loss_and_gradients_of_paths_that_went_the_same_way(critic: Any) -> None:
    chosen = chains(seed=2, groups=2, chains=2)
    twice = Forest.of([replace(g, trees=g.trees * 3) for g in chosen.groups])
    tokens = [distinct_tokens(rows_of(forest)) for forest in (chosen, twice)]
    assert tokens[0] == tokens[1]
    one, other = (
        learner(everything(), critic=critic, shared_prefix=shared) for shared in (True, False)
    )
    assert_same_update(one, other, twice)  # every path with numbers of its own


@pytest.mark.parametrize("window", [8, 500])
def test_loss_and_gradients_with_sliding_windows(window: int) -> None:
    forest = branching(5)
    assert max(len(row.ids) for row in rows_of(forest)) > 2 * 8
    one, other = (
        learner(everything(), net=gemma3(window), critic="own", shared_prefix=shared)
        for shared in (True, False)
    )
    assert one.models.unshared_because is None
    assert_same_update(one, other, forest)


@given(
    seed=st.integers(0, 2**20),
    trees=st.integers(1, 3),
    turns=st.integers(1, 9),
    critic=st.sampled_from(["own", "shared"]),
    tokens=st.sampled_from([1, 60, 10**4]),
)
@settings(max_examples=12, deadline=None)
def test_any_forest(seed: int, trees: int, turns: int, critic: Any, tokens: int) -> None:
    forest = branching(seed, trees=trees, turns=turns)
    one = learner(everything(), critic=critic, micro_batch_tokens=tokens)
    other = learner(everything(), critic=critic, shared_prefix=False)
    assert_same_update(one, other, forest, seed)


@pytest.mark.parametrize(
    "aggregate",
    [TokenMean(), PathMeanTokenMean(), PathMeanTokenSum(), PathMeanConstant(length=8)],
    ids=lambda one: one.name,
)
def test_no_aggregation_depends_on_how_micro_batches_are_cut(aggregate: Aggregate) -> None:
    grown = branching(5)
    recipe = everything()
    policy = replace(recipe.loss.policy, aggregate=aggregate)  # type: ignore[attr-defined]
    recipe = replace(recipe, loss=replace(recipe.loss, policy=policy))  # type: ignore[type-var]
    annotations, credits = streams(grown)
    credits.advantages[1][:] = 0.0
    seen = []
    for shared, tokens in itertools.product((False, True), (8192, 45, 1)):
        made = learner(recipe, shared_prefix=shared, micro_batch_tokens=tokens)
        row = made.update(grown, annotations, credits)
        seen.append((row["update/loss"], row["loss/policy"], gradients(made)))
    (loss, part, gradient), *others = seen
    assert float(gradient.norm()) > 0
    for other_loss, other_part, other in others:
        assert (other_loss, other_part) == pytest.approx((loss, part), rel=2e-5, abs=2e-6)
        assert float((gradient - other).norm()) <= 1e-5 * float(gradient.norm())


@pytest.mark.parametrize("critic", ["own", "shared"])
def test_scores(critic: Any) -> None:
    forest = branching(7)
    one, other = (
        learner(everything(), critic=critic, shared_prefix=shared) for shared in (True, False)
    )
    for name in ("logprobs", "ref_logprobs", "values"):
        mine, wanted = getattr(one, name)(forest), getattr(other, name)(forest)
        assert [len(a) for a in mine] == [len(a) for a in wanted]
        np.testing.assert_allclose(
            np.concatenate(mine), np.concatenate(wanted), rtol=1e-4, atol=2e-5
        )


def test_a_head_with_more_than_a_layer() -> None:
    class Doubled(type(small("qwen2"))):
        def forward(self, **inputs: Any) -> Any:
            out = super().forward(**inputs)
            out.logits = 2.0 * out.logits
            return out

    net = small("qwen2")
    net.__class__ = Doubled
    one, other = (
        learner(policy_only(), net=copy.deepcopy(net), shared_prefix=shared)
        for shared in (True, False)
    )
    assert not one.models.tokens.separable
    assert_same_update(one, other, branching(2))


def test_bfloat16_is_no_further_from_the_truth() -> None:
    forest = branching(7)
    exact = np.concatenate(learner(policy_only()).logprobs(forest))
    gaps = [
        np.abs(
            np.concatenate(
                learner(policy_only(), precision="bfloat16", shared_prefix=s).logprobs(forest)
            )
            - exact
        ).mean()
        for s in (True, False)
    ]
    assert 0 < gaps[0] < 1.5 * gaps[1]


# ---------------------------------------------------------------- how much is computed


def forwarded(made: Learner, forest: Forest, credits: Credits) -> list[int]:
    """Tokens of every forward pass of an update."""
    seen: list[int] = []
    handle = made.policy.get_input_embeddings().register_forward_hook(
        lambda _module, inputs, _out: seen.append(inputs[0].numel())
    )
    made.update(forest, {}, credits)
    handle.remove()
    return seen


def test_every_distinct_token_goes_through_once() -> None:
    forest = branching(5)
    made = learner(policy_only())
    _, credits = streams(forest)
    assert forwarded(made, forest, credits) == [round_up(distinct_tokens(rows_of(forest)))]


def behind_instructions(forest: Forest, n: int) -> Forest:
    """Put the same ``n`` tokens before every first prompt."""
    opening = np.arange(n, dtype=np.int64) % 320
    for group in forest.groups:
        for tree in group.trees:
            first = tree.turns[0]
            tree.turns[0] = replace(first, obs_ids=np.concatenate([opening, first.obs_ids]))
    return forest


@pytest.mark.parametrize("critic", ["own", "shared"])
def test_instructions_of_several_groups_go_through_once(critic: Any) -> None:
    forest = behind_instructions(branching(5, groups=3), 70)
    one, other = (learner(everything(), shared_prefix=on, critic=critic) for on in (True, False))
    assert_same_update(one, other, forest)
    _, credits = streams(forest)
    through = sum(forwarded(learner(policy_only()), forest, credits))
    assert through == round_up(distinct_tokens(rows_of(forest)))
    # a budget that holds the groups together because what they share counts once
    alone = max(distinct_tokens([r for r in rows_of(forest) if r.group == g]) for g in range(3))
    tight = learner(policy_only(), micro_batch_tokens=distinct_tokens(rows_of(forest)))
    assert len(forwarded(tight, forest, credits)) == 1
    cut = learner(policy_only(), micro_batch_tokens=alone)
    assert len(forwarded(cut, forest, credits)) > 1


def test_paths_without_advantage_are_not_packed() -> None:
    forest = branching(5)
    _, credits = streams(forest)
    for advantages in credits.advantages[1:]:
        advantages[:] = 0.0
    made = learner(policy_only())
    assert forwarded(made, forest, credits) == [len(rows_of(forest)[0].ids)]


def test_where_nothing_is_gained_rows_are_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngym.algos.learner.batching.micro_batch.SHARE_BELOW", 0.8)
    forest = chains(groups=1)
    rows = rows_of(forest)
    _, credits = streams(forest)
    padded = len(rows) * max(len(r.ids) for r in rows)
    assert distinct_tokens(rows) > 0.8 * padded
    assert forwarded(learner(policy_only(), net=gemma3()), forest, credits) == [padded]


# ---------------------------------------------------------------- micro batches and losses


class Pairs(Loss):
    """A loss that reads a stream of the credit, and needs whole trees."""

    whole_trees = True
    needs = frozenset({"pair"})

    def __init__(self) -> None:
        self.seen: list[LossBatch] = []

    def __call__(self, batch: LossBatch) -> LossOut:
        self.seen.append(batch)
        loss = (batch.logprobs * batch.mask).sum()
        return LossOut(loss=loss, metrics={"policy": loss.detach()})


class PairCredit(Credit):
    """Stands for a credit that gives the stream."""

    needs = frozenset()
    provides = frozenset({"pair"})
    min_paths = 1

    def __call__(self, forest: Forest, annotations: Any) -> Credits:
        raise NotImplementedError


@pytest.mark.parametrize("shared", [True, False])
def test_a_loss_over_pairs_gets_whole_trees_and_its_stream(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # these try a loss on made-up tokens without the stream
    monkeypatch.setattr("turngym.algos.learner.learner.silent_without_advantage", lambda _: False)
    monkeypatch.setattr("turngym.algos.learner.model_bundle.reads_entropy", lambda _: False)
    forest = branching(5, groups=2, trees=2)
    loss = Pairs()
    recipe = replace(policy_only(), loss=loss, credit=PairCredit())
    made = learner(recipe, shared_prefix=shared, micro_batch_tokens=1)
    rows = rows_of(forest)
    pair = [np.full(r.n_act, i - 1, np.float32) for i, r in enumerate(rows)]
    _, credits = streams(forest)
    made.update(forest, {}, replace(credits, extra={"pair": pair}))
    trees = [(r.group, r.tree) for r in rows]
    paths = sorted(trees.count(tree) for tree in set(trees))
    assert sorted(len(batch.mask) for batch in loss.seen) == paths
    assert max(paths) > 1
    for batch in loss.seen:
        assert batch.norm.pairs == len(rows) - 1
        assert bool((batch.extra["pair"][batch.mask == 0] == -1).all())


# ---------------------------------------------------------------- models


def test_a_model_that_cannot_share_says_so_once_and_pads() -> None:
    net = small("qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=1)
    with pytest.warns(UserWarning, match="not shared.*sliding_attention"):
        made = learner(policy_only(), net=net)
    assert "sliding_attention" in str(made.models.unshared_because)
    forest = branching(5)
    _, credits = streams(forest)
    assert sum(forwarded(made, forest, credits)) > distinct_tokens(rows_of(forest))


@pytest.mark.parametrize("critic", ["own", "shared"])
@pytest.mark.parametrize("shared", [True, False])
def test_gradient_checkpointing_changes_nothing_but_memory(critic: Any, shared: bool) -> None:
    forest = branching(5)
    nets = [small("qwen2", attention_dropout=0.5) for _ in range(2)]
    one, other = (
        learner(
            everything(), net=net, critic=critic, shared_prefix=shared, gradient_checkpointing=on
        )
        for net, on in zip(nets, (True, False), strict=True)
    )
    runs = []
    for net in nets:
        count = [0]
        net.model.layers[0].mlp.register_forward_pre_hook(
            lambda *_, count=count: count.__setitem__(0, count[0] + 1)
        )
        runs.append(count)
    assert_same_update(one, other, forest)
    assert runs[0][0] == 2 * runs[1][0] > 0
    assert not any(m.training for m in one.policy.modules())
    assert not any(getattr(m, "gradient_checkpointing", False) for m in one.policy.modules())


def test_checkpointing_is_refused_where_a_model_has_no_such_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transformers.modeling_layers.GradientCheckpointingLayer", torch.nn.GRU)
    with pytest.raises(BadValueError, match=r"gradient_checkpointing.*micro_batch_tokens"):
        learner(policy_only(), gradient_checkpointing=True)


def lora(seed: int = 0) -> Any:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=True)
    torch.manual_seed(seed)
    return peft.get_peft_model(small("qwen2"), config)


def test_the_reference_of_a_lora_policy_is_the_model_without_its_adapter() -> None:
    forest = branching(5)
    recipe = everything()
    recipe = replace(recipe, optim=replace(recipe.optim, lr=3e-2, critic_lr=1e-3))
    made = learner(recipe, net=lora(), critic="shared")
    assert made.models.reference is not None
    assert made.models.reference.model is made.policy
    trained = [p for group in made.optimizer.param_groups[:1] for p in group["params"]]
    assert 0 < sum(p.numel() for p in trained) < 2000
    base = np.concatenate(learner(policy_only()).logprobs(forest))
    annotations, credits = streams(forest)
    made.update(forest, annotations, credits)
    np.testing.assert_allclose(np.concatenate(made.ref_logprobs(forest)), base, atol=2e-5)
    moved = np.concatenate(made.logprobs(forest))
    assert np.abs(moved - base).max() > 1e-2
    np.testing.assert_array_equal(moved, np.concatenate(made.logprobs(forest)))


@pytest.mark.parametrize("recompute", [True, False])
def test_lora_shared_equals_padded(recompute: bool) -> None:
    forest = branching(6)
    made = [
        learner(policy_only(), net=lora(), shared_prefix=s, gradient_checkpointing=recompute)
        for s in (True, False)
    ]
    annotations, credits = streams(forest)
    for one in made:
        for name, p in one.policy.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.1, generator=torch.Generator().manual_seed(0))
        one.update(forest, {"old_logprobs": annotations["old_logprobs"]}, credits)
    a, b = (
        torch.cat([p.grad.flatten() for p in one.policy.parameters() if p.grad is not None])
        for one in made
    )
    assert 0 < float((a - b).norm()) + 1e-12 <= 1e-5 * float(a.norm())


def test_values_of_prompts_are_those_of_the_paths_before_their_first_token() -> None:
    forest = branching(7)
    made = learner(everything())
    prompts = [forest.turns(p)[0].obs_ids for p in forest]
    got = made.prompt_values(prompts)
    np.testing.assert_allclose(got, [v[0] for v in made.values(forest)], atol=2e-5)
    assert len(made.prompt_values([])) == 0


@pytest.mark.parametrize("tokens", [1, 10**4])
def test_step_dpo_over_packed_trees_equals_padded_rows(tokens: int) -> None:
    forest = branching(11, groups=3, trees=2, turns=9)
    credits = StepPairs()(forest, {})
    assert len(np.unique(np.concatenate(credits.extra["pair"]))) > 3
    parts = {"loss": StepDpoLoss(reference=False), "credit": StepPairs(), "rollout": Expand()}
    recipe = replace(policy_only(), **parts)
    whole, cut = (
        learner(recipe, shared_prefix=shared, micro_batch_tokens=budget)
        for shared, budget in ((False, 10**4), (True, tokens))
    )
    rows = [made.update(forest, {}, credits) for made in (whole, cut)]
    a, b = gradients(whole), gradients(cut)
    assert float((a - b).norm()) <= 1e-5 * float(a.norm()) > 0
    assert rows[0]["update/loss"] == pytest.approx(rows[1]["update/loss"], rel=1e-5)


# ---------------------------------------------------------------- made once per step


@pytest.mark.parametrize("shared", [True, False])
def test_a_steps_micro_batches_are_made_once(monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    forest = branching(6, groups=3)
    recipe = ppo()
    recipe = replace(recipe, optim=replace(recipe.optim, epochs=2, minibatches=1))
    made: list[int] = []
    kind = "packed" if shared else "padded"
    build = getattr(MicroBatch, kind)
    monkeypatch.setattr(
        MicroBatch, kind, lambda *given, **more: made.append(len(given[0])) or build(*given, **more)
    )

    def step(tokens: int) -> tuple[int, dict[str, float], torch.Tensor]:
        monkeypatch.setattr(micro_batch, "CACHED_TOKENS", tokens)
        one = learner(recipe, micro_batch_tokens=60, shared_prefix=shared)
        made.clear()
        scored = {
            "old_logprobs": one.logprobs(forest),
            "ref_logprobs": one.logprobs(forest),
            "values": one.values(forest),
        }
        _, credits = streams(forest)
        row = one.update(forest, scored, credits)
        assert not one.models.batching.cache._batches  # nothing is kept while episodes are played
        return len(made), row, gradients(one)

    once, row, slope = step(2**22)
    often, before, slope_before = step(0)
    assert often == 5 * once
    assert once > 1
    assert row == before
    assert torch.equal(slope, slope_before)


def test_other_rows_get_micro_batches_of_their_own() -> None:
    one = learner(policy_only())
    first, second = branching(7), branching(8)
    alone = one.logprobs(second)
    one.logprobs(first)
    for mine, wanted in zip(one.logprobs(second), alone, strict=True):
        np.testing.assert_array_equal(mine, wanted)
