"""The ladder's data: columns that can be made, rows that can be trained, ceilings that hold."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from turngym.algos.recipes import RECIPES, make_recipe
from turngym.benchmarks.cli.bench import find_suite
from turngym.benchmarks.ladder.catalogue import SUITES
from turngym.benchmarks.ladder.families import (
    CONTROL,
    FAMILIES,
    WIDE_RATES,
    Family,
    column_edges,
    find_family,
)
from turngym.benchmarks.ladder.oracle.arms import twin_of
from turngym.benchmarks.ladder.stale_suites import (
    CHOOSING,
    COMPARING,
    GRID_RATES,
    LADDER_STALE_GRID,
    STALE_LOSSES,
    grid_label,
)
from turngym.benchmarks.ladder.suites import (
    HOUSEHOLD_CRITICS,
    LADDER,
    LADDER_EQUAL_RATES,
    LADDER_FULL,
    LADDER_RATES,
    LADDER_STATE,
    LADDER_WIDE_RATES,
    RETAIL_SCALE,
    SCIENCE_TURNS,
    SEPARATING,
    families_of,
    is_ladder,
    sizes_of,
)
from turngym.benchmarks.matrix.suite import Suite
from turngym.envs.core.errors import UnknownNameError


@pytest.mark.parametrize(
    "name", ["ladder", "ladder-full", "ladder-stale-grid", "ladder-state", "separating"]
)
def test_the_command_finds_the_suites(name: str) -> None:
    assert find_suite(name) is SUITES[name]
    assert find_suite(name).seeds


@pytest.mark.parametrize(
    "suite",
    [LADDER, LADDER_STALE_GRID, LADDER_STATE, SEPARATING],
    ids=["ladder", "ladder-stale-grid", "ladder-state", "separating"],
)
def test_every_column_can_be_made_and_every_row_of_it_trained(suite: Any) -> None:
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for column in suite.envs:
        env: Any = gym.make(column.id, **column.settings).unwrapped
        size = env.source.sizes()[column.eval_split]
        assert size is None or size >= column.eval_tasks
        for label in column.rows:
            row = suite.recipe(label)
            step = {"tokens_per_step": column.tokens_per_step}
            settings = {**step, **column.recipe_settings, **row.settings}
            asked[f"{row.name} {settings}"] = row.name, settings
    for name, settings in asked.values():
        assert make_recipe(name, settings, small=True).tokens_per_step


def test_quick_has_three_sizes_a_control_and_the_row_of_chance() -> None:
    assert is_ladder(LADDER)
    assert is_ladder(LADDER_FULL)
    assert not is_ladder(SEPARATING)
    assert families_of(LADDER) == list(FAMILIES.values())
    for family in FAMILIES.values():
        assert sizes_of(LADDER, family) == list(family.quick)
        assert sizes_of(LADDER_FULL, family) == list(family.sizes)
    assert LADDER.yardsticks == {"grpo again": "grpo"}
    assert all("grpo again" in column.rows for column in LADDER.envs)
    assert len(LADDER.cells) < 1_800  # two hours of two cores at eight seconds


def test_rows_of_equal_rates_have_one_rate_and_seeds_of_their_own() -> None:
    suite = LADDER_EQUAL_RATES
    assert is_ladder(suite)
    assert suite.yardsticks == {"grpo again": "grpo"}
    assert not {*suite.seeds} & {*LADDER_FULL.seeds, *LADDER_RATES.seeds}
    for column in suite.envs:
        assert not column.row_settings
        assert all("optim.lr" not in suite.recipe(label).settings for label in column.rows)
        # in the ladder some of these rows have another one: that is what is asked
        assert LADDER_FULL.column(column.name).row_settings.keys() & set(column.rows)


def test_the_grid_has_every_loss_at_every_rate_in_the_ladder_s_columns() -> None:
    suite = LADDER_STALE_GRID
    assert is_ladder(suite)
    assert suite.yardsticks == {"grpo again": "grpo"}
    assert not {*CHOOSING} & {*COMPARING}
    others = (LADDER_FULL, LADDER_RATES, LADDER_EQUAL_RATES, LADDER_WIDE_RATES)
    assert not {*suite.seeds} & {seed for other in others for seed in other.seeds}
    assert len(suite.recipes) == len(STALE_LOSSES) * len(GRID_RATES) + 1
    for own in STALE_LOSSES:
        for rate in GRID_RATES:
            row = suite.recipe(grid_label(own.label, rate))
            assert (row.name, row.settings) == (own.name, {**own.settings, "optim.lr": rate})
    shared = {row.label for row in LADDER.recipes} & {row.label for row in STALE_LOSSES}
    assert shared == {"grpo", "no clip", "gspo", "reinforcepp", "ppo"}
    assert all(row in LADDER.recipes for row in STALE_LOSSES if row.label in shared)
    # a rate that the ladder has too gives the same run there
    for column in suite.envs:
        assert not column.row_settings
        theirs = LADDER.column(column.name)
        assert column.model_copy(update={"rows": theirs.rows}) == theirs.model_copy(
            update={"row_settings": {}}
        )


def test_rows_of_a_wider_grid_have_its_rates_beside_the_ladder_s_baseline() -> None:
    suite = LADDER_WIDE_RATES
    assert is_ladder(suite)
    assert Suite.model_validate(suite.model_dump()) == suite
    assert suite.yardsticks == {"grpo again": "grpo"}
    others = (LADDER_FULL, LADDER_RATES, LADDER_EQUAL_RATES, HOUSEHOLD_CRITICS)
    assert not {*suite.seeds} & {seed for other in others for seed in other.seeds}
    for column in suite.envs:
        family = FAMILIES[column.name.partition("-")[0]]
        assert column.rows == ["grpo", *WIDE_RATES[family.name], "grpo again"]
        theirs = LADDER_FULL.column(column.name)
        same = {"rows": column.rows, "row_settings": column.row_settings}
        assert column == theirs.model_copy(update=same)
        for label in ("grpo", "grpo again"):
            own = LADDER_FULL.row_settings(label, column.name)
            assert suite.row_settings(label, column.name) == own
        for label, rate in WIDE_RATES[family.name].items():
            assert suite.row_settings(label, column.name) == {"optim.lr": rate}
            assert family.rates.get(label, family.lr) != rate


def test_the_rows_by_state_take_over_the_ladder_s_baseline() -> None:
    assert is_ladder(LADDER_STATE)
    assert [family.name for family in families_of(LADDER_STATE)] == ["Corridor", "Keys", "Aliases"]
    assert LADDER_STATE.yardsticks == {"grpo again": "grpo"}
    assert set(LADDER.seeds) < set(LADDER_STATE.seeds)
    known = {cell.key: LADDER_FULL.cell_digest(cell) for cell in LADDER_FULL.cells}
    for cell in LADDER_STATE.cells:
        if cell.recipe.startswith("grpo"):
            assert LADDER_STATE.cell_digest(cell) == known[cell.key]
    made = {r.label: make_recipe(r.name, r.settings, small=True) for r in LADDER_STATE.recipes}
    plain = made["grpo"]
    for label in ("gigpo", "hgpo", "g2po", "graphgpo", "gigpo history"):
        # their credit is all that differs, beside the number of mini batches that columns set
        assert made[label].rollout == plain.rollout
        assert made[label].loss == plain.loss
        assert (made[label].reads_states, made[label].needs) == (label != "gigpo history", set())


def test_rows_that_are_not_run_have_a_twin_that_is_and_a_reason() -> None:
    labels = {row.label for row in LADDER.recipes}
    for family in FAMILIES.values():
        assert set(family.rows) <= labels, family.name
        assert set(family.same) <= labels | set(RECIPES), family.name
        assert family.rows[0] == "grpo"
        assert not set(family.rows) & set(family.same)
        assert bool(family.same) == bool(family.same_because)


def test_a_control_takes_the_difficulty_away() -> None:
    lottery, stale = find_family("Lottery"), find_family("Stale")
    assert lottery.settings(CONTROL) == {"free": 3, "doors": 3, "luck": 0.0}
    assert lottery.settings(0.9)["luck"] == 0.9
    assert stale.optimiser(CONTROL)["optim.minibatches"] == 1
    assert (stale.optimiser(32)["optim.minibatches"], stale.optimiser(32)["optim.epochs"]) == (
        16,
        2,
    )
    assert lottery.optimiser(0.9)["optim.epochs"] == 1


@pytest.mark.parametrize("fog", [0.1, 0.3, 0.5])
def test_the_fog_has_the_ceiling_of_who_looks(fog: float) -> None:
    env: Any = gym.make("Fog-v0", fog=fog, looks=3).unwrapped
    look = env.baselines()["looker"](0)
    solved = 0
    for episode in range(600):
        observation, info = env.reset(seed=episode, options={"split": "train"})
        done = False
        while not done:
            observation, _, done, cut, info = env.step(look(env, observation, info))
            done = done or cut
        solved += info["status"] == "solved"
    assert solved / 600 == pytest.approx(find_family("Fog").ceiling(fog), abs=0.05)


def test_bad_families_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Lottery"):
        find_family("Lotery")
    data: dict[str, Any] = find_family("Lottery").model_dump()
    changes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"sizes": (0.9, 0.8, 0.5)}, "rising"),
        ({"middle": 0.3}, "among all"),
        ({"updates": True}, "either"),
        ({"same": {"dapo": "nobody"}}, "no rows"),
    )
    for change, word in changes:
        with pytest.raises(ValueError, match=word):
            Family(**data | change)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_the_floor_is_what_random_letters_score(family: Family) -> None:
    """By the oracle's tables, whose letters in Spawn are not single ones."""
    if family.name == "Spawn":
        assert family.edges(4).floor == 0.0
        return
    for size in (*family.sizes, CONTROL):
        assert family.edges(size).floor == pytest.approx(guess(family, size), abs=0.02)
    assert column_edges()[family.column(CONTROL)] == family.edges(CONTROL)


