"""Groups that may only use so much."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.rollout_laws import Hall, check_replay, episodes, plain, play
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.forest import Group
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts import Branch, Chains, Expand
from turngym.envs.core.errors import BadValueError

LONGEST = 5
MOST = {"tokens": 8, "calls": 1}
WIDE: list[Any] = [
    lambda **limit: Chains(n=40, **limit),
    lambda **limit: Expand(trees=15, nodes=3, rounds=2, **limit),
    lambda **limit: Expand(trees=15, nodes=3, granularity="tokens", span=2, **limit),
    lambda **limit: Expand(trees=15, nodes=3, keep=2, **limit),
    lambda **limit: Branch(budget=40, **limit),
]
NAMES = ["chains", "expand", "inside", "keep", "branch"]
SEEDS = st.integers(0, 10**6)


def paid(group: Group, unit: str) -> int:
    """What a group used, whatever became of it."""
    turns = [t for tree in group.trees for t in tree.turns]
    if unit == "tokens":
        return sum(len(t.act_ids) for t in turns) + group.pruned_tokens
    return sum(not t.partial for t in turns) + group.pruned_turns


@pytest.mark.parametrize("unit", ["tokens", "calls"])
@pytest.mark.parametrize("make", WIDE, ids=NAMES)
@given(st.integers(1, 40), SEEDS)
@settings(max_examples=15, deadline=None)
def test_a_limit_is_used_up_and_passed_by_at_most_one_turn(
    unit: str, make: Any, amount: int, seed: int
) -> None:
    limit = {f"limit_{unit}": amount}
    group, engine = play(make(**limit), seed)
    # each has 40 paths or more, and none costs less than a call or a token
    assert amount <= paid(group, unit) < amount + MOST[unit]
    assert paid(group, "calls") == len(engine.requests) == Hall.steps
    assert not engine.alive
    check_replay(group, seed)
    assert plain(group) == plain(play(make(**limit), seed, delays=seed)[0])


@pytest.mark.parametrize("make", [WIDE[0], WIDE[1], WIDE[4]], ids=["chains", "expand", "branch"])
@given(st.integers(1, 90), SEEDS, st.sampled_from(["tokens", "calls"]))
@settings(max_examples=20, deadline=None)
def test_only_one_episode_is_cut_off(make: Any, amount: int, seed: int, unit: str) -> None:
    """Many that began together would all be cut off at once, for nothing."""
    group, _ = play(make(**{f"limit_{unit}": amount}), seed)
    assert group.pruned_turns < LONGEST


@pytest.mark.parametrize(("amount", "whole"), [(60, 20), (12, 4), (13, 4), (3, 1), (2, 0)])
def test_a_limit_buys_whole_episodes(amount: int, whole: int) -> None:
    """Three turns each; the world would allow five."""
    group, _ = play(Chains(n=40, limit_calls=amount), words=("x.",), max_turns=3)
    assert len(group.trees) == whole
    assert group.pruned_turns == amount - 3 * whole
    group, _ = play(Chains(n=40, limit_calls=amount, limit_tokens=7), words=("x.",), max_turns=3)
    assert len(group.trees) == min(whole, 1)  # two tokens a turn: the fourth one passes the limit
    assert paid(group, "tokens") == min(2 * amount, 8)


@pytest.mark.parametrize("make", WIDE, ids=NAMES)
@given(SEEDS)
@settings(max_examples=10, deadline=None)
def test_a_limit_that_is_never_reached_changes_nothing(make: Any, seed: int) -> None:
    free = plain(play(make(), seed)[0])
    assert free == plain(play(make(limit_tokens=10**6), seed)[0])
    assert free == plain(play(make(limit_calls=10**6, limit_tokens=10**6), seed)[0])


@given(st.integers(1, 90), SEEDS, st.sampled_from(["tokens", "calls"]))
@settings(max_examples=20, deadline=None)
def test_what_is_kept_is_what_would_have_been_played_without_a_limit(
    amount: int, seed: int, unit: str
) -> None:
    free = plain(play(Chains(n=40), seed)[0])[3]
    some = plain(play(Chains(n=40, **{f"limit_{unit}": amount}), seed)[0])[3]
    rest = iter(free)
    assert all(tree in rest for tree in some)  # in order, each for itself


def test_broken_episodes_are_paid_for_and_stay() -> None:
    group, _ = play(Chains(n=40, limit_calls=7), words=("b.",))
    assert [line[-1][0].status for t in group.trees for line in episodes(t)] == ["env_error"] * 7
    assert group.pruned_turns == 0


@pytest.mark.parametrize("name", ["grpo", "treegrpo", "arpo"])
def test_limits_are_settings_of_the_recipes(name: str) -> None:
    recipe = make_recipe(name, {"limit_tokens": "900", "rollout.limit_calls": "30"})
    assert (recipe.rollout.limit_tokens, recipe.rollout.limit_calls) == (900, 30)  # pyright: ignore
    assert make_recipe(name, {"limit_tokens": "none"}) == make_recipe(name)
    with pytest.raises(BadValueError, match="limit_tokens is 0; expected at least 1, or none"):
        make_recipe(name, {"limit_tokens": "0"})
