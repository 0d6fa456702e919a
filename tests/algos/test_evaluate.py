"""Evaluation: what is counted, the intervals, scripted and token agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engine import Sampling
from turngym.agents.loading import load_model, load_tokenizer
from turngym.agents.render import make_renderer
from turngym.agents.scripted import scripted
from turngym.agents.transformers_engine import TransformersEngine
from turngym.algos.evaluate import EvalSet, evaluate_model, evaluate_policy
from turngym.algos.intervals import estimate
from turngym.algos.metrics import checked
from turngym.algos.rollouts import Player
from turngym.envs.errors import BadValueError, UnknownNameError


def letters(**settings: Any) -> gym.Env[Any, Any]:
    return gym.make("Letters-v0", **settings)


def test_expert_solves_and_null_does_not() -> None:
    what = EvalSet(name="dev", env=letters(), split="dev", n=100)
    expert = evaluate_policy(what, lambda seed: scripted("expert", seed))
    assert len(expert.scored) == 6  # the split holds no more
    assert expert.success.mean == 1.0
    null = evaluate_policy(what, lambda seed: scripted("null", seed)).score()
    assert null.success.mean == 0.0
    assert null.metrics["invalid_actions"] == 2.0


def test_broken_environments_are_counted_and_in_no_mean() -> None:
    what = EvalSet(name="dev", env=letters(broken="plum"), split="dev", n=6)
    done = evaluate_policy(what, lambda seed: scripted("expert", seed))
    assert done.errors == 2  # tasks 1 and 5
    assert done.score().n == 4
    assert done.success.mean == 1.0
    checked(done.row())


def test_scores_are_broken_down_by_hops() -> None:
    what = EvalSet(name="dev", env=letters(), split="dev", n=5)
    done = evaluate_policy(what, lambda seed: scripted("expert", seed))
    assert [(p.name, len(p.scored)) for p in done.parts()] == [
        ("dev, hops 1", 3),
        ("dev, hops 2", 2),
    ]


def test_ticks_count_the_episodes() -> None:
    seen: list[int] = []
    what = EvalSet(name="dev", env=letters(), split="dev", n=4)
    evaluate_policy(what, lambda seed: scripted("null", seed), seen.append)
    assert seen == [1, 2, 3, 4]


def test_the_last_split_with_tasks_is_the_default() -> None:
    assert EvalSet(name="x", env=letters(), split="", n=1).split == "dev"


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"split": "dve"}, UnknownNameError, "'dev'"),
        ({"split": "test"}, BadValueError, "holds no task"),
        ({"n": 0}, BadValueError, "n is 0"),
        ({"name": "a/b"}, BadValueError, "without '/'"),
    ],
)
def test_bad_sets_are_refused(more: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        EvalSet(**{"name": "dev", "env": letters(), "split": "dev", "n": 3, **more})


def test_a_model_is_scored_the_same_twice(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    engine = TransformersEngine(
        load_model(tiny_model, device="cpu"), tokenizer, dtype="float32", max_batch=4
    )
    env = letters()
    player = Player(env, engine, make_renderer(tokenizer), Sampling(max_tokens=6))
    what = EvalSet(name="dev", env=env, split="dev", n=6)
    one, two = (asyncio.run(evaluate_model(player, what)) for _ in range(2))
    assert one.row() == two.row()
    assert [e.task_id for e in one.episodes] == [f"dev/{i}" for i in range(6)]
    assert one.row()["eval/dev/tokens_mean"] > 1
    assert all(e.tree is not None for e in one.episodes)


# ---------------------------------------------------------------- intervals


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_the_interval_holds_the_mean_within_the_sample(values: list[float]) -> None:
    got = estimate(values)
    assert got.mean == pytest.approx(float(np.mean(values)))
    assert min(values) - 1e-9 <= got.low95 <= got.mean + 1e-9
    assert got.mean - 1e-9 <= got.high95 <= max(values) + 1e-9


def test_the_interval_is_that_of_a_proportion() -> None:
    got = estimate([1.0] * 60 + [0.0] * 140)
    half = 1.96 * np.sqrt(0.3 * 0.7 / 200)
    assert got.low95 == pytest.approx(0.3 - half, abs=0.012)
    assert got.high95 == pytest.approx(0.3 + half, abs=0.012)


def test_intervals_of_next_to_nothing() -> None:
    assert estimate([]).mean == 0.0
    assert estimate([0.7]).low95 == 0.7
    assert estimate([1.0, 1.0]).high95 == 1.0
