"""Whole updates of the recipes on fixed rollouts: apart from GRPO's, or said to be the same."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from helpers.updates import AFTER_WARM_UP, UpdateLab, cosine

from turngym.algos.recipes import ONE_GRADIENT, RECIPES, make_recipe

APART = 0.99
"""Cosine above which two updates are one; two batches of one recipe have .1 to .4."""
OWN_TREES = tuple(name for name in RECIPES if make_recipe(name, small=True).rollout.forks)
ON_CHAINS = tuple(name for name in RECIPES if name not in OWN_TREES)


def after_warm_up(name: str, **settings: Any) -> Any:
    return make_recipe(name, {**AFTER_WARM_UP, **settings}, small=True)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> UpdateLab:
    return UpdateLab.on("Password-v0", tmp_path_factory.mktemp("blank"))


@pytest.fixture(scope="module")
def on_chains(lab: UpdateLab) -> Mapping[str, torch.Tensor]:
    forest = lab.forest(after_warm_up("grpo").rollout)
    teacher = {"opd": {"teacher_logprobs.model": lab.config.model}}
    return {
        name: lab.change(after_warm_up(name, **teacher.get(name, {})), forest) for name in ON_CHAINS
    }


def test_no_two_recipes_are_one_gradient_unless_the_table_says_so(
    on_chains: Mapping[str, torch.Tensor],
) -> None:
    together = {
        frozenset(pair)
        for pair in itertools.combinations(on_chains, 2)
        if cosine(*(on_chains[name] for name in pair)) > APART
    }
    of = {name: ONE_GRADIENT[name].equals if name in ONE_GRADIENT else name for name in on_chains}
    said = {
        frozenset(pair)
        for pair in itertools.combinations(on_chains, 2)
        if of[pair[0]] == of[pair[1]]
    }
    direct = {frozenset({name, of[name]}) for name in on_chains if of[name] != name}
    assert direct <= together <= said


@pytest.mark.parametrize("name", OWN_TREES)
def test_on_its_own_trees_a_recipe_is_not_grpo_unless_the_table_says_so(
    name: str, lab: UpdateLab
) -> None:
    recipe = after_warm_up(name)
    forest = lab.forest(recipe.rollout)
    alike = cosine(lab.change(recipe, forest), lab.change(after_warm_up("grpo"), forest))
    assert (alike > APART) == (name in ONE_GRADIENT)


def test_a_recipe_that_silently_became_grpo_is_found(
    lab: UpdateLab, on_chains: Mapping[str, torch.Tensor]
) -> None:
    forest = lab.forest(after_warm_up("grpo").rollout)
    lost = {
        "loss.ratio": "token",
        "clip.low": 0.2,
        "clip.high": 0.2,
        "loss.aggregate": "token-mean",
    }
    for name, settings in (
        ("gspo", lost),
        ("drgrpo", {"scale": "std", "loss.aggregate": "token-mean"}),
    ):
        assert cosine(on_chains["grpo"], on_chains[name]) < APART
        changed = lab.change(after_warm_up(name, **settings), forest)
        assert cosine(on_chains["grpo"], changed) > APART


def test_a_clip_acts_in_four_optimiser_steps_and_not_in_one(lab: UpdateLab) -> None:
    forest = lab.forest(after_warm_up("grpo").rollout)

    def alike(**settings: Any) -> float:
        wide = after_warm_up("grpo", **settings)
        tight = after_warm_up("grpo", **settings, **{"clip.low": 0.01, "clip.high": 0.01})
        return cosine(lab.change(wide, forest), lab.change(tight, forest))

    assert alike(**{"optim.epochs": 1, "optim.minibatches": 1}) > 0.9999
    assert alike() < APART


def test_the_table_names_recipes() -> None:
    for name, same in ONE_GRADIENT.items():
        assert {name, same.equals} <= RECIPES.keys()
        assert same.why
