"""Scripted agents on a toy world of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import pytest

from turngym.agents import (
    ExpertPolicy,
    NullPolicy,
    RandomPolicy,
    ReplayPolicy,
    run_episode,
    scripted,
)
from turngym.agents.scripted import scripted_names
from turngym.envs.core.env import Episode, Outcome, TextEnv
from turngym.envs.core.errors import BadValueError, EpisodeError, UnknownNameError
from turngym.envs.core.tasks import Task


@dataclass
class Count:
    goal: int
    said: int = 0


class Numbers:
    def sizes(self) -> Mapping[str, int | None]:
        return {"train": 5, "dev": 2, "test": 1}

    def task(self, split: str, index: int) -> Task[int]:
        return Task(f"{split}/{index}", split, index, index + 1)

    def index_of(self, split: str, task_id: str) -> int | None:
        return None


class CountTo(TextEnv[Count, int]):
    """Say ``<say> n </say>`` for 1, 2, ... up to the goal."""

    instructions = "Count.\n"
    stop = ("</say>",)
    listed = False

    def __init__(self) -> None:
        super().__init__(source=Numbers(), max_turns=6)

    def begin(self, task: Task[int], random: Any) -> tuple[Count, str]:
        return Count(task.payload), f"up to {task.payload}\n"

    def play(self, episode: Episode[Count], action: str) -> Outcome:
        world = episode.state
        if action != f"<say> {world.said + 1} </say>":
            return Outcome.unreadable("expected the next number\n", {"count": 0.0})
        world.said += 1
        if world.said == world.goal:
            return Outcome.solved("done\n", {"count": 1.0})
        return Outcome.move("go on\n", {"count": 0.0})

    def legal_actions(self) -> list[str] | None:
        return ["<say> 1 </say>", "<say> 2 </say>"] if self.listed else None

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
        return lambda env, observation, info: f"<say> {env.unwrapped.episode.state.said + 1} </say>"


def test_expert_solves_and_replay_repeats_it() -> None:
    env = gym.wrappers.PassiveEnvChecker(CountTo())
    won = run_episode(env, ExpertPolicy(), seed=3, options={"split": "train", "task": 3})
    assert (won.status, won.episode_return, won.turns) == ("solved", 1.0, 4)
    assert won.task_id == "train/3"
    assert won.metrics["success"] == 1.0
    assert won.transcript == (
        "Count.\nup to 4\n<say> 1 </say>go on\n<say> 2 </say>go on\n<say> 3 </say>go on\n"
        "<say> 4 </say>done\n"
    )
    again = run_episode(CountTo(), ReplayPolicy(won.actions), 3, {"split": "train", "task": 3})
    assert again == won


def test_one_expert_serves_many_environments() -> None:
    policy = ExpertPolicy()
    envs = [CountTo(), CountTo()]
    assert [run_episode(e, policy, seed=1).status for e in envs + envs] == ["solved"] * 4


def test_replay_says_when_it_is_exhausted() -> None:
    with pytest.raises(
        EpisodeError, match=r"after all 1 recorded actions \(turn 1 of task 'dev/1'"
    ):
        run_episode(CountTo(), ReplayPolicy(["<say> 1 </say>"]), 0, {"split": "dev", "task": 1})
    with pytest.raises(BadValueError, match="sequence of actions"):
        ReplayPolicy("<say> 1 </say>")


def test_null_says_nothing_until_the_limit() -> None:
    result = run_episode(CountTo(), NullPolicy(), seed=0)
    assert (result.status, result.turns, set(result.actions)) == ("truncated", 6, {""})


def test_random_text_looks_like_an_action_and_is_seeded() -> None:
    a, b, c = (run_episode(CountTo(), RandomPolicy(s), seed=0).actions for s in (1, 1, 2))
    assert a == b
    assert a != c
    assert all(x.startswith("<say> ") and x.endswith(" </say>") for x in a)
    words = {*"12345", "up", "to", "expected", "the", "next", "number", "nothing"}
    assert all(set(x[6:-7].split()) <= words for x in a)


def test_random_takes_legal_actions_where_they_are_listed() -> None:
    env = CountTo()
    env.listed = True
    actions = run_episode(env, RandomPolicy(0), seed=0, options={"task": 4}).actions
    assert set(actions) <= {"<say> 1 </say>", "<say> 2 </say>"}


def test_names() -> None:
    for name in scripted_names():
        assert run_episode(CountTo(), scripted(name, 4), seed=0).turns >= 1
    with pytest.raises(UnknownNameError, match="Did you mean 'expert'"):
        scripted("expret")


def test_only_text_environments() -> None:
    with pytest.raises(BadValueError, match="no text environment"):
        RandomPolicy()(gym.make("CartPole-v1"), "", {})  # type: ignore[arg-type]
    with pytest.raises(BadValueError, match="expected a number from 0 to 1"):
        ExpertPolicy(mistakes=1.5)