def guess(family: Family, size: Any, episodes: int = 4000) -> float:
    """Play the tabular twin with uniformly random letters."""
    twin, rng = twin_of(family, size), np.random.default_rng(0)
    tasks = twin.draw_tasks(rng, episodes)
    states, live = twin.begin(tasks), np.arange(episodes)
    for _ in range(twin.horizon):
        letters = rng.integers(twin.letters, size=len(live))
        moves = twin.step(states[live], letters, tasks[live], rng)
        states[live] = moves.states
        live = live[~moves.done]
    return float(twin.measure(states, tasks).mean())


@pytest.mark.parametrize(
    ("again", "led"),
    [
        (HOUSEHOLD_CRITICS, ["reinforcepp", "ppo", "spo"]),
        (SCIENCE_TURNS, ["reinforcepp", "ppo", "tarlturns"]),
        (RETAIL_SCALE, ["tarl"]),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_what_led_is_repeated_on_seeds_of_its_own_in_the_same_column(
    again: Suite, led: list[str]
) -> None:
    (column,) = again.envs
    (first,) = (env for env in SEPARATING.envs if env.name == column.name)
    assert column.model_copy(update={"rows": first.rows}) == first
    assert not set(again.seeds) & set(SEPARATING.seeds)
    repeated = [row.label for row in again.recipes if row in SEPARATING.recipes]
    assert repeated == ["grpo", "grpo again", *led]
