"""The limit of open episodes: groups begin as others end, and nothing else changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from turngym.agents.engines.base import Sampling
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.algos.core.forest import Group
from turngym.algos.rollouts import Chains, EpisodeRunner
from turngym.algos.rollouts.task_order import step_starts


@pytest.fixture(scope="module")
def runner(tiny_model: Path) -> EpisodeRunner:
    tokenizer = load_tokenizer(tiny_model)
    engine = TransformersEngine(load_model(tiny_model), tokenizer, dtype="float32")
    renderer, sampling = make_renderer(tokenizer), Sampling(max_tokens=5)
    return EpisodeRunner(gym.make("Letters-v0"), engine, renderer, sampling)


def play(runner: EpisodeRunner, limit: int | None, n: int) -> tuple[list[Group], int]:
    """Play twelve groups; return them and how many episodes were open at the same time."""
    runner.max_open = limit
    rollout, open_now, most = Chains(n=n), 0, 0

    async def counted(own: EpisodeRunner, start: Any) -> Group:
        nonlocal open_now, most
        open_now += n
        most = max(most, open_now)
        group = await rollout(own, start)
        open_now -= n
        return group

    counted.max_paths = n  # type: ignore[attr-defined]
    starts = step_starts(0, 1, 12, "train", 12)
    ticks: list[int] = []
    groups = asyncio.run(runner.groups(counted, starts, lambda: ticks.append(1)))  # type: ignore[arg-type]
    assert len(ticks) == 12
    return groups, most


def test_groups_wait_for_a_place_and_come_out_the_same(runner: EpisodeRunner) -> None:
    every, all_open = play(runner, None, n=2)
    limited, open_at_once = play(runner, 7, n=2)
    assert all_open == 24
    assert open_at_once == 6  # whole groups within 7
    for a, b in zip(every, limited, strict=True):
        assert a.uid == b.uid
        for one, other in zip(a.trees, b.trees, strict=True):
            for x, y in zip(one.turns, other.turns, strict=True):
                assert x.act_ids.tolist() == y.act_ids.tolist()
                np.testing.assert_allclose(x.logprobs, y.logprobs, atol=1e-5)


def test_a_group_above_the_limit_plays_alone(runner: EpisodeRunner) -> None:
    assert play(runner, 3, n=5)[1] == 5


def test_a_runner_takes_the_limit_of_its_engine(runner: EpisodeRunner) -> None:
    engine: Any = runner.engine
    assert EpisodeRunner(runner.env, engine, runner.renderer, runner.sampling).max_open is None
    engine.max_open = 9
    try:
        made = EpisodeRunner(runner.env, engine, runner.renderer, runner.sampling)
        assert made.max_open == 9
    finally:
        engine.max_open = None
