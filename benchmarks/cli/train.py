"""`turngym train`: options to a configuration, the run, and its report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ...agents.models.lora import LoraSettings
from ...agents.scripted import text_env
from ...algos import train
from ...algos.evaluation.result import RunResult
from ...algos.ray import RayRollouts
from ...algos.recipes import make_recipe
from ...algos.runs.progress import Reporter, Silent, reporter
from ...algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from ...algos.training.engines import EngineMaker, make_engine
from ...envs.core.errors import BadValueError
from ..runtime.observation_budget import fitted
from ..runtime.threads import prepare
from .arguments import pairs
from .envs import env_config, existing_file, file_sets
from .models import model_path, starter
from .plugins import run_plugins
from .tables import before_after, table_console
from .train_options import TrainCommand
from .tuning_options import ExecutorOptions, LoraOptions

DEFAULT_STEPS = 100


def run(command: TrainCommand) -> None:
    """Train, and print what came of it."""
    prepare(small=command.model is None)
    first = int(os.environ.get("RANK", "0")) == 0  # torchrun starts several; one of them tells
    report = reporter() if first else Silent()
    config, folder = configure(command, report)
    with engine_maker(command) as engine:
        result = train(config, folder, report, engine)
    if first:
        print_result(result, folder)


@contextmanager
def engine_maker(command: TrainCommand) -> Iterator[EngineMaker]:
    """What makes the engine of the run, and ends what it started.

    Raises:
        BadValueError: Options that do not fit.
        MissingExtraError: Ray is not installed.
    """
    where = command.where
    if where.executor == "local":
        if given := sorted(k for k, v in vars(ExecutorOptions()).items() if vars(where)[k] != v):
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise BadValueError(f"training: {names} without --executor ray changes nothing.")
        yield make_engine
        return
    files = tuple(str(Path(existing_file(file, "--plugin")).resolve()) for file in command.plugin)
    with RayRollouts(
        where.rollout_actors,
        address=where.ray_address,
        cpus=where.actor_cpus,
        gpus=where.actor_gpus,
        prepare=partial(run_plugins, files) if files else None,
    ) as rollouts:
        yield rollouts


def configure(command: TrainCommand, report: Reporter) -> tuple[TrainConfig, Path]:
    """The configuration and the run directory that the options mean.

    Raises:
        TurngymError: An option that does not fit; nothing was done yet.
    """
    run_plugins(command.plugin)
    env = env_config(command.env, command.world)
    sizes = text_env(env.prototype).source.sizes()
    small = command.model is None
    changes = pairs(command.recipe_arg, "--recipe-arg")
    recipe = make_recipe(command.recipe, changes, small=small)
    file_sets(env, command.eval_data, command.eval_n)
    model = model_path(command.model) if command.model else starter(command.env, report)
    settings = command.settings
    env = fitted(env, model, settings.max_tokens, small, report, settings.render)
    config = TrainConfig(
        env=env,
        model=model,
        recipe=recipe,
        budget=budget(command),
        evals=file_sets(env, command.eval_data, command.eval_n)
        or _own_split(env, sizes, command, report),
        learner=command.learner,
        lora=lora(command.lora),
        **vars(settings),
    )
    what = command.preset or command.recipe
    name = f"{what}-{command.env.removesuffix('-v0')}-seed{settings.seed}".lower()
    return config, Path(command.run_dir or Path("runs") / name)


def lora(options: LoraOptions) -> LoraSettings | None:
    """The adapters that the options ask for, None for none."""
    if not options.lora_rank:
        return None
    return LoraSettings(
        rank=options.lora_rank,
        alpha=2.0 * options.lora_rank if options.lora_alpha is None else options.lora_alpha,
        targets=options.lora_target or ("all-linear",),
    )


def budget(command: TrainCommand) -> Budget:
    """The limits given, or the default number of steps."""
    limits = (command.steps, command.tokens, command.calls, command.minutes)
    steps = DEFAULT_STEPS if all(limit is None for limit in limits) else command.steps
    return Budget(steps=steps, tokens=command.tokens, calls=command.calls, minutes=command.minutes)


def print_result(result: RunResult, folder: Path) -> None:
    """The table, and where everything lies."""
    console = table_console()
    console.print()
    for old, new in zip(result.before, result.after, strict=True):
        console.print(before_after(old, new))
        console.print()
    console.print(
        f"{result.steps} steps, {result.sampled_tokens:,} sampled tokens, "
        f"{result.env_turns:,} environment steps, {result.seconds / 60:.1f} minutes",
        highlight=False,
    )
    for label, name in (
        ("curve", "curve.png"),
        ("transcripts", "trajectories/"),
        ("metrics", "metrics.jsonl"),
        ("result", "result.json"),
        ("model", f"checkpoints/step-{result.steps:06d}/"),
    ):
        console.print(f"{label:12}{folder / name}", highlight=False, soft_wrap=True)


def _own_split(
    env: EnvConfig, sizes: Mapping[str, int | None], command: TrainCommand, report: Reporter
) -> tuple[EvalConfig, ...]:
    """The environment's own evaluation split, where it has one."""
    if not command.eval_split:
        return ()
    if sizes.get(command.eval_split, 1) == 0:
        report.note(
            f"split {command.eval_split!r} holds no task: nothing is evaluated. "
            "Give --eval-data NAME=FILE to do so."
        )
        return ()
    split = command.eval_split
    return (EvalConfig(name=split, env=env, split=split, n=command.eval_n),)
