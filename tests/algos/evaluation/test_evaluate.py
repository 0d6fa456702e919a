"""Evaluation: what is counted, the intervals, scripted and token agents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Sampling
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.scripted import scripted
from turngym.algos.evaluation.evaluate import (
    EpisodeScore,
    EvalSet,
    Evaluation,
    evaluate_model,
    evaluate_policy,
    mean_of_sets,
)
from turngym.algos.evaluation.result import scores_at
from turngym.algos.rollouts import EpisodeRunner
from turngym.algos.runs.metrics import checked
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.utils.statistics import estimate, estimate_of_means


def letters(**settings: Any) -> gym.Env[Any, Any]:
    return gym.make("Letters-v0", **settings)


def test_expert_solves_and_null_does_not() -> None:
    what = EvalSet(name="dev", env=letters(), split="dev", n=100)
    expert = evaluate_policy(what, lambda seed: scripted("expert", seed))
    assert len(expert.scored) == 6  # the split holds no more
    assert expert.success.mean == 1.0
    assert expert.success.low95 == pytest.approx(0.025 ** (1 / 6))  # six tasks prove no more
    null = evaluate_policy(what, lambda seed: scripted("null", seed)).score()
    assert null.success.mean == 0.0
    assert null.success.high95 == pytest.approx(1 - 0.025 ** (1 / 6))
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


def test_steps_of_another_environment_are_no_difficulty() -> None:
    """MathWord's `steps` are those of a problem's plan, Game24's are what was done."""
    game, sums = gym.make("Game24-v0", size="micro"), gym.make("MathWord-v0", size="micro")
    mixed = gym.make("MixedTasks-v0", size="micro", members={"Game24-v0": 1, "MathWord-v0": 1})
    parts = {}
    for env in (game, sums, mixed):
        what = EvalSet(name="dev", env=env, split="dev", n=20)
        done = evaluate_policy(what, lambda seed: scripted(("expert", "null")[seed % 2]))
        assert all("steps" in e.metrics for e in done.scored)
        parts[env] = [p for p in done.parts() if "steps" in p.name]
    assert parts[game] == []
    assert {p.name for p in parts[sums]} == {f"dev, steps {n}" for n in (1, 2)}
    assert {p.name for p in parts[mixed]} == {f"dev, steps {n}" for n in (1, 2)}
    assert {e.dataset for p in parts[mixed] for e in p.episodes} == {"MathWord"}


def evaluation(name: str, *parts: tuple[str, str, float]) -> Evaluation:
    """Episodes of (data set, status, f1); those with an error have no metrics."""
    episodes = [
        EpisodeScore(
            task_id=str(i),
            status=status,
            return_=f1,
            tokens=2,
            metrics={} if status.endswith("error") else {"f1": f1, f"of_{data}": 1.0},
            dataset=data,
        )
        for i, (data, status, f1) in enumerate(parts)
    ]
    return Evaluation(name=name, env_id="E-v0", split="dev", episodes=episodes)


def test_scores_are_broken_down_by_data_set() -> None:
    done = evaluation(
        "dev",
        *[("nq", "solved", 1.0)] * 3,
        ("nq", "env_error", 0.0),
        ("popqa", "failed", 0.5),
        ("musique", "agent_error", 0.0),
    )
    whole, nq, popqa, musique, mean = done.scores()
    assert (whole.n, whole.errors, whole.agent_errors, whole.success.mean) == (4, 1, 1, 0.75)
    assert (nq.name, nq.n, nq.errors, nq.metrics["f1"]) == ("dev, nq", 3, 1, 1.0)
    assert (popqa.n, popqa.return_.mean) == (1, 0.5)
    assert (musique.n, musique.agent_errors) == (0, 1)
    # Musique, of which nothing was scored, is in no mean.
    assert (mean.name, mean.n, mean.errors) == ("dev, mean of sets", 4, 1)
    assert (mean.success.mean, mean.metrics["f1"], mean.metrics["of_nq"]) == (0.5, 0.75, 1.0)
    # the shares of 3 of 3 and 0 of 1: both ends are those of two independent errors
    assert mean.success.low95 == pytest.approx(0.5 - (1 - 0.025 ** (1 / 3)) / 2)
    assert mean.success.high95 == pytest.approx(0.5 + 0.975 / 2)
    row = checked(done.rows())
    assert row["eval/dev, nq/success_frac"] == 1.0
    assert row["eval/dev, mean of sets/metric_f1_mean"] == 0.75
    assert row["eval/dev, mean of sets/tokens_mean"] == 2.0
    back = scores_at([{"step": 3, **row}], 3, {"dev": ("E-v0", "dev")})
    assert [s.name for s in back] == [s.name for s in (whole, nq, popqa, musique, mean)]
    assert back[-1].return_ == mean.return_


