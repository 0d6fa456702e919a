"""The measure of training rollouts: curve, area, running means and threshold, by hand."""

from __future__ import annotations

import pytest

from turngym.algos.training.config import EnvConfig, EvalConfig
from turngym.benchmarks.matrix.cell import TrainingCurve
from turngym.benchmarks.matrix.measure import (
    logged_measures,
    mean_over_budget,
    read_training_curve,
    running_means,
    tokens_to_threshold,
)
from turngym.benchmarks.matrix.trials import play_references
from turngym.envs.core.errors import BadValueError

CURVE = TrainingCurve(tokens=(10, 40, 100), calls=(1, 2, 3), values=(0.0, 0.5, 1.0))


def row(tokens: int, **metrics: float) -> dict[str, float]:
    """A line of metrics of a training step."""
    named = {f"rollout/{key}": value for key, value in metrics.items()}
    return {"rollout/tokens": 5, "budget/tokens": tokens, "budget/turns": tokens // 2, **named}


def test_the_curve_is_that_of_the_training_steps() -> None:
    rows = [
        {"step": 0, "eval/dev/n": 4, "budget/tokens": 0, "budget/turns": 0},
        row(10, success_frac=0.25, return_mean=0.5, metric_right_mean=0.5),
        row(20),  # every episode broke
        row(30, success_frac=0.75, return_mean=2.0, metric_right_mean=1.0),
    ]
    success = read_training_curve(rows, "success")
    assert (success.tokens, success.calls, success.values) == ((10, 30), (5, 15), (0.25, 0.75))
    assert read_training_curve(rows, "right").values == (0.5, 1.0)
    assert read_training_curve(rows, "return").values == (0.5, 2.0)
    assert logged_measures(rows) == {"success", "return", "right"}
    assert logged_measures(rows[:1]) == set()
    with pytest.raises(BadValueError, match="no such metric; expected one of return, right, succ"):
        read_training_curve(rows, "coins")
    assert read_training_curve([], "success").values == ()


@pytest.mark.parametrize("measure", ["return", "turns", "invalid_actions"])
def test_what_every_episode_reports_can_be_measured_in_training_too(measure: str) -> None:
    """The start of a column took turns as a measure, and every trained cell failed at its end."""
    what = EvalConfig(name="dev", env=EnvConfig(id="Bandit-v0"), split="dev", n=4).make()
    assert play_references(what, measure)["expert"].measured
    logged = row(10, return_mean=2.0, turns_mean=2.0, invalid_actions_mean=2.0)
    assert read_training_curve([logged], measure).values == (2.0,)
    assert measure in logged_measures([logged])


def test_returns_are_measured_in_evaluations_too() -> None:
    what = EvalConfig(name="dev", env=EnvConfig(id="Bandit-v0"), split="dev", n=4).make()
    played = play_references(what, "return")
    assert all(tries.measured == tries.returns for tries in played.values())
    with pytest.raises(BadValueError, match=r"does not report it; expected one of .*return"):
        play_references(what, "coins")


def test_the_area_weighs_every_sampled_token_alike() -> None:
    assert mean_over_budget(CURVE, 100) == pytest.approx((0 * 10 + 0.5 * 30 + 1.0 * 60) / 100)
    # what lies beyond the budget does not count, what is missing of it is as the end was
    assert mean_over_budget(CURVE, 50) == pytest.approx((0.5 * 30 + 1.0 * 10) / 50)
    assert mean_over_budget(CURVE, 200) == pytest.approx((15 + 60 + 100) / 200)
    assert mean_over_budget(CURVE, 5) == 0.0
    assert mean_over_budget(TrainingCurve(), 100) is None
    with pytest.raises(BadValueError, match="above 0"):
        mean_over_budget(CURVE, 0)


def test_running_means_look_back() -> None:
    got = running_means(CURVE.tokens, CURVE.values, [0, 10, 20, 45, 100, 120], 20)
    assert got == pytest.approx([0.0, 0.0, 0.25, (0.5 * 15 + 5) / 20, 1.0, 1.0])


@pytest.mark.parametrize(
    ("threshold", "limit", "tokens"),
    [(0.5, 100, 40), (1.0, 100, 100), (0.0, 100, 10), (1.1, 100, None), (1.0, 40, None)],
)
def test_tokens_to_a_threshold(threshold: float, limit: int, tokens: int | None) -> None:
    assert tokens_to_threshold(CURVE, limit, threshold) == tokens


def test_one_lucky_step_is_not_enough() -> None:
    lucky = TrainingCurve(tokens=(100, 101, 200), calls=(1, 2, 3), values=(0.0, 1.0, 0.0))
    assert tokens_to_threshold(lucky, 200, 0.5) is None


def test_a_step_that_ends_beyond_the_budget_counts_up_to_it() -> None:
    assert tokens_to_threshold(CURVE, 90, 0.9) == 90
