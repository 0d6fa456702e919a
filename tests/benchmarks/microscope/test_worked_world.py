"""The worked world of the specification of the microscope, to the digits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from helpers.right_left_world import STATES, Played, exact_gradient, play, solve

from turngym.algos.core.forest import Forest
from turngym.algos.credit import GroupCredit
from turngym.benchmarks.microscope.credits import TurnIndex
from turngym.benchmarks.microscope.metrics import (
    bias_variance,
    cosine,
    exact_table,
    gradient_measures,
    gradient_table,
    group_sums,
    turn_measures,
)

GROUPS = 400


@cache
def played() -> Played:
    return play(GROUPS, 8)


def grpo(forest: Forest) -> np.ndarray:
    index = TurnIndex.of(forest)
    return index.total(GroupCredit()(forest, {}).advantages) / index.tokens


RULES: dict[str, tuple[Callable[[Forest], np.ndarray], dict[str, float]]] = {
    "grpo": (
        grpo,
        {
            "rank": 0.300239,
            "sign": 0.754415,
            "explained": 0.179105,
            "bias": 0.688602,
            "variance": 0.132605,
            "cosine_batch": 0.722050,
            "cosine_turns": 0.375403,
            "cosine_mean": 0.998780,
        },
    ),
}
"""A credit rule on the world's forest, turn by turn, and its row. A new rule is a new row."""


def gradients(credit: np.ndarray) -> np.ndarray:
    """The sum over each group's turns of credit times score ``[groups, 3]``."""
    world = played()
    out = np.zeros((GROUPS, STATES))
    np.add.at(out, world.group, credit[:, None] * world.scores)
    return out


def measure(credit: np.ndarray) -> dict[str, float]:
    world, whole = played(), np.ones((1, GROUPS))
    truth = world.truth
    sums = group_sums(exact_table(world.group, credit, truth), GROUPS)
    found = {name: float(v[0]) for name, v in turn_measures(sums, whole).items()}
    of_truth, of_credit, tokens = gradients(truth), gradients(credit), np.ones(GROUPS)
    batch = gradient_measures(gradient_table(of_credit, [of_truth] * 3, tokens), whole)
    exact = np.tile(exact_gradient(), (GROUPS, 1))
    mean = gradient_measures(gradient_table(of_credit, [exact] * 3, tokens), whole)
    keys = (world.depth * STATES + world.state) * 2 + world.right
    anchors = [credit[keys == key] for key in np.unique(keys)]
    worth = solve()[1].reshape(-1)[np.unique(keys)]
    bias, variance = bias_variance(
        anchors, worth, np.zeros(len(worth)), found["scale"], float(truth.var())
    )
    assert found["sign_low"] == pytest.approx(found["sign_high"], abs=1e-12)
    return {
        **found,
        "sign": found["sign_low"],
        "bias": bias,
        "variance": variance,
        "cosine_batch": float(batch["cosine_batch"][0]),
        "cosine_mean": float(mean["cosine_mean"][0]),
    }


def test_the_world_is_solved_as_worked_out() -> None:
    values, advantages = solve()
    assert values[0] == pytest.approx([0.213660, 0.277800, 0.417180], abs=1e-6)
    assert advantages[0, :, 1] == pytest.approx([0.030840, 0.110400, 0.582820], abs=1e-6)
    assert len(played().group) == 18_125
    assert played().truth.std() == pytest.approx(0.168921, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_every_measure_to_the_digits(rule: str) -> None:
    credit, row = RULES[rule]
    found = measure(credit(played().forest))
    assert {name: found[name] for name in row} == pytest.approx(row, abs=1e-6)


def test_truth_itself_is_perfect_and_its_batch_has_the_known_ceiling() -> None:
    found = measure(played().truth)
    for name in ("rank", "sign", "explained", "cosine_batch", "cosine_turns", "cosine_mean"):
        assert found[name] == pytest.approx(1.0, abs=1e-3), name
    assert found["bias"] == pytest.approx(0.0, abs=1e-12)
    exact = exact_gradient()
    ceiling = np.mean([cosine(row, exact) for row in gradients(played().truth)])
    assert ceiling == pytest.approx(0.962735, abs=1e-6)


def test_scaling_a_credit_changes_nothing_that_is_reported() -> None:
    credit = grpo(played().forest)
    one, two = measure(credit), measure(7.0 * credit)
    del one["scale"], two["scale"]
    assert one == pytest.approx(two, rel=1e-6, nan_ok=True)
