"""Suites: frozen contents, what they cover, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from helpers.tiny_matrix import tiny
from pydantic import ValidationError

from turngym.agents.models.device_memory import SHARE
from turngym.algos.recipes import RECIPES, make_recipe
from turngym.algos.training.config import EnvConfig
from turngym.benchmarks.matrix.machine_info import check_gpus
from turngym.benchmarks.matrix.suite import Limits, RateSearch, Suite, SuiteEnv
from turngym.benchmarks.matrix.suites import SUITES
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.core.registration import all_ids, find_environment

DIGESTS = {
    "quick": (4, "64bacae29606769d8f51d810eda8c035"),
    "standard": (5, "f182862e0b9de5f51ff7a80a99f4daae"),
    "lm": (7, "2622c34b82b4d98b331175f86ff5266c"),
    "full": (4, "2994fe028dceb22f404a5f744dd7c819"),
}
"""A suite that changes needs a new version, and its new digest here."""
OURS = [r for r in RECIPES if RECIPES[r].factory.__module__.startswith("turngym.")]
WORLDS = [e for e in all_ids() if find_environment(e).builtin]


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_frozen(name: str) -> None:
    suite = SUITES[name]
    assert (suite.version, suite.digest) == DIGESTS[name]
    with pytest.raises(ValidationError, match="frozen"):
        suite.version = 2  # type: ignore[misc]


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_has_every_recipe_and_every_environment(name: str) -> None:
    suite = SUITES[name]
    assert {r.label for r in suite.recipes} - suite.yardsticks.keys() == set(OURS)
    assert name == "lm" or {e.id for e in suite.envs} >= set(WORLDS)
    assert len(suite.cells) == len(suite.recipes) * len(suite.envs) * len(suite.seeds)
    in_columns = {repr(column.recipe_settings): column.recipe_settings for column in suite.envs}
    for row in suite.recipes:
        for settings in in_columns.values():
            make_recipe(row.name, {**settings, **row.settings}, small=suite.small)


def test_rates_and_steps_of_a_real_model() -> None:
    suite = SUITES["lm"]
    for column in suite.envs:
        for row in suite.recipes:
            settings = {**column.recipe_settings, **row.settings}
            optim = make_recipe(row.name, settings, small=suite.small).optim
            assert (optim.lr, optim.critic_lr) == (1e-5, 1e-4)
        assert column.tokens_per_step is not None
        assert 10 <= column.limits.tokens // column.tokens_per_step <= 30
    least = {"SearchQA-1hop": 52, "SearchQA-2hop": 75, "Retail-tier1": 373}  # an expert's tokens
    for name, tokens in least.items():
        assert (suite.column(name).tokens_per_step or 0) >= 4 * 8 * tokens


@pytest.mark.parametrize("env_id", [e.id for e in SUITES["quick"].envs])
def test_settings_of_the_worlds_exist(env_id: str) -> None:
    for name in ("quick", "standard", "lm"):
        for column in SUITES[name].envs:
            if column.id == env_id:
                EnvConfig(id=env_id, settings=column.settings).make()


def test_a_suite_file_is_the_suite(tmp_path: Path) -> None:
    suite = tiny()
    suite.write(tmp_path / "suite.json")
    read = Suite.read(tmp_path / "suite.json")
    assert read == suite
    assert read.digest == suite.digest
    assert tiny(seeds=(0, 1)).digest != suite.digest


def test_a_damaged_suite_file_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "suite.json"
    tiny().write(path)
    path.write_text(path.read_text().replace('"tokens": 60', '"tokens": 0'))
    with pytest.raises(DataError, match=r"suite\.json: envs\.0\.limits\.tokens: .*greater"):
        Suite.read(path)
    path.write_text("{")
    with pytest.raises(DataError, match="it was cut or damaged"):
        Suite.read(path)
    with pytest.raises(DataError, match="there is no such file"):
        Suite.read(tmp_path / "other.json")


def test_the_name_of_a_suite_is_one_line() -> None:
    with pytest.raises(ValidationError, match=r"name\n.*pattern"):
        Suite.model_validate({**tiny().model_dump(), "name": "two\nlines"})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seeds": (0, 0)}, "duplicate name"),
        ({"seeds": (0, -1)}, "greater than or equal to 0"),
        ({"recipes": ("grpo", "grpo")}, "duplicate name"),
        ({"eval_temperature": 0.0}, "greater than 0"),
        ({"lr_search": RateSearch(scales=(1, 0.1), seeds=(0,), share=0.5)}, "a seed of it"),
        ({"recipes": ()}, "at least 1"),
        ({"recipes": ("g" * 221,)}, "236 char.* at most 235"),
    ],
)
def test_bad_suites(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        tiny(**changes)  # type: ignore[arg-type]


def test_rows_and_columns_may_have_variants() -> None:
    suite = tiny(("grpo",))
    row, column = suite.recipes[0], suite.envs[0]
    other = row.model_copy(update={"label": "grpo fast", "settings": {"optim.lr": 1e-2}})
    fast = SuiteEnv(**{**column.model_dump(), "name": "Short", "limits": Limits(tokens=9, calls=9)})
    variants = {**suite.model_dump(), "recipes": (row, other, row.again()), "envs": (column, fast)}
    made = Suite.model_validate(variants)
    assert [e.name for e in made.envs] == ["Bandit-v0", "Short"]
    assert made.yardsticks == {"grpo again": "grpo"}
    assert made.column("Short").limits.tokens == 9
    assert len(made.only(["env=Bandit"])) == 6
    assert {c.recipe for c in made.only(["recipe=grpo", "column=Short"])} == {
        "grpo",
        "grpo fast",
        "grpo again",
    }
    assert [c.key for c in made.only(["row=grpo fast", "column=Short"])] == ["grpo fast--Short--s0"]
    with pytest.raises(ValidationError, match="duplicate name"):
        Suite.model_validate({**variants, "envs": (column, column)})
    with pytest.raises(ValidationError, match="shares a seed"):
        Suite.model_validate({**variants, "seeds": (0, 1000)})
    with pytest.raises(ValidationError, match="pattern"):
        SuiteEnv(**{**column.model_dump(), "name": "a/b"})


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_has_an_a_a_row(name: str) -> None:
    assert SUITES[name].yardsticks == {"grpo again": "grpo"}


def test_only_leaves_what_is_named() -> None:
    suite = tiny(("grpo", "ppo", "rloo"), ("Bandit-v0", "Password-v0"), (0, 1))
    keys = [c.key for c in suite.only(["recipe=grpo", "recipe=rloo", "env=Bandit", "seed=1"])]
    assert keys == ["grpo--Bandit-v0--s1", "rloo--Bandit-v0--s1"]
    assert suite.only([]) == suite.cells


@pytest.mark.parametrize("word", ["grpo", "recipes=grpo", "recipe"])
def test_words_of_only(word: str) -> None:
    with pytest.raises(BadValueError, match="expected recipe=NAME"):
        tiny().only([word])


@pytest.mark.parametrize("word", ["recipe=grop", "env=Bandt-v0", "seed=7"])
def test_names_that_only_does_not_know(word: str) -> None:
    with pytest.raises(UnknownNameError, match="suite tiny"):
        tiny().only([word])


def test_workers_on_one_card_need_a_share_that_is_large_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = SimpleNamespace(name="Card", total_memory=160 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    full = SUITES["full"]  # it needs 70 GB
    check_gpus(full, ["0"])
    check_gpus(full, ["0"], 2)
    check_gpus(full, ["0", "1"], 4)
    check_gpus(SUITES["lm"], ["0"], 12)
    with pytest.raises(BadValueError, match=r"each worker; Card has 160 GB for 3 .*--workers 2\."):
        check_gpus(full, ["0"], 3)
    with pytest.raises(BadValueError, match=r"for 3 of them\. Give at most --workers 4\."):
        check_gpus(full, ["0", "1"], 5)
    card.total_memory = 144 * 2**30  # what two may take leaves room for what neither counts
    with pytest.raises(BadValueError, match=r"for 2 of them\. Give at most --workers 1\."):
        check_gpus(full, ["0"], 2)
    monkeypatch.setenv(SHARE, "0.3")  # of another program on the card
    with pytest.raises(BadValueError, match="Card has 43 GB"):
        check_gpus(full, ["0"])
