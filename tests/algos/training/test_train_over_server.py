"""Training whose retrieval server dies midway: counted, said, and the run goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
from helpers.retrieval_servers import stock_server

from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes.grpo import grpo
from turngym.algos.rollouts import Chains
from turngym.algos.runs.progress import Silent
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.episode import Episode, Play
from turngym.envs.core.registration import _SPECS, EnvironmentSpec, register_environment
from turngym.envs.search_qa.env import SearchQA, SearchState


class Eager(SearchQA):
    """SearchQA in which whatever a random model says is a search."""

    def play(self, episode: Episode[SearchState], action: str) -> Play:
        return super().play(episode, "<search> fox </search>")


class Told(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def eager() -> Iterator[str]:
    name = "EagerSearch-v0"
    register_environment(
        EnvironmentSpec(
            id=name, entry_point=f"{__name__}:Eager", summary="searches", sizes=(), hidden=True
        )
    )
    yield name
    gym.registry.pop(name)
    _SPECS.pop(name)


def test_a_server_that_dies_midway(eager: str, tiny_model: Path, tmp_path: Path) -> None:
    with stock_server() as stock:
        env = EnvConfig(
            id=eager,
            settings={
                "size": "micro",
                "max_turns": 2,
                "retriever": stock.url,
                "retriever_settings": {"attempts": 2, "wait_s": 0.01},
            },
        )
        setup = TrainConfig(
            env=env,
            model=str(tiny_model),
            recipe=dataclasses.replace(grpo(), rollout=Chains(n=3), groups_per_step=2),
            budget=Budget(steps=3),
            evals=(),
            max_tokens=4,
            device="cpu",
            engine_dtype="float32",
            learner=LearnerSettings(precision="float32"),
        )
        told = Told()
        with Trainer(setup, tmp_path, told) as trainer:
            step = trainer.train_step

            def dying() -> dict[str, float]:
                stock.dying = trainer.counters.step == 1
                return step()

            trainer.train_step = dying
            assert trainer.run().steps == 3
    rows = [r for r in read_metrics(tmp_path / "metrics.jsonl") if "rollout/paths" in r]
    assert [r["rollout/env_errors"] for r in rows] == [0, 6, 0]
    (note,) = (note for note in told.notes if "env_error" in note)
    assert note.startswith("step 2: 6 of 6 episodes failed (env_error) and are excluded.")
    assert stock.url in note
    assert stock.url in (tmp_path / "config.json").read_text()
