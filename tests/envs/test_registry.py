"""Registration: lazy, by data, with errors that name the nearest."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import gymnasium as gym
import pytest
from helpers.guess_worlds import Guess

import turngym.envs
from turngym.envs.core import registration
from turngym.envs.core.env import TextEnv
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.registration import (
    EnvironmentSpec,
    all_ids,
    breakdown_metrics,
    environment_class,
    find_environment,
    register_environment,
    registered_environments,
)

WORLD = EnvironmentSpec(
    id="TestRegistry-v0", entry_point="helpers.guess_worlds:Guess", summary="test", hidden=True
)
register_environment(WORLD)


def test_search_qa_is_listed_and_hidden_worlds_only_on_request() -> None:
    assert "SearchQA-v0" in all_ids()
    assert "TestRegistry-v0" not in all_ids()
    assert "TestRegistry-v0" in all_ids(hidden=True)
    assert all_ids() == sorted(all_ids())
    world = find_environment("SearchQA-v0")
    assert set(world.sizes) == {"full", "micro"}
    assert world.splits == ("train", "dev", "test")


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'SearchQA-v0'"):
        find_environment("SerchQA-v0")
    with pytest.raises(UnknownNameError, match=r"MODULE:Id-v0 .* --plugin FILE"):
        find_environment("Mine-v0")
    with pytest.raises(gym.error.NameNotFound, match="SearchQA"):
        gym.make("SerchQA-v0")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("retail", "Retail-v0"),
        ("SearchQA-v1", "SearchQA-v0"),
        ("crawler", "PaperCrawler-v0"),
        ("Fogg-v0", "Fog-v0"),
        ("Mine-v0", ""),
        ("Chess-v0", ""),
        ("HotpotQA-v0", ""),
        ("SmallestFirst-v0", ""),
    ],
)
def test_a_version_makes_no_id_like_another(name: str, near: str) -> None:
    known = [row.id for row in registered_environments() if row.builtin]
    said = str(UnknownNameError("environment", name, known))
    assert (f"Did you mean {near!r}?" in said) if near else "Did you mean" not in said


def test_the_nearest_version_is_named() -> None:
    said = str(UnknownNameError("suite", "quick-v20", ["quick-v1", "quick-v2", "fast-v20"]))
    assert "Did you mean 'quick-v2'?" in said


def test_make_gives_the_bare_world_with_its_spec() -> None:
    env = gym.make("TestRegistry-v0", max_turns=3)
    assert type(env) is Guess
    assert env.name == "TestRegistry-v0"
    assert env.spec is not None
    assert env.spec.kwargs == {"max_turns": 3}
    again = env.spec.make()
    assert isinstance(again, TextEnv)
    assert again.max_turns == 3
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert gym.make(spec).reset(seed=1) == env.reset(seed=1)


def test_wrong_settings_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown setting 'max_tunrs'.*'max_turns'"):
        gym.make("TestRegistry-v0", max_tunrs=3)
    with pytest.raises(UnknownNameError, match=r"unknown size 'mikro'.*'micro'"):
        gym.make("TestRegistry-v0", size="mikro")
    with pytest.raises(UnknownNameError, match=r"unknown setting 'max_tunrs'.*'max_turns'"):
        gym.make_vec("TestRegistry-v0", num_envs=2, max_tunrs=3)
    with pytest.raises(UnknownNameError, match=r"'mikro'.*'micro'"):
        gym.make("SearchQA-v0", size="mikro")
    with pytest.raises(UnknownNameError, match=r"unknown setting 'sise'.*'size'"):
        gym.make("SearchQA-v0", sise="micro")


def test_the_registry_names_the_expert() -> None:
    from turngym.envs.game24.env import Game24
    from turngym.envs.game24.expert import Expert

    class Variant(Game24):
        pass

    assert isinstance(gym.make("Game24-v0").unwrapped.expert(mistakes=0.5, seed=1), Expert)
    assert isinstance(Variant().expert(), Expert)
    with pytest.raises(NotImplementedError, match="no scripted expert"):
        TextEnv.expert(Guess())


def test_an_id_is_registered_once() -> None:
    register_environment(WORLD)  # the same again, as after a reload, changes nothing
    assert find_environment("TestRegistry-v0") == WORLD
    with pytest.raises(BadValueError, match="registered already"):
        register_environment(
            EnvironmentSpec(id="TestRegistry-v0", entry_point="x:Y", summary="other")
        )
    with pytest.raises(BadValueError, match="registered already"):
        register_environment(
            EnvironmentSpec(id="CartPole-v1", entry_point="x:Y", summary="not ours")
        )


def test_a_cell_of_a_notebook_may_register_again(monkeypatch: pytest.MonkeyPatch) -> None:
    main = sys.modules["__main__"]
    row = dataclasses.replace(WORLD, id="TestCell-v0", entry_point="__main__:OfCell", expert="")
    try:
        for turns in (3, 5):
            cell = type("OfCell", (Guess,), {"__module__": "__main__", "edition": turns})
            monkeypatch.setattr(main, "OfCell", cell, raising=False)
            register_environment(dataclasses.replace(row, kwargs={"max_turns": turns}))
            made: Any = gym.make("TestCell-v0")
            assert (made.max_turns, made.edition) == (turns, turns)
            assert find_environment("TestCell-v0").kwargs == {"max_turns": turns}
        for other in ("__main__:Other", "mine:OfCell"):
            with pytest.raises(BadValueError, match="registered already"):
                register_environment(dataclasses.replace(row, entry_point=other))
        with pytest.raises(BadValueError, match="registered already"):  # a module's is no cell
            register_environment(dataclasses.replace(WORLD, kwargs={"max_turns": 3}))
    finally:
        del gym.registry["TestCell-v0"], registration._SPECS["TestCell-v0"]


def test_a_row_says_what_the_starting_model_is_made_on() -> None:
    assert find_environment("Game24-v0").warm_start_settings == {"size": "micro"}
    assert find_environment("SearchQA-v0").warm_start_settings == {"size": "micro", "hops": (1, 2)}
    assert WORLD.warm_start is None
    assert WORLD.warm_start_settings == {"size": "micro"}
    sizeless = dataclasses.replace(WORLD, sizes=())
    assert sizeless.warm_start_settings == sizeless.smallest == {}


def test_metrics_of_the_breakdown_are_those_of_the_own_row() -> None:
    class Own(environment_class("MathWord-v0")): ...

    assert breakdown_metrics("MathWord-v0", Guess) == ("steps",)
    assert breakdown_metrics("Game24-v0", environment_class("Game24-v0")) == ()
    assert breakdown_metrics("Own", Own) == ("steps",)
    assert breakdown_metrics("Object", object) == ()


def test_only_rows_of_the_package_are_built_in() -> None:
    rows = {row.id: row for row in registered_environments()}
    assert set(rows) == set(all_ids(hidden=True))
    assert rows["SearchQA-v0"].builtin
    assert not rows["TestRegistry-v0"].builtin
    assert environment_class("TestRegistry-v0") is Guess


def test_every_public_name_loads() -> None:
    for name in turngym.envs.__all__:
        assert getattr(turngym.envs, name) is not None
    assert set(turngym.envs.__all__) <= set(dir(turngym.envs))
    assert sorted(turngym.envs.__all__) == list(turngym.envs.__all__)
    with pytest.raises(AttributeError, match="attribute nothing"):
        turngym.envs.nothing  # noqa: B018


def test_importing_loads_no_world_and_no_pydantic() -> None:
    code = (
        "import json, sys, turngym.envs;"
        "print(json.dumps([m for m in sys.modules if m.startswith(('turngym', 'pydantic'))]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not any(m.startswith(("turngym.envs.search_qa", "pydantic")) for m in loaded)
    assert "turngym.envs.wrappers.vector" not in loaded


def test_a_module_prefix_registers() -> None:
    code = 'import gymnasium as g; print(g.make("turngym.envs:SearchQA-v0", size="micro").spec.id)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "SearchQA-v0"


def test_a_mistyped_diagnostic_environment_is_suggested_though_lists_leave_it_out() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'Lottery-v0'") as caught:
        find_environment("Lotery-v0")
    assert "Known: Game24-v0" in str(caught.value)
    assert str(caught.value).count("Lottery-v0") == 1
