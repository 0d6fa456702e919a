"""Truncated importance weights: what they multiply, where they are cut, what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.annotators import OldLogprobs
from turngym.algos.core.forest import Forest, Group, Tree, Turn
from turngym.algos.core.protocols import Credits, LossBatch, Norm
from turngym.algos.learner.importance_weights import (
    Alarm,
    Difference,
    Protection,
    check_importance,
    protection,
    rejected,
    weighed,
    without_paths,
)
from turngym.algos.losses import PolicyLoss
from turngym.algos.losses.policy import Clip
from turngym.algos.recipes import make_recipe
from turngym.envs.core.errors import BadValueError

FLOATS = st.floats(-3, 3, width=32)


def forest(*engine: list[float]) -> Forest:
    """One path per list, of two turns where there is more than one token."""
    trees = []
    for values in engine:
        tree = Tree()
        cuts = [values[:1], values[1:]] if len(values) > 1 else [values]
        for i, part in enumerate(cuts):
            n = len(part)
            tree.add(
                Turn(
                    parent=i - 1,
                    obs_ids=np.array([3]),
                    act_ids=np.arange(n),
                    logprobs=np.array(part, np.float32),
                    entropies=np.zeros(n, np.float32),
                    rewards=np.zeros(n, np.float32),
                    status="running" if i + 1 < len(cuts) else "solved",
                )
            )
        trees.append(tree)
    return Forest.of([Group("g", "t", trees)])


def test_weights_are_ratios_cut_at_the_cap() -> None:
    f = forest([-1.0, -2.0, -3.0], [-0.5])
    learner = [np.array([-1.0, -1.0, -4.0], np.float32), np.array([-0.5], np.float32)]
    credits = Credits([np.array([1.0, 1.0, -2.0], np.float32), np.array([3.0], np.float32)])
    out, metrics = weighed(credits, f, learner, cap=2.0)
    np.testing.assert_allclose(out.advantages[0], [1.0, 2.0, -2.0 * np.exp(-1)], rtol=1e-6)
    np.testing.assert_allclose(out.advantages[1], [3.0])
    assert metrics["update/importance_capped_frac"] == 0.25
    assert metrics["update/importance_mean"] == pytest.approx((1 + 2 + np.exp(-1) + 1) / 4)
    assert credits.advantages[0].tolist() == [1.0, 1.0, -2.0]


def test_equal_log_probabilities_change_nothing_and_no_paths_are_no_fault() -> None:
    f = forest([-1.0, -2.0])
    credits = Credits([np.array([0.25, -1.5], np.float32)])
    out, _ = weighed(credits, f, [np.array([-1.0, -2.0], np.float32)], cap=1.0)
    assert out.advantages[0].tolist() == [0.25, -1.5]
    assert weighed(Credits([]), Forest.of([]), [], 2.0)[1] == {}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(FLOATS, FLOATS, FLOATS, FLOATS), min_size=1, max_size=6),
    st.sampled_from([None, 3.0]),
    st.floats(1.0, 5.0),
)
def test_weighing_advantages_is_weighing_each_token_s_loss(
    tokens: list[tuple[float, float, float, float]], dual: float | None, cap: float
) -> None:
    engine, old, new, advantage = (np.array(v, np.float32) for v in zip(*tokens, strict=True))
    credits = Credits([advantage])
    out, _ = weighed(credits, forest(engine.tolist()), [old], cap)
    clip = Clip(dual=dual)
    ratio = torch.from_numpy(np.exp(new - old))
    weight = np.minimum(np.exp(old - engine), np.float32(cap))
    plain = clip(ratio, torch.from_numpy(advantage))[0].numpy() * weight
    ours = clip(ratio, torch.from_numpy(np.asarray(out.advantages[0])))[0].numpy()
    np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-4)


def test_an_old_engine_s_gradient_is_that_of_the_learner_s_own_samples() -> None:
    """The weighted gradient's mean over the engine's samples is the learner's policy gradient."""
    engine, learner = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.3, 0.3, 0.4])
    worth = torch.tensor([1.0, -1.0, 2.0])
    logits = learner.log().requires_grad_()
    true = torch.autograd.grad((logits.softmax(0) * worth).sum(), logits)[0]
    mean = torch.zeros(3)
    for token in range(3):
        f = forest([float(engine[token].log())])
        old = [learner[token].log()[None].numpy()]
        credits, _ = weighed(Credits([worth[token][None].numpy()]), f, old, cap=10.0)
        lp = logits.log_softmax(0)[token][None, None]
        batch = LossBatch(
            logprobs=lp,
            old_logprobs=lp.detach(),
            entropies=torch.zeros(1, 1),
            advantages=torch.from_numpy(np.asarray(credits.advantages[0]))[None],
            mask=torch.ones(1, 1),
            turns=torch.zeros(1, 1, dtype=torch.int64),
            norm=Norm(tokens=1.0, paths=1.0),
        )
        mean -= engine[token] * torch.autograd.grad(PolicyLoss()(batch).loss, logits)[0]
    torch.testing.assert_close(mean, true)


def test_recipes_that_weights_would_not_correct_are_refused() -> None:
    for name in ("grpo", "ppo", "treegrpo", "gspo"):
        check_importance(make_recipe(name, {}, small=True), 2.0)
    check_importance(make_recipe("stepdpo", {}, small=True), None)
    with pytest.raises(BadValueError, match="not linear"):
        check_importance(make_recipe("stepdpo", {}, small=True), 2.0)
    with pytest.raises(BadValueError, match="samples nothing"):
        check_importance(make_recipe("sft", {}, small=True), 2.0)
    sampled = dataclasses.replace(
        make_recipe("grpo", {"loss.kl.coef": 0.0}, small=True),
        annotators=(OldLogprobs(source="sampled"),),
    )
    with pytest.raises(BadValueError, match="count twice"):
        check_importance(sampled, 2.0)


