"""TARL's three modes: worked numbers, equivalences, and combinations that make no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.forests import tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.annotators import CriticValues, OldLogprobs, RefLogprobs
from turngym.algos.core.forest import Forest, Group
from turngym.algos.core.recipe import Recipe
from turngym.algos.credit import (
    Gae,
    GroupCredit,
    ReturnsToGo,
    SharedMean,
    TrackedCredit,
    TreeCredit,
    TurnReturns,
)
from turngym.algos.losses import ActorCriticLoss, PolicyLoss
from turngym.algos.recipes import make_recipe, settings_of, tarl, tarl_ppo, tarl_turns
from turngym.algos.rewards.shaping import VerdictRewards
from turngym.algos.rollouts import Branch, Chains, Expand
from turngym.algos.rollouts.value_tracker import BetaTracker
from turngym.envs.core.errors import BadValueError

VERDICTS = st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=8)
LINES = st.lists(st.tuples(VERDICTS, st.booleans()), min_size=2, max_size=5)


def line(verdicts: list[int], success: bool, n: int = 2) -> Any:
    """A chain of turns of ``n`` tokens."""
    last = len(verdicts) - 1
    return tree(
        *(
            turn(
                float(success) if i == last else 0.0,
                n=n,
                parent=i - 1,
                verdict=v,
                status="running" if i < last else "solved" if success else "failed",
            )
            for i, v in enumerate(verdicts)
        )
    )


def group(*lines: tuple[list[int], bool]) -> Forest:
    return Forest.of([Group("g", "t", [line(v, s) for v, s in lines])])


def shaped(recipe: Recipe, forest: Forest) -> Forest:
    for shape in recipe.shapers:
        forest = shape(forest)
    return forest


EIGHT = [
    ([1] * 8, True),
    ([1] * 6 + [0] * 2, True),
    ([1] * 5 + [-1, 0, 0], True),
    ([1] * 6 + [0] * 2, False),
    ([1] * 4 + [-1, 0, 0, 0], False),
]
"""Eight turns each; S is 15, 13.75, 8.125, 3.75 and -2.5 (the worked numbers of section 3)."""
SCORES = [15, 13.75, 8.125, 3.75, -2.5]


def test_trajectory_mode_with_grpo() -> None:
    forest = shaped(tarl(), group(*EIGHT))
    assert forest.returns() == pytest.approx(SCORES)
    spread = np.std(SCORES, ddof=1) + 1e-6
    expected = (np.array(SCORES) - np.mean(SCORES)) / spread
    for path, advantage in zip(tarl().credit(forest, {}).advantages, expected, strict=True):
        assert path == pytest.approx(np.full(16, advantage), abs=1e-6)  # on every action token


def test_the_other_reading_of_the_scale() -> None:
    budget = {"shapers.verdict_rewards.turn_budget": 1}
    returns = shaped(make_recipe("tarl", budget), group(*EIGHT)).returns()
    assert returns == pytest.approx([11, 10.75, 5.625, 0.75, -4.5])


def test_trajectory_mode_with_ppo() -> None:
    """S on the last token; with gamma = lambda = 1 every token's advantage is S minus its value."""
    recipe = make_recipe("tarlppo", {"credit.kl_coef": 0, "credit.whiten": False})
    forest = shaped(recipe, group(EIGHT[2]))
    rewards = np.concatenate([t.rewards for t in forest.turns(forest.paths[0])])
    assert rewards == pytest.approx([0] * 15 + [8.125])
    values = np.linspace(0, 3, 17).astype(np.float32)
    values[-1] = 0
    given = recipe.credit(forest, {"values": [values]})
    assert given.advantages[0] == pytest.approx(8.125 - values[:-1], abs=1e-5)


def test_turn_end_mode_with_ppo() -> None:
    """Each turn's part at its end: what is left of S from each turn on."""
    changes = {"verdict_rewards.at": "turns", "credit.kl_coef": 0, "credit.whiten": False}
    recipe = make_recipe("tarlppo", changes)
    forest = shaped(recipe, group(([1, 1, -1, 0], True)))
    ends = [t.rewards.tolist() for t in forest.turns(forest.paths[0])]
    assert ends == [[0, 1.25], [0, 1.25], [0, -5], [0, 10]]
    advantages = recipe.credit(forest, {"values": [np.zeros(9, np.float32)]}).advantages[0]
    assert advantages == pytest.approx([7.5, 7.5, 6.25, 6.25, 5, 5, 10, 10])


def test_turn_return_mode() -> None:
    """G_i = sum of r_j from i on, plus 10 R, over all turns of the prompt or by their number."""
    lines = group(([1, 0], True), ([0, -1], False))
    over_all = np.array([12.5, 10, -5, -5])
    z = (over_all - over_all.mean()) / (over_all.std(ddof=1) + 1e-6)
    forest = shaped(tarl_turns(), lines)
    given = tarl_turns().credit(forest, {}).advantages
    assert np.concatenate(given) == pytest.approx(np.repeat(z, 2), abs=1e-6)
    by_number = make_recipe("tarlturns", {"credit.over": "index"})
    given = by_number.credit(shaped(by_number, lines), {}).advantages
    signs = np.repeat([1, 1, -1, -1], 2)  # two turns of a number: plus and minus 1 / sqrt(2)
    assert np.concatenate(given) == pytest.approx(signs / np.sqrt(2), abs=1e-5)


