"""GRPO in micro rooms, from the starter that copies well and hurries: far above its start."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngym.agents.warm_start.cache import ensure_starter
from turngym.algos import Budget, EnvConfig, EvalConfig, TrainConfig, make_recipe, train
from turngym.algos.runs.run_dir import read_metrics

STEPS = 12
"""Of 16 tasks with 8 episodes each; half of the steps that the page's figures took."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_grpo_unlearns_the_haste_sampled_and_greedy(tmp_path: Path) -> None:
    rooms = EnvConfig(id="Household-v0", settings={"size": "micro", "max_steps": 15})
    setup = TrainConfig(
        env=rooms,
        model=str(ensure_starter("Household-v0")),
        recipe=make_recipe("grpo", small=True),
        budget=Budget(steps=STEPS),
        evals=(EvalConfig(name="dev", env=rooms, n=100),),
        max_tokens=16,
        eval_every=0,
        eval_temperature=1.0,
    )
    train(setup, tmp_path)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    before, *_, after = [row for row in rows if "eval/dev/success_frac" in row]
    for name in ("eval/dev/success_frac", "eval/dev/greedy_success_frac"):
        assert 0.15 < before[name] < 0.55
        assert after[name] > before[name] + 0.2
