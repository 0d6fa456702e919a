"""SkyRL-gym, by the package itself and by a stub of its interface."""

from __future__ import annotations

import importlib.util
from collections import UserDict, UserList
from types import ModuleType
from typing import Any

import pytest
from helpers.adapter_play import (
    MICRO,
    SEARCH,
    SESSIONS,
    a_row,
    broken_world,
    loaded,
    modules,
    played,
    without,
    worlds_for,
)

from turngym.envs.core.errors import BadValueError, EnvFault, MissingExtraError


def stub() -> dict[str, ModuleType]:
    class BaseTextEnv:
        def __init__(self) -> None:
            self.turns, self.max_turns = 0, 1

    return modules(skyrl_gym__envs__base_text_env={"BaseTextEnv": BaseTextEnv})


@pytest.fixture(params=["real", "stub"])
def adapter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded(request, monkeypatch, "skyrl_env", "skyrl_gym", stub)


@pytest.mark.parametrize("env_id", worlds_for("skyrl_gym"))
def test_an_expert_s_episode(adapter: Any, env_id: str) -> None:
    direct = played(env_id)
    row = adapter.skyrl_rows(env_id, 2, split="dev", seed=5, settings=MICRO)[1]
    env = adapter.SkyrlEnvironment({}, extras={k: v for k, v in row.items() if k != "prompt"})
    prompt, _ = env.init(row["prompt"])
    assert prompt == row["prompt"] == [{"role": "user", "content": direct.prompt}]
    total = 0.0
    for turn, action in enumerate(direct.actions):
        more = " and more after it" if action.endswith(env.talk.env.stop or "\0") else ""
        out = env.step(action + more)
        total += out["reward"]
        assert out["done"] == (turn == len(direct.actions) - 1)
        said = [] if out["done"] else [{"role": "user", "content": direct.observations[turn]}]
        assert out["observations"] == said
    assert total == pytest.approx(direct.total)
    assert out["metadata"]["status"] == direct.status
    metrics = env.get_metrics()
    assert metrics["success"] == 1
    assert {k[6:] for k in metrics if k.startswith("terms/")} == set(direct.terms)
    assert env.turns == len(direct.actions) <= env.max_turns


def test_refusals(adapter: Any) -> None:
    with pytest.raises(BadValueError, match="no 'env_id'"):
        adapter.SkyrlEnvironment({}, extras={"env_class": "turngym"})
    with pytest.raises(BadValueError, match="opens sessions"):
        adapter.skyrl_rows(SESSIONS[0], 1, settings=MICRO)
    env = adapter.SkyrlEnvironment({"env_id": "SearchQA-v0", "settings": SEARCH}, extras={})
    env.init([])
    broken_world(env.talk)
    with pytest.raises(EnvFault, match="server is down"):
        env.step("<search> x </search>")


def test_lists_of_a_configuration_need_not_be_python_s(adapter: Any) -> None:
    settings = UserDict(size="micro", kinds=UserList(["bridge"]), hops=UserList([1, 2]))
    config = UserDict(env_id="SearchQA-v0", settings=settings)
    env = adapter.SkyrlEnvironment(config, extras=UserDict(split="dev", task=0, seed=1))
    assert "Question: " in env.init([])[0][0]["content"]


def test_the_package_makes_it_by_its_entry_point() -> None:
    if importlib.util.find_spec("skyrl_gym") is None:
        pytest.skip("skyrl_gym is not installed; `make test-adapters` tests against it")
    import skyrl_gym

    from turngym.envs.adapters.skyrl_env import ENTRY_POINT

    skyrl_gym.register(id="turngym-test", entry_point=ENTRY_POINT)
    row = a_row("Game24-v0")
    env = skyrl_gym.make("turngym-test", env_config={}, extras=row)
    messages, info = env.init([])
    assert messages[0]["role"] == "user"
    assert info["task_id"] == row["task"]
    assert env.step("nonsense")["metadata"]["valid_action"] is False
    assert env.aggregate_metrics([env.get_metrics()]) is not None


def test_without_the_package() -> None:
    for _ in without("skyrl_gym", "skyrl_env"):
        with pytest.raises(MissingExtraError, match=r"skyrl-gym.*turngym\[skyrl\]"):
            importlib.import_module("turngym.envs.adapters.skyrl_env")
