"""`turngym demo`: a small model with a wrong strategy finds a better one while you watch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...agents.engines.factory import EngineSettings
from ...algos.evaluation.defaults import TASKS
from ...algos.evaluation.result import RunResult
from ...algos.runs.progress import clock, reporter
from ...algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from ..runtime.threads import prepare
from .model_options import Sampler, starter
from .tables import say
from .train import print_result

ENV = "SearchQA-v0"
HOPS = 2
START: Mapping[str, Any] = {
    "mistakes": 0.0,
    "habits": {"haste": 0.85},
    "err_steps": 60,
    "read_until": 0.98,
}
"""Changes to the starter's settings: its teacher makes no slips, but in 85 of 100 questions of
two hops it answers with what the first search found. It reads well first, so that what is left to
learn is what to do."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Watch a small model find a better strategy: table, curve and transcripts.

    Attributes:
        run_dir: Folder of the run; left out: the next runs/demo-N.
        steps: Training steps.
        n: Questions of the evaluations.
        seed: Seed of the training.
        sampler: What samples the model's actions.
    """

    run_dir: str | None = None
    steps: int = 40
    n: int = TASKS
    seed: int = 0
    sampler: Sampler = field(default_factory=lambda: EngineSettings(max_batch=128))


def run(command: Command) -> None:
    """Make the starter, train it, and show what changed."""
    from ...algos import train
    from ...algos.recipes import make_recipe

    began = time.monotonic()
    prepare(small=True)
    report = reporter()
    report.note(
        "1. a small language model with a wrong strategy: it can search and read, but its teacher "
        f"mostly answered questions of {HOPS} hops with what the first search found"
    )
    model = starter(ENV, report, START)
    report.note(f"   {model} ({clock(time.monotonic() - began)})")
    env = EnvConfig(id=ENV, settings={"size": "micro", "hops": HOPS})
    config = TrainConfig(
        env=env,
        model=model,
        recipe=make_recipe("grpo", small=True),
        budget=Budget(steps=command.steps),
        evals=(EvalConfig(name="dev", env=env, split="dev", n=command.n),),
        seed=command.seed,
        eval_every=5,
        checkpoint_every=20,
        **vars(command.sampler),
    )
    folder = Path(command.run_dir) if command.run_dir else _next_folder(Path("runs"))
    report.note(
        f"2. GRPO: {config.recipe.groups_per_step} questions a step, "
        f"{config.recipe.rollout.max_paths} attempts each; only right answers are rewarded, and "
        "the better attempts are made likelier"
    )
    result = train(config, folder, report)
    report.note("3. the same questions before and after")
    print_result(result, folder)
    for line in tell_strategy(result, folder):
        say(line)
    say(f"{'all in all':12}{clock(time.monotonic() - began)} minutes")
    say(f"{'watch it':12}turngym play {ENV} --size micro --hops {HOPS} --agent {folder}")


def tell_strategy(result: RunResult, folder: Path) -> list[str]:
    """Return lines on what the model does, before and after, where it decodes greedily."""
    from ...algos.training.run_writer import read_first_episode

    lines = [f"what RL found, greedily, in questions that need {HOPS} searches:"]
    for when, scores, step in (("before", result.before, 0), ("after", result.after, result.steps)):
        if scores and scores[0].greedy is not None and scores[0].greedy.n:
            searches = scores[0].greedy.metrics["searches"]
            solved = scores[0].greedy.success.mean
            lines.append(f"  {when}: {searches:.2f} searches per question, {solved:.1%} right")
            first = folder / "trajectories" / f"step-{step:06d}-{scores[0].name}.txt"
            lines += [f"    {line}" for line in read_first_episode(first, "greedy")]
    return lines


def _next_folder(root: Path) -> Path:
    """Return ``demo-N``: the last one when it was interrupted, else a new one."""
    made = sorted(
        (p for p in root.glob("demo-*") if p.name.removeprefix("demo-").isdigit()),
        key=lambda p: int(p.name.removeprefix("demo-")),
    )
    if made and not (made[-1] / "result.json").exists():
        return made[-1]
    number = int(made[-1].name.removeprefix("demo-")) + 1 if made else 1
    return root / f"demo-{number}"
