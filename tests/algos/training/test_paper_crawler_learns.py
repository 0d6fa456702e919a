"""PaSa's session training on papers: from the imitation start, with and without its costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turngym.agents.warm_start.cache import ensure_starter
from turngym.algos import Budget, EnvConfig, EvalConfig, TrainConfig, make_recipe, train
from turngym.algos.runs.run_dir import read_metrics

SETTINGS = {
    "credit.gamma1": "0.1",
    "groups_per_step": "24",
    "rollout.per_layer": "20",
    "optim.minibatches": "4",
    "optim.lr": "2e-4",
    "optim.warmup_steps": "0",
    "credit.kl_coef": "0",
}


def trained(folder: Path, seed: int, **settings: Any) -> list[dict[str, float]]:
    """Evaluations before and after: always with the usual reward, whatever was trained with."""
    env = EnvConfig(id="PaperCrawler-v0", settings={"size": "micro", **settings})
    usual = EnvConfig(id="PaperCrawler-v0", settings={"size": "micro"})
    setup = TrainConfig(
        env=env,
        model=str(ensure_starter("PaperCrawler-v0")),
        recipe=make_recipe("pasa", SETTINGS, small=True),
        budget=Budget(steps=12),
        evals=(EvalConfig(name="dev", env=usual, split="dev", n=150),),
        max_tokens=16,
        seed=seed,
        eval_every=0,
        eval_temperature=1.0,
    )
    train(setup, folder)
    rows = read_metrics(folder / "metrics.jsonl")
    return [row for row in rows if "eval/dev/return_mean" in row]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_sessions_learn_and_costs_hold_them_back(seed: int, tmp_path: Path) -> None:
    before, *_, after = trained(tmp_path / "base", seed)
    free = trained(tmp_path / "free", seed, cost_search=0.0, cost_expand=0.0)[-1]
    small = trained(tmp_path / "alpha", seed, alpha=0.5)[-1]
    recall, actions = (f"eval/dev/metric_{m}_mean" for m in ("crawler_recall", "all_actions"))
    for name, row in {"before": before, "after": after, "free": free, "alpha 0.5": small}.items():
        low, high = row["eval/dev/return_low95"], row["eval/dev/return_high95"]
        told = f"return {row['eval/dev/return_mean']:.2f} ({low:.2f} to {high:.2f})"
        told += f", recall {row[recall]:.3f}"
        print(f"{name:9} {told}, actions {row[actions]:.1f}")
    assert after["eval/dev/return_mean"] > before["eval/dev/return_mean"]
    assert after[recall] > before[recall] + 0.03
    assert free[actions] > after[actions] > small[actions]
    assert free[recall] > after[recall] > small[recall]