def test_full_contexts_are_counted_among_the_scored() -> None:
    done = evaluation("dev", ("", "solved", 1.0), ("", "truncated", 0.0), ("", "env_error", 0.0))
    done = replace(done, episodes=[replace(e, context_full=True) for e in done.episodes[1:]])
    score = done.score()
    assert (score.n, score.errors, score.context_full) == (1, 1, 1)
    row = checked(done.rows())
    (back,) = scores_at([{"step": 0, **row}], 0, {"dev": ("E-v0", "dev")})
    assert back == score
    del row["eval/dev/context_full"]  # runs from before
    (back,) = scores_at([{"step": 0, **row}], 0, {"dev": ("E-v0", "dev")})
    assert back.context_full == 0


def test_a_measure_that_nobody_reports_is_no_zero() -> None:
    with pytest.raises(UnknownNameError, match=r"'dev': unknown metric 'f2'. Did you mean 'f1'"):
        evaluation("dev", ("nq", "solved", 1.0)).mean("f2")


def test_one_data_set_is_no_part_of_itself() -> None:
    done = evaluation("dev", ("nq", "solved", 1.0), ("nq", "failed", 0.0))
    assert len(done.scores()) == 1
    assert done.rows() == done.row()


def test_the_mean_of_nothing() -> None:
    score = mean_of_sets([evaluation("a", ("nq", "env_error", 0.0)), evaluation("b")])
    assert (score.n, score.errors, score.success.mean, score.metrics) == (0, 1, 0.0, {})


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
        ({"name": "a\0b"}, BadValueError, "zero byte"),
        ({"name": "a\udce9"}, BadValueError, r"lone surrogate \(U\+DCE9\)"),
        ({"name": "ä" * 110}, BadValueError, "220 bytes, more than 200"),
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
    runner = EpisodeRunner(env, engine, make_renderer(tokenizer), Sampling(max_tokens=6))
    what = EvalSet(name="dev", env=env, split="dev", n=6)
    one, two = (asyncio.run(evaluate_model(runner, what)) for _ in range(2))
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


def test_the_interval_of_a_mean_over_samples() -> None:
    small, large = [1.0] * 8 + [0.0] * 8, [1.0] * 40 + [0.0] * 160
    got = estimate_of_means([small, large])
    assert got.mean == pytest.approx((0.5 + 0.2) / 2)
    half = 1.96 * np.sqrt(0.25 / 16 + 0.16 / 200) / 2
    assert got.low95 == pytest.approx(got.mean - half, abs=0.012)
    assert got.high95 == pytest.approx(got.mean + half, abs=0.012)
    assert estimate_of_means([small]) == estimate(small)
    assert estimate_of_means([[1.0, 1.0], [0.0]]).high95 == 0.5
    assert estimate_of_means([]).mean == 0.0


def test_intervals_of_next_to_nothing() -> None:
    assert estimate([]).mean == 0.0
    assert estimate([0.7]).low95 == 0.7
    assert estimate([1.0, 1.0]).high95 == 1.0
