"""TARL on the shop: above its start, beside GRPO and with maths mixed in, at equal tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turngym.agents.warm_start.cache import ensure_starter
from turngym.algos import Budget, EnvConfig, EvalConfig, TrainConfig, make_recipe, train
from turngym.algos.runs.run_dir import read_metrics

SHOP = EnvConfig(id="Retail-v0", settings={"size": "micro"})
MIXED = EnvConfig(id="MixedTasks-v0", settings={"size": "micro"})
TOKENS = 160_000
"""Sampled tokens of a run, the same for every arm."""
ARMS: dict[str, tuple[str, EnvConfig]] = {
    "GRPO": ("grpo", SHOP),
    "GRPO + TARL": ("tarl", SHOP),
    "mixed + TARL": ("tarl", MIXED),
}
SETTINGS = {
    "groups_per_step": "12",
    "optim.lr": "3e-4",
    "optim.epochs": "1",
    "optim.minibatches": "4",
    "optim.warmup_steps": "0",
    "loss.kl.coef": "0",
}


def trained(folder: Path, recipe: str, env: EnvConfig, seed: int) -> list[dict[str, Any]]:
    """Evaluations before and after, on tasks of the shop that training does not hold."""
    setup = TrainConfig(
        env=env,
        model=str(ensure_starter("MixedTasks-v0")),
        recipe=make_recipe(recipe, SETTINGS, small=True),
        budget=Budget(tokens=TOKENS),
        evals=(EvalConfig(name="test", env=SHOP, split="test", n=200),),
        max_tokens=64,
        seed=seed,
        eval_every=0,
        eval_temperature=1.0,
    )
    train(setup, folder)
    rows = read_metrics(folder / "metrics.jsonl")
    return [row for row in rows if "eval/test/return_mean" in row]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_tarl_raises_pass_1_over_the_start(tmp_path: Path) -> None:
    found: dict[str, list[float]] = {}
    for arm, (recipe, env) in ARMS.items():
        for seed in range(3):
            before, *_, after = trained(tmp_path / f"{recipe}{env.id}{seed}", recipe, env, seed)
            found.setdefault("start", []).append(before["eval/test/success_frac"])
            found.setdefault(arm, []).append(after["eval/test/success_frac"])
            print(f"{arm:13} seed {seed} {found['start'][-1]:.3f} -> {found[arm][-1]:.3f}")
    start = sum(found["start"]) / len(found["start"])
    assert sum(found["GRPO + TARL"]) / 3 > start
