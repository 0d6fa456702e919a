"""Self-distillation where the policy has no success at all, and where demonstrations are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.demonstration_reader import make_reader

from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.trainer import train

DOORS = 8
CHANCE = 1 / 3
PLAIN = {"optim.lr": 1.5e-3, "optim.epochs": 1, "optim.minibatches": 1, "optim.warmup_steps": 5}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "opsd": ("opsd", {"groups_per_step": 24, "context_logprobs.weights": "start"}),
    "wrong": (
        "opsd",
        {
            "groups_per_step": 24,
            "context_logprobs.weights": "start",
            "context_logprobs.mistakes": 1.0,
        },
    ),
    "grpo": ("grpo", {"groups_per_step": 3, "rollout.n": 8, "loss.kl.coef": 0.0}),
}


def rows_of(label: str, model: Path, run: Path) -> list[dict[str, Any]]:
    name, settings = ROWS[label]
    config = TrainConfig(
        env=EnvConfig(id="Rare-v0", settings={"size": "micro", "doors": DOORS}),
        model=str(model),
        recipe=make_recipe(name, PLAIN | settings, small=True),
        budget=Budget(steps=32),
        max_tokens=1,
        checkpoint_every=10_000,
        max_batch=256,
        engine_dtype="float32",
        device="cpu",
        learner=LearnerSettings(precision="float32"),
    )
    train(config, run)
    return [row for row in read_metrics(run / "metrics.jsonl") if "rollout/success_frac" in row]


@pytest.mark.slow
def test_a_demonstration_teaches_what_no_outcome_does(tmp_path: Path) -> None:
    """Eight doors, all or nothing: a policy that writes at random opens them once in 6,561."""
    follows = make_reader(tmp_path / "reader", DOORS, steps=150)
    assert follows > 0.9
    found = {label: rows_of(label, tmp_path / "reader", tmp_path / label) for label in ROWS}

    def right(label: str) -> float:
        last = [row["rollout/metric_right_mean"] for row in found[label][-8:]]
        return sum(last) / len(last)

    assert all(rows[0]["rollout/success_frac"] == 0.0 for rows in found.values())
    assert right("opsd") > 0.5  # three seeds had .57 to .70
    assert right("wrong") < CHANCE
    assert right("grpo") == pytest.approx(CHANCE, abs=0.1)
    assert all(row["update/grad_norm"] == 0.0 for row in found["grpo"])
