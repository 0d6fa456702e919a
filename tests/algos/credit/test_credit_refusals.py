"""Credit rules refuse settings, annotations and rollouts that make no sense."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from helpers.forests import single_turns
from helpers.path_notes import annotations_for

from turngym.algos.core.annotators import SpawnedValues
from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Annotations, Credit, Credits
from turngym.algos.core.recipe import Recipe
from turngym.algos.credit import (
    Gae,
    GroupCredit,
    ReturnsToGo,
    SessionCredit,
    SharedMean,
    StepPairs,
    TreeCredit,
    TurnReturns,
)
from turngym.algos.losses import PolicyLoss, StepDpoLoss
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts import Branch, Chains, Expand, Sessions
from turngym.algos.rollouts.task_order import OrderedTasks
from turngym.algos.training.credit_step import assign_credit
from turngym.envs.core.errors import BadValueError

INTRA = TreeCredit(terms="intra")


def build(rollout: Any, credit: Any, loss: Any = None) -> Recipe:
    return Recipe(name="mine", paper="-", rollout=rollout, credit=credit, loss=loss or PolicyLoss())


@pytest.mark.parametrize(
    "rollout",
    [
        Chains(n=8),
        Expand(trees=4, rounds=0),
        Expand(trees=4, keep=1),
        Branch(initial=4, budget=4),
        Branch(initial=2, budget=8, beam=1),
        Sessions(n=4),
    ],
    ids=repr,
)
@pytest.mark.parametrize("credit", [INTRA, SharedMean(of=INTRA), StepPairs()], ids=repr)
def test_what_compares_sides_of_forks_needs_forks(rollout: Any, credit: Any) -> None:
    loss = StepDpoLoss(reference=False) if "pair" in credit.provides else PolicyLoss()
    with pytest.raises(BadValueError, match="never fork"):
        build(rollout, credit, loss)
    for forking in (Expand(trees=1), Branch(initial=2, budget=4)):
        assert build(forking, credit, loss).credit is credit


@pytest.mark.parametrize(
    "credit",
    [
        TreeCredit(),
        TreeCredit(terms="inter"),
        SharedMean(),
        TreeCredit(terms="intra", singleton="raw"),
    ],
    ids=repr,
)
def test_what_also_compares_chains_does_not(credit: Any) -> None:
    assert build(Chains(n=8), credit).credit is credit


@pytest.mark.parametrize(
    "credit",
    [TreeCredit(), SharedMean(), GroupCredit(baseline="leave-one-out", scale="none")],
    ids=repr,
)
def test_a_lone_chain_has_nobody_to_be_compared_with(credit: Any) -> None:
    with pytest.raises(BadValueError, match="every advantage would be 0"):
        build(Chains(n=1), credit)


def test_step_dpo_s_rounds_cannot_be_switched_off() -> None:
    with pytest.raises(BadValueError, match="never fork"):
        make_recipe("stepdpo", {"rollout.rounds": 0})


@pytest.mark.parametrize("rule", [Gae(), SessionCredit()], ids=repr)
def test_values_of_the_wrong_length_are_refused(rule: Any) -> None:
    forest = single_turns([1.0], n=3)
    annotations = annotations_for(forest) | {"values": [np.zeros(3, np.float32)]}
    with pytest.raises(BadValueError, match=r"shape \(3,\); expected \(4,\)"):
        rule(forest, annotations)


@pytest.mark.parametrize(
    ("rule", "bad", "message"),
    [
        (GroupCredit, {"baseline": "median"}, "'mean' or 'leave-one-out' or 'none'"),
        (GroupCredit, {"baseline": "leave-one-out", "singleton": "raw"}, "no others"),
        (GroupCredit, {"eps": float("nan")}, "eps is nan"),
        (TreeCredit, {"terms": "none"}, "TreeCredit.terms is 'none'"),
        (TreeCredit, {"singleton": "one"}, "TreeCredit.singleton"),
        (SharedMean, {"shared": "sum"}, "SharedMean.shared"),
        (SharedMean, {"of": ReturnsToGo()}, "one advantage per path"),
        (ReturnsToGo, {"baseline": "mean"}, "ReturnsToGo.baseline"),
        (ReturnsToGo, {"kl_coef": float("inf")}, "kl_coef is inf"),
        (SessionCredit, {"kl_mode": "outside", "kl_coef": 1.0}, "SessionCredit.kl_mode"),
        (SessionCredit, {"discount_unit": "turn"}, "SessionCredit.discount_unit"),
        (TurnReturns, {"eps": -1.0}, "eps is -1.0"),
        (SpawnedValues, {"max_sessions": 0}, "max_sessions is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(rule: Any, bad: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValueError, match=message):
        rule(**bad)


@dataclass(frozen=True, kw_only=True)
class Own(Credit):
    """A rule of a user's own, with a mistake."""

    gives: Any

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        return self.gives(np.float32([0.5, 0.5]))


@pytest.mark.parametrize(
    ("gives", "error", "reason"),
    [
        (lambda row: None, TypeError, r"Own returned a NoneType; expected Credits\("),
        (lambda row: [row], TypeError, r"Own returned a list; expected Credits\("),
        (
            lambda row: Credits(advantages=[row, row * np.nan]),
            BadValueError,
            "Own gave path 1 the advantages .*nan.*expected finite",
        ),
    ],
)
def test_a_rule_of_ones_own_is_named_for_its_mistakes(
    gives: Any, error: type[Exception], reason: str
) -> None:
    """NaN was answered with "Try a lower learning rate", anything else by whoever read it."""
    recipe = replace(make_recipe("grpo", {"loss.kl.coef": 0.0}), credit=Own(gives=gives))
    forest, tasks, scorer = single_turns([1.0, 0.0], n=2), OrderedTasks(0, "train", 10), object()
    with pytest.raises(error, match=reason):
        assign_credit(recipe, forest, scorer, tasks)  # type: ignore[arg-type]
    fine = replace(recipe, credit=Own(gives=lambda row: Credits(advantages=[row, row])))
    assign_credit(fine, forest, scorer, tasks)  # type: ignore[arg-type]


def test_a_rule_is_not_named_for_numbers_that_it_was_given() -> None:
    """A critic that diverged asks for a lower learning rate, which the loss says."""

    class Diverged(OrderedTasks):
        def annotations(self, forest: Forest) -> dict[str, list[Any]]:
            return {"values": [np.float32([np.nan])] * len(forest.paths)}

    recipe = replace(
        make_recipe("grpo", {"loss.kl.coef": 0.0}),
        credit=Own(gives=lambda row: Credits(advantages=[row * np.nan])),
    )
    credited = assign_credit(
        recipe,
        single_turns([1.0], n=2),
        object(),  # type: ignore[arg-type]
        Diverged(0, "train", 10),
    )
    assert np.isnan(credited.credits.advantages[0]).all()
