"""`turngym demo`: a small model learns to search and answer, before your eyes."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from ...algos import train
from ...algos.recipes import make_recipe
from ...algos.runs.progress import clock, reporter
from ...algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from ..runtime.threads import prepare
from .models import starter
from .train import print_result
from .train_options import DemoCommand

ENV = "SearchQA-v0"


def run(command: DemoCommand) -> None:
    """Make the starter, train it, and show what changed."""
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
    console = Console()
    console.print(f"{'all in all':12}{clock(time.monotonic() - began)} minutes", highlight=False)
    console.print(
        f"{'watch it':12}turngym play {ENV} --size micro --agent {folder}", highlight=False
    )


def _next_folder(root: Path) -> Path:
    """``demo-N``: the last one when it was interrupted, else a new one."""
    made = sorted(
        (p for p in root.glob("demo-*") if p.name.removeprefix("demo-").isdigit()),
        key=lambda p: int(p.name.removeprefix("demo-")),
    )
    if made and not (made[-1] / "result.json").exists():
        return made[-1]
    number = int(made[-1].name.removeprefix("demo-")) + 1 if made else 1
    return root / f"demo-{number}"
