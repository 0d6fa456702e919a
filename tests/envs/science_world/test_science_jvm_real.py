"""The original engine itself: the contract, gold runs of all tasks, forks; needs Java."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import pytest

from turngym.envs import fork
from turngym.envs.core.errors import BadValueError
from turngym.envs.science_world.env import ScienceWorld
from turngym.envs.science_world.jvm import start_engine
from turngym.envs.science_world.tasks.catalogue import TASKS, TaskKind
from turngym.envs.testing.check import check_text_env

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(
        find_spec("scienceworld") is None,
        reason="the package scienceworld is not installed (extra science-jvm)",
    ),
]
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java runtime")
TURNS = 300


@pytest.fixture(scope="module")
def solver() -> Iterator[Any]:
    """An engine that only writes gold runs."""
    engine = start_engine()
    yield engine
    engine.close()


@needs_java
def test_the_engine_keeps_the_contract() -> None:
    exempt = {"legal actions are valid": "the engine lists actions that it then cannot read"}
    report = check_text_env("ScienceWorld-v0", backend="jvm", tasks_checked=2, exempt=exempt)
    assert set(report.skipped) == {"the answer is hidden", "the expert reaches the top", *exempt}


@needs_java
@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: kind.id)
def test_gold_runs_reach_the_top_in_both_backends(solver: Any, kind: TaskKind) -> None:
    variation = kind.split("test")[0]
    options = {"task": f"{kind.name}/{variation}", "split": "test"}
    solver.load(kind.name, variation, "easy", True)
    gold = [str(text) for text in solver.get_gold_action_sequence()]
    for backend in ("jvm", "python"):
        env = ScienceWorld(backend=backend, max_turns=TURNS)
        env.reset(seed=0, options=options)
        total, status = 0.0, "running"
        for text in gold:
            if status == "running":
                _, reward, *_, info = env.step(text)
                total, status = total + float(reward), info["status"]
        assert (backend, status) == (backend, "solved")
        assert total == pytest.approx(1.0)


@needs_java
def test_forks_replay() -> None:
    env = gym.make("ScienceWorld-v0", backend="jvm")
    env.reset(seed=0, options={"task": "grow-fruit/0"})
    for text in ("teleport to outside", "look around", "wait"):
        env.step(text)
    listed = env.unwrapped.legal_actions()  # type: ignore[attr-defined]
    twin = fork(env)
    assert twin.unwrapped.legal_actions() == listed  # type: ignore[attr-defined]
    for text in ("wait", "look around", "inventory"):
        assert twin.step(text) == env.step(text)
    env.step("teleport to kitchen")
    assert "outside" in twin.step("look around")[0]


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BadValueError, match="default-jre-headless"):
        gym.make("ScienceWorld-v0", backend="jvm")
