"""What an update tells: means over what was computed, and the engine's true difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.grown import forest
from helpers.nets import small

from turngym.algos.core.annotators import sampled_logprobs
from turngym.algos.core.forest import Forest, Group, Tree
from turngym.algos.core.protocols import Credits
from turngym.algos.core.recipe import Recipe
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.losses import Kl, PolicyLoss
from turngym.algos.recipes import make_recipe

PLAYED = forest(0, groups=4, chains=3)
MEAN, MOST = "update/logprob_diff_mean_nats", "update/logprob_diff_max_nats"


def learner(recipe: Recipe) -> Learner:
    settings = LearnerSettings(precision="float32")
    return Learner(small("qwen2"), recipe, pad_id=0, settings=settings, seed=3)


def silent(minibatches: int) -> Recipe:
    """A recipe whose loss says nothing about paths without credit."""
    made = make_recipe("grpo", {"optim.lr": 1e-9, "optim.minibatches": minibatches})
    return replace(made, loss=PolicyLoss(kl=Kl(coef=0.0)), annotators=())


def credits(equal_groups: int = 0) -> Credits:
    """Credit for every path, none in the first groups."""
    return Credits(
        [
            np.full(PLAYED.n_act(path), 0.0 if path.group < equal_groups else i % 3 - 0.5).astype(
                np.float32
            )
            for i, path in enumerate(PLAYED)
        ]
    )


@pytest.mark.parametrize("equal_groups", [0, 1, 3])
def test_means_per_token_do_not_shrink_with_mini_batches_that_compute_nothing(
    equal_groups: int,
) -> None:
    rows = {
        count: learner(silent(count)).update(PLAYED, {}, credits(equal_groups)) for count in (1, 4)
    }
    for row in rows.values():
        assert row["loss/ratio_mean"] == pytest.approx(1.0, abs=1e-5)
        assert row["update/paths_left_out_frac"] == equal_groups / 4
    assert rows[4]["loss/entropy_nats"] == pytest.approx(rows[1]["loss/entropy_nats"], rel=0.02)


@pytest.mark.parametrize("count", [1, 2])
def test_the_engines_difference_is_told_where_its_numbers_are_the_base_of_the_ratio(
    count: int,
) -> None:
    settings = {"optim.lr": 1e-9, "optim.minibatches": count}
    trusting = learner(make_recipe("dppo", settings))
    own = trusting.logprobs(PLAYED)
    apart = [np.abs(a - b) for a, b in zip(own, sampled_logprobs(PLAYED), strict=True)]
    given: dict[str, Any] = {}
    for annotator in trusting.recipe.used_annotators:
        given |= annotator(PLAYED, trusting)
    row = trusting.update(PLAYED, given, credits())
    if count == 1:
        assert row[MEAN] == pytest.approx(float(np.concatenate(apart).mean()), rel=1e-4)
        assert row[MOST] == pytest.approx(float(np.concatenate(apart).max()), rel=1e-4)
    else:  # the first mini batch: behind it the policy is another
        groups = [path.group for path in PLAYED]
        means = [
            np.concatenate([a for a, g in zip(apart, groups, strict=True) if g in pair]).mean()
            for pair in ({a, b} for a in range(4) for b in range(a))
        ]
        assert min(abs(row[MEAN] - mean) for mean in means) < 1e-3


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_what_nobody_sampled_is_no_part_of_the_difference(observed: bool, count: int) -> None:
    recipe = make_recipe("gspo", {"optim.lr": 1e-9, "optim.minibatches": count})
    recipe = replace(recipe, train_observations=observed)
    exact = iter(learner(recipe).logprobs(PLAYED))
    groups = []
    for group in PLAYED.groups:
        trees = []
        for tree in group.trees:
            own, at, made = next(exact), 0, Tree()
            for turn in tree.turns:
                until = at + len(turn.act_ids)
                made.add(replace(turn, logprobs=own[at:until]))
                at = until
            trees.append(made)
        groups.append(Group(group.uid, group.task_id, trees))
    row = learner(recipe).update(Forest.of(groups), {}, credits())
    assert row[MEAN] < 1e-5
    assert row[MOST] < 1e-4
