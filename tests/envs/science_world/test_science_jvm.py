"""The original engine as a backend, with a stand-in for its package; and what is missing."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from types import SimpleNamespace

import gymnasium as gym
import pytest
from helpers.science_stand_in import StandIn

from turngym.envs import fork
from turngym.envs.core.errors import BadValueError, MissingExtraError, UnknownNameError
from turngym.envs.science_world import jvm


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    monkeypatch.setitem(sys.modules, "scienceworld", SimpleNamespace(ScienceWorldEnv=StandIn))
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/java")
    monkeypatch.setattr(jvm, "_IDLE", [])
    monkeypatch.setattr(StandIn, "made", 0)
    monkeypatch.setattr(StandIn, "listings", 0)
    return StandIn


TASK = {"task": "boil/0"}
TEXTS = ("look around", "teleport to kitchen", "open cupboard", "inventory", "nonsense", "wait")


def test_both_backends_answer_alike(package: type[StandIn]) -> None:
    ours, theirs = gym.make("ScienceWorld-v0"), gym.make("ScienceWorld-v0", backend="jvm")
    assert ours.reset(seed=0, options=TASK)[0] == theirs.reset(seed=0, options=TASK)[0]
    for text in TEXTS:
        assert ours.step(text) == theirs.step(text)
    assert theirs.unwrapped.legal_actions() == ours.unwrapped.valid_actions()  # type: ignore[attr-defined]
    assert theirs.unwrapped.look() == ours.unwrapped.look()  # type: ignore[attr-defined]
    assert theirs.unwrapped.inventory() == ours.unwrapped.inventory()  # type: ignore[attr-defined]
    assert package.made == 1


def test_forks_replay_in_an_engine_of_their_own(package: type[StandIn]) -> None:
    env = gym.make("ScienceWorld-v0", backend="jvm")
    env.reset(seed=0, options=TASK)
    for text in TEXTS[:3]:
        env.step(text)
    twin = fork(env)
    assert package.made == 1
    said = twin.step("look around")
    assert package.made == 2
    assert env.step("look around") == said
    assert twin.unwrapped.digest() == env.unwrapped.digest()  # type: ignore[attr-defined]
    twin.step("open oven")
    assert twin.unwrapped.digest() != env.unwrapped.digest()  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(twin))
    assert again.step("look at oven")[0] == twin.step("look at oven")[0]


def test_actions_are_listed_when_asked_and_forks_list_where_their_origin_did(
    package: type[StandIn],
) -> None:
    env = gym.make("ScienceWorld-v0", backend="jvm")
    env.reset(seed=0, options=TASK)
    env.step("wait")
    assert package.listings == 0
    before = env.unwrapped.digest()  # type: ignore[attr-defined]
    listed = env.unwrapped.legal_actions()  # type: ignore[attr-defined]
    assert env.unwrapped.legal_actions() == listed  # type: ignore[attr-defined]
    assert package.listings == 1
    assert env.unwrapped.digest() == before  # type: ignore[attr-defined]
    env.step("wait")
    twin = pickle.loads(pickle.dumps(fork(env)))
    twin.step("wait")
    assert package.listings == 2


def test_the_engine_starts_with_an_order_that_repeats(
    package: type[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    assert jvm.start_engine().options == jvm.SAME_ORDER
    assert "JAVA_TOOL_OPTIONS" not in os.environ
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g")
    assert jvm.start_engine().options == f"-Xmx1g {jvm.SAME_ORDER}"
    assert os.environ["JAVA_TOOL_OPTIONS"] == "-Xmx1g"


def test_idle_engines_are_few(package: type[StandIn]) -> None:
    envs = [gym.make("ScienceWorld-v0", backend="jvm") for _ in range(jvm.MAX_IDLE + 2)]
    for env in envs:
        env.reset(seed=0, options=TASK)
    assert package.made == len(envs)
    for env in envs:
        env.unwrapped.forget()  # type: ignore[attr-defined]
    assert len(jvm._IDLE) == jvm.MAX_IDLE


def test_engines_are_used_again(package: type[StandIn]) -> None:
    env = gym.make("ScienceWorld-v0", backend="jvm")
    for variation in range(3):
        env.reset(seed=0, options={"task": f"melt/{variation}"})
        env.step("wait")
    assert package.made <= 2


def test_the_wrong_focus_fails(package: type[StandIn]) -> None:
    env = gym.make("ScienceWorld-v0", backend="jvm")
    env.reset(seed=0, options=TASK)
    env.step("teleport to kitchen")
    *_, terminated, _, info = env.step("focus on stove")
    assert (terminated, info["status"]) == (True, "failed")


def test_a_broken_engine_is_no_score(package: type[StandIn]) -> None:
    env = gym.make("ScienceWorld-v0", backend="jvm")
    env.reset(seed=0, options=TASK)
    observation, reward, terminated, truncated, info = env.step("crash")
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "env_error")
    assert "the Java process is gone" in observation


def test_the_java_engine_has_no_expert(package: type[StandIn]) -> None:
    env = gym.make("ScienceWorld-v0", backend="jvm")
    with pytest.raises(NotImplementedError, match="hides its state"):
        env.unwrapped.expert()  # type: ignore[attr-defined]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scienceworld", None)
    with pytest.raises(MissingExtraError, match=r"turngym\[science-jvm\]"):
        gym.make("ScienceWorld-v0", backend="jvm")
    monkeypatch.setitem(sys.modules, "scienceworld", SimpleNamespace(ScienceWorldEnv=StandIn))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BadValueError, match="default-jre-headless"):
        gym.make("ScienceWorld-v0", backend="jvm")


def test_unknown_backends(package: type[StandIn]) -> None:
    with pytest.raises(UnknownNameError, match="jvm"):
        gym.make("ScienceWorld-v0", backend="java")
    with pytest.raises(UnknownNameError, match="full"):
        gym.make("ScienceWorld-v0", backend="jvm", size="micro")
