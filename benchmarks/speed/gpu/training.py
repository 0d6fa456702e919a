"""The second part of a check: a language model learns to search for some minutes."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np

from ....agents.models.registry.fetch import is_registry_model, model_folder
from ....algos.learner.settings import LearnerSettings
from ....algos.recipes import make_recipe
from ....algos.runs.progress import reporter
from ....algos.runs.run_dir import read_metrics
from ....algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from ....algos.training.settings import WarmStartSettings
from ....algos.training.supervised.warm_start import warm_start
from ....algos.training.trainer import train
from .measures import Table
from .scale import Scale

EVALUATED = re.compile(r"eval/[^/]+/(greedy_)?success_frac\Z")


def language_model(scale: Scale, model: str | None, folder: Path) -> Table:
    """Train a language model by GRPO on one-hop questions, and draw how well it does.

    SmolLM2-135M imitates 104 demonstrations first; a toy begins with random weights.

    Args:
        scale: How long.
        model: Name or folder of the model; None for a toy.
        folder: Where the run's folder is made.
    """
    run = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    config = _toy(scale, folder) if model is None else _configure(scale, model)
    train(config, run, reporter())
    rows = read_metrics(run / "metrics.jsonl")
    played = [row for row in rows if "rollout/success_frac" in row]
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        at = row["time/elapsed_s"] / 60.0
        if "rollout/success_frac" in row:
            lines.setdefault("rollouts", []).append((at, row["rollout/success_frac"]))
        for key in filter(EVALUATED.match, row):
            name = "evaluated, greedily" if "greedy" in key else "evaluated, sampled"
            lines.setdefault(name, []).append((at, row[key]))
    step = float(np.median([row["time/step_s"] for row in played]))
    cells = [("model", model or "toy with random weights"), ("steps", str(len(played)))]
    cells += [("median step, s", f"{step:.2f}")]
    for name, line in lines.items():
        cells.append((f"success, {name}", f"{line[0][1]:.0%} at first, {line[-1][1]:.0%} at last"))
    off = [row.get("update/logprob_diff_mean_nats", 0.0) for row in played]
    cells.append(("engine against learner, mean", f"{float(np.mean(off)):.4f} nats"))
    aims = []
    if model is not None:
        aim = "GRPO on SmolLM2: under 10 s a step of 16 x 8"
        aims = [(aim, f"{step:.1f} s", step < 10)]
    return Table(
        "A language model learns",
        ("what", "found"),
        tuple(cells),
        note=f"GRPO on {config.env.id} with {dict(config.env.settings)}, {config.budget}.",
        aims=tuple(aims),
        curve=tuple((name, tuple(line)) for name, line in sorted(lines.items())),
    )


def _configure(scale: Scale, model: str) -> TrainConfig:
    """Return a run of some minutes of a model that imitated the expert before."""
    known = is_registry_model(model) and not Path(model).is_dir()
    start = str(model_folder(model)) if known else model
    env = EnvConfig(id="SearchQA-v0", settings={"hops": 1})
    how = WarmStartSettings(episodes=104)
    imitated = warm_start(start, env, how, reporter(), device=scale.device)
    return TrainConfig(
        env=env,
        model=str(imitated.folder),
        recipe=make_recipe("grpo", {"groups_per_step": 16, "rollout.n": 8}),
        budget=Budget(minutes=scale.minutes),
        evals=(EvalConfig(env=env, n=64),),
        learner=LearnerSettings(gradient_checkpointing=True, micro_batch_tokens=16_384),
        warm_start=imitated.record,
        weights="bfloat16",
        device=scale.device,
        max_batch=256,
        records="metrics",
    )


def _toy(scale: Scale, folder: Path) -> TrainConfig:
    env = EnvConfig(id="SearchQA-v0", settings={"size": "micro", "prompt": "none"})
    return TrainConfig(
        env=env,
        model=scale.folder(scale.first, folder / "model"),
        recipe=make_recipe("grpo", {"groups_per_step": 2, "rollout.n": 2}),
        budget=Budget(steps=scale.steps),
        evals=(EvalConfig(env=env, n=2),),
        learner=LearnerSettings(gradient_checkpointing=True),
        weights="bfloat16",
        device=scale.device,
        max_tokens=8,
        eval_every=1,
        records="metrics",
    )
