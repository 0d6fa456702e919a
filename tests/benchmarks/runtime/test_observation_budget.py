"""Observations are cut so that an episode fits the model's context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.small_models import model

from turngym.agents.models.random_init import BlankSettings, blank_model
from turngym.algos import EnvConfig
from turngym.algos.runs.progress import Silent
from turngym.benchmarks.runtime import observation_budget
from turngym.benchmarks.runtime.observation_budget import MIN_CHARS, SETTING, fitted
from turngym.envs.core.errors import BadValueError

WORLD = EnvConfig(id="SearchQA-v0", settings={"size": "micro"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blank")
    blank_model(WORLD.prototype, folder, BlankSettings(context=4096))
    return folder


def limited(folder: Path, tmp_path: Path, limit: int) -> str:
    """The model with another context."""
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "config.json").unlink()
    known = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(known | {"max_position_embeddings": limit}))
    return str(tmp_path)


def test_a_context_with_room_leaves_the_environment_as_it_is(folder: Path) -> None:
    assert fitted(WORLD, str(folder), 16, True, Silent()) is WORLD


def test_a_short_one_gives_a_budget_that_is_smaller_the_shorter_it_is(
    folder: Path, tmp_path: Path
) -> None:
    budgets = []
    for limit in (380, 410):
        place = tmp_path / str(limit)
        place.mkdir()
        found = fitted(WORLD, limited(folder, place, limit), 16, True, Silent())
        budgets.append(found.settings[SETTING])
    assert MIN_CHARS <= budgets[0] < budgets[1]


def test_what_was_given_stays_and_no_budget_is_refused(folder: Path, tmp_path: Path) -> None:
    short = limited(folder, tmp_path, 200)
    given = EnvConfig(id=WORLD.id, settings={**WORLD.settings, SETTING: 900})
    assert fitted(given, short, 16, True, Silent()) is given
    with pytest.raises(BadValueError, match=r"do not fit the model's context of 200 tokens"):
        fitted(WORLD, short, 16, True, Silent())


def test_the_limit_is_read_of_every_family(folder: Path, tmp_path: Path) -> None:
    assert observation_budget._context(str(folder)) == 4096
    model("Llama", max_position_embeddings=333).save_pretrained(tmp_path / "llama")
    assert observation_budget._context(str(tmp_path / "llama")) == 333
    assert observation_budget._context(str(tmp_path)) is None