def guard(recipe: str = "grpo", cap: Any = None, above: Any = None, **how: Any) -> Protection:
    what = {"formats": True, "kinds": False, "large": True, "on_cpu": True, **how}
    return protection(make_recipe(recipe, {}, small=True), Difference(**what), cap, above)


NOTHING, USUAL = Protection(), Protection(cap=2.0, reject_above=0.5)


def test_what_differs_is_guarded_where_nothing_is_asked_for() -> None:
    assert guard() == USUAL
    assert guard(formats=False) == NOTHING
    # small models in half precision stay as they were on a CPU
    assert guard(large=False) == NOTHING
    # and are guarded where the kernels differ as well, or the engine is another program
    assert guard(large=False, on_cpu=False) == USUAL
    assert guard(formats=False, on_cpu=False) == NOTHING
    assert guard(large=False, formats=False, kinds=True) == USUAL


def test_what_is_asked_for_counts() -> None:
    assert guard(formats=False, cap=3.0) == Protection(cap=3.0)
    assert guard(formats=False, above=0.1) == Protection(reject_above=0.1)
    assert guard(cap=0, above=0) == NOTHING
    for name in ("stepdpo", "sft"):  # what cannot be weighed is left alone unless it is asked for
        assert guard(name) == NOTHING
        with pytest.raises(BadValueError, match=r"reject_above is 0\.5"):
            check_importance(make_recipe(name, {}, small=True), None, 0.5)
    check_importance(make_recipe("sft", {}, small=True), 0, 0)


def test_paths_that_another_policy_sampled_are_rejected_whole() -> None:
    f = forest([-1.0, -2.0], [-0.5, -0.5], [-1.0])
    learner = [np.array(x, np.float32) for x in ([-1.3, -2.3], [-0.5, -4.5], [np.nan])]
    out, metrics = rejected(f, learner, 0.5)
    assert out.tolist() == [False, True, True]
    assert metrics["update/rejected_frac"] == pytest.approx(2 / 3)
    assert metrics["update/logprob_diff_max_nats"] == 4.0  # of those that are numbers
    assert metrics["update/logprob_diff_mean_nats"] == pytest.approx(4.6 / 4)
    out, metrics = rejected(f, [*learner[:2], np.array([-1.0], np.float32)], 0.5)
    assert metrics["update/logprob_diff_max_nats"] == 4.0
    assert metrics["update/logprob_diff_mean_nats"] == pytest.approx(4.6 / 5)
    arrays = [np.full(n, i, np.float32) for i, n in enumerate((2, 2, 1))]
    credits = Credits(arrays, (), {"pair": arrays}, {"x": 1.0})
    rest, annotations, left = without_paths(f, {"values": arrays}, credits, out)
    assert [p.tree for p in rest.paths] == [0, 2]
    assert rest.n_act(rest.paths[1]) == 1
    for kept in (annotations["values"], left.advantages, left.extra["pair"]):
        assert [a.tolist() for a in kept] == [[0, 0], [2]]
    assert left.value_targets == ()
    assert left.metrics == {"x": 1.0}
    within, metrics = rejected(f, [np.array(v, np.float32) for v in ([-1, -2], [0, 0], [-1])], 0.5)
    assert not within.any()
    assert metrics == {"update/rejected_frac": 0.0}


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_paths_without_finite_numbers_are_rejected_before_any_is_weighed(bad: float) -> None:
    f = forest([-1.0, -2.0], [-0.5, -0.5], [-1.0])
    learner = [np.array(x, np.float32) for x in ([-1.1, -2.0], [bad, -0.5], [bad])]
    credits = Credits([np.array(x, np.float32) for x in ([1, -1], [2, 3], [0])])
    silent = [False, False, True]
    out, metrics = rejected(f, learner, 0.5, silent)
    assert out.tolist() == [False, True, False]
    weights, of_weights = weighed(credits, f, learner, 2.0, out)
    ratio = np.exp(np.float32(-0.1))
    np.testing.assert_allclose(weights.advantages[0], [ratio, -1.0], rtol=1e-6)
    assert weights.advantages[1].tolist() == [2, 3]
    assert weights.advantages[2].tolist() == [0]  # it stays, and is not computed
    assert metrics["update/logprob_diff_mean_nats"] == pytest.approx(0.1 / 3, rel=1e-5)
    assert all(np.isfinite(list((metrics | of_weights).values())))
    gone, metrics = rejected(f, [np.full_like(x, bad) for x in learner], 0.5)
    assert gone.all()
    assert metrics == {"update/rejected_frac": 1.0}
    assert weighed(credits, f, learner, 2.0, gone)[1] == {}


def test_the_alarm_is_raised_once_for_each_doubling() -> None:
    alarm = Alarm()
    assert not alarm(1, 0.02, 0.0, USUAL)
    said = alarm(2, 0.05, 0.0, USUAL)
    assert "step 2: engine and learner differ by 0.050 nats" in said
    assert "weights are cut at 2 and paths above 0.5 nats are left out" in said
    assert "lag" not in said
    assert not alarm(3, 0.05, 0.0, USUAL)
    assert "1.0 updates of lag" in (again := alarm(4, 0.3, 1.0, NOTHING))
    assert "nothing is done about it" in again
