"""`turngym demo`: a small model learns to search and answer while you watch."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from ...agents.engines.factory import EngineSettings
from ...algos.runs.progress import clock, reporter
from ...algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from ..runtime.threads import prepare
from .model_options import Sampler, starter
from .tables import say
from .train import print_result

ENV = "SearchQA-v0"


@dataclass(frozen=True, kw_only=True)
class Command:
    """Watch a small model learn to search and answer: table, curve and transcripts.

    Attributes:
        run_dir: Folder of the run; left out: the next runs/demo-N.
        steps: Training steps.
        n: Questions of the evaluations.
        seed: Seed of the training.
        sampler: What samples the model's actions.
    """

    run_dir: str | None = None
    steps: int = 120
    n: int = 200
    seed: int = 0
    sampler: Sampler = field(default_factory=lambda: EngineSettings(max_batch=128))


def run(command: Command) -> None:
    """Make the starter, train it, and show what changed."""
    from ...algos import train
    from ...algos.recipes import make_recipe

    began = time.monotonic()
    prepare(small=True)
    report = reporter()
    report.note("1. a small language model that can read, but searches and answers carelessly")
    model = starter(ENV, report)
    report.note(f"   {model} ({clock(time.monotonic() - began)})")
    env = EnvConfig(id=ENV, settings={"size": "micro"})
    config = TrainConfig(
        env=env,
        model=model,
        recipe=make_recipe("grpo", small=True),
        budget=Budget(steps=command.steps),
        evals=(EvalConfig(name="dev", env=env, split="dev", n=command.n),),
        seed=command.seed,
        max_tokens=16,
        eval_temperature=1.0,
        checkpoint_every=20,
        **vars(command.sampler),
    )
    folder = Path(command.run_dir) if command.run_dir else _next_folder(Path("runs"))
    report.note("2. GRPO: 16 questions a step, 8 attempts each; the better ones are made likelier")
    result = train(config, folder, report)
    report.note("3. the same questions before and after")
    print_result(result, folder)
    say(f"{'all in all':12}{clock(time.monotonic() - began)} minutes")
    say(f"{'watch it':12}turngym play {ENV} --size micro --agent {folder}")


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
