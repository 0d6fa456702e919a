"""Every recipe learns every diagnostic world that it should, from a model that knows nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.learning import LADDER, LEAST, NOT_LEARNED, REFUSED, SETTINGS, STEPS, learn

from turngym.algos.recipes import RECIPES
from turngym.envs import all_ids, find_environment

QUICK = [("treegrpo", "Bandit-v0")]
CELLS = [(recipe, env_id) for recipe in SETTINGS for env_id in STEPS]
SHOULD = [cell for cell in CELLS if cell not in {*NOT_LEARNED, *REFUSED}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learning")


def check(recipe: str, env_id: str, folder: Path) -> None:
    seen = learn(recipe, env_id, folder)
    print(f"{recipe} {env_id} {seen.before:.2f} -> {seen.after:.2f} in {seen.seconds:.0f} s")
    assert seen.before <= 0.25
    assert seen.after >= LEAST[env_id]


def test_the_table_has_every_recipe_and_every_diagnostic_world() -> None:
    ours = "turngym.envs.diagnostic."
    hidden = [i for i in all_ids(hidden=True) if find_environment(i).entry_point.startswith(ours)]
    assert sorted(SETTINGS) == sorted(RECIPES)
    assert sorted(STEPS) == sorted(LEAST) == sorted(set(hidden) - set(LADDER))
    assert set(LADDER) <= set(hidden)
    assert set(NOT_LEARNED) <= set(CELLS)
    assert all(NOT_LEARNED.values())
    assert set(REFUSED) <= set(CELLS)


@pytest.mark.parametrize(("recipe", "env_id"), QUICK)
def test_a_cell_of_the_table(recipe: str, env_id: str, folder: Path) -> None:
    check(recipe, env_id, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "env_id"), [c for c in SHOULD if c not in QUICK])
def test_a_recipe_learns_a_world(recipe: str, env_id: str, folder: Path) -> None:
    check(recipe, env_id, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "env_id"), NOT_LEARNED)
def test_what_a_recipe_should_not_learn_it_does_not(recipe: str, env_id: str, folder: Path) -> None:
    assert learn(recipe, env_id, folder).after < LEAST[env_id]
