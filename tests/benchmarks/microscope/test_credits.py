"""A turn's credit, the coefficients of its tokens, and gradients by the learner's own passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers import forests
from helpers.branching import branching
from helpers.grown import forest
from helpers.nets import small

from turngym.algos.core.forest import Forest, Group
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts.task_order import OrderedTasks
from turngym.algos.training.credit_step import assign_credit
from turngym.benchmarks.microscope.credits import TurnCredit, TurnIndex, turn_credit
from turngym.benchmarks.microscope.gradients import SKETCH, Sketch, group_gradients
from turngym.benchmarks.microscope.metrics import spearman

TASKS = OrderedTasks(0, "train", 10)


def learner(name: str, **settings: Any) -> Learner:
    settings = {"optim.minibatches": 1, "optim.epochs": 1, "optim.grad_clip": 1e9, **settings}
    recipe = make_recipe(name, settings, small=True)
    return Learner(small("qwen2"), recipe, pad_id=0, settings=LearnerSettings(precision="float32"))


def credit(made: Learner, grown: Forest) -> tuple[TurnIndex, TurnCredit]:
    credited = assign_credit(made.recipe, grown, made, TASKS)
    index = TurnIndex.of(credited.forest)
    return index, turn_credit(made.recipe, credited, index)


@pytest.mark.parametrize(
    ("name", "settings", "weight"),
    [
        ("grpo", {}, lambda n, tokens, paths: 1 / tokens),
        ("grpo", {"loss.aggregate": "seq-mean-token-mean"}, lambda n, t, paths: 1 / n / paths),
        ("drgrpo", {"loss.aggregate.length": 64}, lambda n, t, paths: 1 / 64 / paths),
        ("gspo", {}, lambda n, t, paths: 1 / n / paths),
        ("rloo", {"credit.kl_coef": 0.0}, None),
    ],
)
def test_coefficients_are_advantages_times_the_weights_of_the_loss(
    name: str, settings: dict[str, Any], weight: Any
) -> None:
    grown = forest(groups=2, chains=3)
    made = learner(name, **settings)
    index, found = credit(made, grown)
    advantages = made.recipe.credit(grown, {}).advantages
    lengths = [len(row) for row in advantages]
    for row, ours, n in zip(advantages, found.coefficients, lengths, strict=True):
        if weight is not None:
            expected = row * weight(n, sum(lengths), len(lengths))
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-8)
    # one advantage per path: that is what orders its turns
    per_turn = {p: found.mean[i] for i, p in enumerate(index.places)}
    for path, row in zip(grown.paths, advantages, strict=True):
        for turn in path.turns:
            assert per_turn[path.group, path.tree, turn] == pytest.approx(row[0], abs=1e-5)
    assert found.within == 0.0


@pytest.mark.parametrize("name", ["grpo", "gspo"])
def test_equal_advantages_of_paths_of_unequal_length_are_ties(name: str) -> None:
    """With a weight per path they differed by rounding, and that ordered them."""
    ends = [forests.turn(float(n == 3), n=n, status="failed") for n in (3, 5, 7, 11, 13, 9)]
    trees = [forests.tree(end) for end in ends]
    _, found = credit(learner(name), Forest.of([Group("1/0", "t", trees)]))
    ties, truth = np.array([1.0, 0, 0, 0, 0, 0]), np.array([0.9, 0.1, 0.5, 0.3, 0.2, 0.4])
    assert spearman(found.mean, truth) == pytest.approx(spearman(ties, truth))


def test_a_shared_turn_gets_the_weighted_mean_of_its_paths() -> None:
    grown = branching(seed=3)
    made = learner("grpo")
    index, found = credit(made, grown)
    advantages = made.recipe.credit(grown, {}).advantages
    shared = np.flatnonzero(index.copies > 1)
    assert len(shared)
    for at in shared.tolist():
        g, tree, turn = index.places[at]
        of = [
            advantages[i][0]
            for i, path in enumerate(grown.paths)
            if (path.group, path.tree) == (g, tree) and turn in path.turns
        ]
        assert len(of) == index.copies[at]
        assert found.mean[at] == pytest.approx(np.mean(of), abs=1e-5)


def test_token_credit_that_differs_within_turns_is_told() -> None:
    _, found = credit(learner("ppo", **{"credit.lam": 0.9}), forest())
    assert 0 < found.within < 1


@pytest.mark.parametrize("name", ["grpo", "gspo", "treegrpo", "stepdpo", "ppo"])
def test_group_gradients_add_up_to_what_the_learner_descends(name: str) -> None:
    """The optimiser's own gradient, left on the weights after a real update."""
    grown = branching(seed=1) if name in ("treegrpo", "stepdpo") else forest()
    made = learner(name)
    grown = _as_scored(grown, made)
    credited = assign_credit(made.recipe, grown, made, TASKS)
    found = turn_credit(made.recipe, credited, TurnIndex.of(grown))
    kinds = {"c": found.coefficients, "half": [0.5 * c for c in found.coefficients]}
    gradients = group_gradients(made, grown, kinds)
    assert gradients["c"].shape[0] == len(grown.groups)
    np.testing.assert_allclose(2 * gradients["half"], gradients["c"], rtol=1e-4, atol=1e-7)
    made.update(*credited)
    weights = list(made.policy.parameters())
    descended = -np.concatenate([w.grad.reshape(-1).numpy() for w in weights])
    total = gradients["c"].sum(0)
    assert np.abs(total).max() > 0
    np.testing.assert_allclose(total, descended, rtol=2e-3, atol=2e-6)


def _as_scored(grown: Forest, made: Learner) -> Forest:
    """The forest with the log-probabilities of the learner's policy, as if it had sampled it."""
    scored = dict(zip(grown.paths, made.logprobs(grown), strict=True))
    groups = []
    for g, group in enumerate(grown.groups):
        trees = []
        for t, tree in enumerate(group.trees):
            turns = list(tree.turns)
            for path, row in scored.items():
                if (path.group, path.tree) == (g, t):
                    ends = np.cumsum([len(tree.turns[i].act_ids) for i in path.turns])
                    for i, part in zip(path.turns, np.split(row, ends[:-1]), strict=True):
                        turns[i] = replace(turns[i], logprobs=part)
            trees.append(replace(tree, turns=turns))
        groups.append(replace(group, trees=trees))
    return Forest.of(groups)


def test_a_sketch_keeps_inner_products() -> None:
    drawn = torch.Generator().manual_seed(1)
    size = 2 * SKETCH
    x, y = (torch.randn(size, generator=drawn) for _ in range(2))
    y = 0.6 * x + 0.8 * y
    short = Sketch(size)
    assert not short.exact
    u, v = short(x), short(y)
    assert u.shape == (SKETCH,)
    assert float(u @ v / (u.norm() * v.norm())) == pytest.approx(0.6, abs=0.01)
    assert Sketch(8).exact
    assert torch.equal(Sketch(8)(x[:8]), x[:8])