@given(VERDICTS, st.booleans())
def test_bands_are_disjoint_and_one_mistake_counts(verdicts: list[int], success: bool) -> None:
    score = shaped(tarl(), group((verdicts, success))).returns()[0]
    bad = -1 in verdicts
    low = {(True, False): 10, (True, True): 5, (False, False): 0, (False, True): -5}[success, bad]
    assert low <= score <= low + 5
    judged = tarl().shapers[0](group((verdicts, success)))
    said = [t.verdict for t in judged.turns(judged.paths[0])]
    assert said.count(-1) == (1 if bad else 0)
    assert VerdictRewards().score(said, float(success)) == pytest.approx(score, abs=1e-5)


@given(LINES)
def test_advantages_of_a_prompt_sum_to_nothing(lines: list[tuple[list[int], bool]]) -> None:
    """GRPO's mean is 0 per path of a prompt, the turn returns' per turn; equal returns give 0."""
    forest = group(*lines)
    whole = tarl().credit(shaped(tarl(), forest), {}).advantages
    assert sum(float(a[0]) for a in whole) == pytest.approx(0, abs=1e-4)
    turns = tarl_turns().credit(shaped(tarl_turns(), forest), {}).advantages
    assert sum(float(a[::2].sum()) for a in turns) == pytest.approx(0, abs=1e-4)
    for advantages, (verdicts, _) in zip(turns, lines, strict=True):
        assert len(advantages) == 2 * len(verdicts)  # action tokens alone


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.booleans()), min_size=2, max_size=6))
def test_with_one_turn_the_modes_are_one(lines: list[tuple[int, bool]]) -> None:
    forest = group(*(([v], s) for v, s in lines))
    one = tarl().credit(shaped(tarl(), forest), {}).advantages
    other = tarl_turns().credit(shaped(tarl_turns(), forest), {}).advantages
    assert np.concatenate(one) == pytest.approx(np.concatenate(other), abs=1e-6)


def test_an_episode_without_turns_scores_its_outcome() -> None:
    assert VerdictRewards().score([], 1) == 10
    assert VerdictRewards().score([], 0) == 0


NOTES = (OldLogprobs(), RefLogprobs(), CriticValues())
CRITIC: dict[str, Any] = {"loss": ActorCriticLoss(), "annotators": NOTES}
AT_TURNS = (VerdictRewards(at="turns"),)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"credit": GroupCredit(), "shapers": AT_TURNS}, "GroupCredit only reads a path's whole"),
        ({"credit": TreeCredit(), "shapers": AT_TURNS}, "TreeCredit only reads a path's whole"),
        ({"credit": SharedMean(), "shapers": AT_TURNS}, "SharedMean only reads a path's whole"),
        (
            {"credit": TrackedCredit(), "tracker": BetaTracker(), "shapers": AT_TURNS},
            "TrackedCredit only reads",
        ),
        (
            {"credit": TurnReturns(), "shapers": (VerdictRewards(),)},
            "all turns of a path are equal",
        ),
        (
            {"credit": TurnReturns(), "shapers": AT_TURNS, "rollout": Expand(trees=2, nodes=2)},
            r"Expand.* share turns.*Use Chains, or at='trajectory'",
        ),
        (
            {"credit": Gae(), **CRITIC, "shapers": AT_TURNS, "rollout": Branch()},
            "Branch.* share turns",
        ),
    ],
)
def test_combinations_that_make_no_sense_are_refused(parts: dict[str, Any], reason: str) -> None:
    made: dict[str, Any] = {"rollout": Chains(n=4), "loss": PolicyLoss()}
    with pytest.raises(BadValueError, match=reason):
        Recipe(name="mine", paper="none", **(made | parts))


def test_settings_that_would_do_nothing_are_refused() -> None:
    with pytest.raises(BadValueError, match="would change nothing"):
        make_recipe("tarl", {"verdict_rewards.at": "turns"})
    with pytest.raises(BadValueError, match="Use at='turns', or GroupCredit"):
        make_recipe("tarlturns", {"verdict_rewards.at": "trajectory"})


def test_turn_rewards_go_with_what_looks_at_turns() -> None:
    made: dict[str, Any] = {"name": "mine", "paper": "none", "shapers": AT_TURNS}
    assert Recipe(rollout=Chains(n=4), credit=TurnReturns(), loss=PolicyLoss(), **made)
    assert Recipe(rollout=Chains(n=1), credit=ReturnsToGo(), loss=PolicyLoss(), **made)
    assert Recipe(rollout=Chains(n=1), credit=Gae(), **CRITIC, **made)
    assert Recipe(name="m", paper="n", rollout=Chains(n=4), credit=TurnReturns(), loss=PolicyLoss())


def test_the_recipes_differ_where_they_say() -> None:
    assert tarl_ppo().critic
    assert not tarl_turns().critic
    assert settings_of(tarl_turns())["shapers.verdict_rewards.at"] == "turns"
    assert settings_of(tarl_ppo())["loss.value.clip"] == 5.0
    assert make_recipe("TARL-PPO").name == "tarlppo"
