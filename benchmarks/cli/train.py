"""`turngym train`: options to a configuration, the run, and its report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from ...agents.models.loading import is_small
from ...agents.scripted import text_env
from ...algos.evaluation.defaults import TASKS
from ...algos.evaluation.result import RunResult
from ...algos.learner.settings import LearnerSettings
from ...algos.runs.loggers import check_loggers, check_record_packages
from ...algos.runs.progress import Reporter, Silent, reporter
from ...algos.runs.run_dir import run_name
from ...algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from ...algos.training.settings import TrainSettings
from ...envs.core.errors import BadValueError
from ...envs.core.plugins import load_again, loaded_plugins
from ...envs.utils.disk_errors import check_writable
from ..runtime.observation_budget import fitted
from ..runtime.threads import prepare
from .arguments import MAY_BE_EMPTY, Repeated, RunDir, expand_dotted, pairs
from .env_options import Environment, EnvOptions, env_config, file_sets
from .model_options import (
    STARTER,
    LoraOptions,
    StarterKind,
    WarmStartOptions,
    Warmth,
    fitting_size,
    lora,
    made_for,
    model_path,
    note_cut_actions,
    starter,
    warmed,
)
from .tables import before_after, gain_line, say, table_console

if TYPE_CHECKING:
    from ...algos.training.engines import EngineMaker


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """Where rollouts are played.

    Attributes:
        executor: local, in the learner's process (or in each of those that torchrun started), or
            ray, by actors on a Ray cluster (extra ray).
        rollout_actors: Actors of --executor ray.
        ray_address: Address of a running cluster, as auto or ray://HOST:PORT; left out: Ray on this
            machine.
        actor_cpus: Processors of each actor.
        actor_gpus: GPUs, or the share of one, of each actor.
    """

    executor: Literal["local", "ray"] = "local"
    rollout_actors: int = 2
    ray_address: str | None = None
    actor_cpus: float = 1.0
    actor_gpus: float = 0.0


KEYED = ("--env-arg", "--recipe-arg")
"""Options that the name in their value distinguishes."""
OWN_FILES = ("data", "corpus", "papers", "site", "search_url")
"""Settings of environments that take the place of a generated world."""
_OF_EVALUATIONS = tuple(
    f"--{name}"
    for name in ("eval-every", "eval-n", "eval-temperature", "greedy-every", "transcripts")
)
DEFAULT_STEPS = 100
WORTH_SAYING = 0.01
"""Share of paths or actions that a limit cut, from which on a run tells it."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Train a language model; the same command again resumes an interrupted run.

    Attributes:
        recipe: The algorithm; `turngym recipes` lists them.
        recipe_arg: A setting of the recipe as name=value, repeatable; short: --recipe.NAME VALUE.
        env: Id of the environment; `turngym envs` lists them.
        env_options: Settings of the environment.
        model: The starting model: one that `turngym models` lists, a model folder, GGUF file or
            hub name; left out, or starter: the small one made here, with settings for small models.
        starter: The starting model that is made here: random weights (blank), or imitation of the
            environment's expert (imitate); left out: what the environment's row in the registry
            says.
        small: Take the recipe's settings for small models; left out: with models of up to 20
            million weights, the starter among them, and without --preset.
        warm: What the model imitates before the first training step.
        run_dir: Folder of the run; left out: runs/RECIPE-ENV-SIZE-MODEL-seedN.
        log: Where the metrics go besides the run directory (JSON lines and TensorBoard): wandb or
            trackio, by the extras of these names; repeatable.
        config: The config.json of a run, or its folder: this run is one of the same settings, but
            for options that are given beside it.
        steps: Training steps (100 when no budget is given).
        tokens: Stop after so many sampled tokens.
        calls: Stop after so many actions taken.
        minutes: Stop after so much time.
        eval_split: Split that is evaluated before, during and after training; empty for none, as
            where there is no split dev.
        eval_n: Tasks per evaluation.
        eval_data: Question files (or folders, of which the last split counts) to evaluate on
            instead, as name=file; searched in --corpus.
        settings: Everything else about the run, its engine included.
        learner: How the learner computes.
        preset: Settings of a published run, `turngym plan` lists them; options given beside it
            take their place.
        lora: Adapters that are trained in place of the weights.
        where: Where rollouts are played.
    """

    preset: str | None = None
    recipe: str = "grpo"
    recipe_arg: Repeated = ()
    env: str = "SearchQA-v0"
    env_options: Environment = field(default_factory=EnvOptions)
    model: str | None = None
    starter: StarterKind | None = None
    small: bool | None = None
    warm: Warmth = field(default_factory=WarmStartOptions)
    run_dir: RunDir = None
    log: Repeated = ()
    config: str | None = None
    steps: int | None = None
    tokens: int | None = None
    calls: int | None = None
    minutes: float | None = None
    eval_split: Annotated[str, MAY_BE_EMPTY] = "dev"
    eval_n: int = TASKS
    eval_data: tuple[str, ...] = ()
    settings: Annotated[TrainSettings, tyro.conf.arg(name="")] = field(
        default_factory=TrainSettings
    )
    learner: Annotated[LearnerSettings, tyro.conf.arg(name="")] = field(
        default_factory=LearnerSettings
    )
    lora: Annotated[LoraOptions, tyro.conf.arg(name="")] = field(default_factory=LoraOptions)
    where: Annotated[ExecutorOptions, tyro.conf.arg(name="")] = field(
        default_factory=ExecutorOptions
    )


def run(command: Command) -> None:
    """Train, and print the result."""
    first = int(os.environ.get("RANK", "0")) == 0  # torchrun starts several; one of them reports
    report = reporter() if first else Silent()
    from ...algos import train

    prepare(small=command.model is None or is_small(command.model))
    config, folder = configure(command, report)
    with engine_maker(command) as engine:
        result = train(config, folder, report, engine, loggers=command.log)
    if first:
        print_result(result, folder)


@contextmanager
def engine_maker(command: Command) -> Iterator[EngineMaker]:
    """Hold what makes the engine of the run, and end what it started.

    Raises:
        BadValueError: Options that do not fit.
        MissingExtraError: Ray is not installed.
    """
    from ...algos.ray import RayRollouts
    from ...algos.training.engines import make_engine

    where = command.where
    if where.executor == "local":
        if given := sorted(k for k, v in vars(ExecutorOptions()).items() if vars(where)[k] != v):
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise BadValueError(f"training: {names} without --executor ray changes nothing.")
        yield make_engine
        return
    with RayRollouts(
        where.rollout_actors,
        address=where.ray_address,
        cpus=where.actor_cpus,
        gpus=where.actor_gpus,
        prepare=partial(load_again, loaded_plugins()),
    ) as rollouts:
        yield rollouts


def configure(command: Command, report: Reporter) -> tuple[TrainConfig, Path]:
    """Return the configuration and the run directory that the options describe.

    Raises:
        TurngymError: An option that does not fit; nothing was done yet.
    """
    from ...algos.recipes import make_recipe

    check_loggers(command.log)
    check_record_packages(command.settings.records)
    given = env_config(command.env, command.env_options)
    changes = pairs(command.recipe_arg, "--recipe-arg")
    make_recipe(command.recipe, changes)  # wrong words are refused before a model is made
    split = command.eval_split
    asked = None if split in ("", Command.eval_split) else f"--eval-split {split}"
    file_sets(given, command.eval_data, command.eval_n, asked)
    own = command.model in (None, STARTER)
    if not own and command.starter is not None:
        raise BadValueError(f"--starter {command.starter}: does not go with --model.")
    model = "" if own else model_path(command.model or "", (STARTER,), "model")
    env = fitting_size(given, made_for(model or None, command.env), report)
    sizes = text_env(env.prototype).source.sizes()
    what = command.preset or command.recipe
    label = (command.starter or STARTER) if own else command.model or ""
    name = run_name(what, command.env, env.settings, label, command.settings.seed)
    folder = Path(command.run_dir or Path("runs") / name).expanduser()
    _check_run_dir(folder)
    if own:
        model = starter(command.env, report, kind=command.starter)
    small = command.small
    if small is None:  # a preset says everything itself
        small = own or (command.preset is None and is_small(model))
    if small and not own and command.small is None:
        report.note("the recipe's settings for small models (--small False takes the papers')")
    recipe = make_recipe(command.recipe, changes, small=small)
    settings = command.settings
    env = fitted(env, model, settings.max_tokens, own, report, settings.render)
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
    if command.warm.warm_start:  # what does not fit is refused before minutes of imitation
        recipe.check(text_env(env.prototype))
    start = warmed(
        command.warm,
        model,
        env,
        report,
        device=settings.device,
        render=settings.render,
        gradient_checkpointing=command.learner.gradient_checkpointing,
    )
    if start is not None:
        note_cut_actions(start, settings.max_tokens, report)
        config = replace(config, model=str(start.folder), warm_start=start.record)
    return config, folder


def _check_run_dir(folder: Path) -> None:
    """Refuse a run directory that cannot be written before a model is made.

    That of a finished run may be one that can only be read: its result is given again.

    Raises:
        BadValueError: It may not be written.
    """
    first = int(os.environ.get("RANK", "0")) == 0  # the others do not write there
    if first and not (folder / "result.json").exists():
        check_writable(folder)


def default_command(words: Sequence[str]) -> Command | None:
    """Return the options of the run that ``--config`` names; None where it is not given.

    Raises:
        DataError: There is no such file, or it is no configuration of a run.
        BadValueError: ``--config`` without a file, or one that the command line cannot say.
    """
    files = [value for option, value in _read_options(words) if option == "--config"]
    if not files:
        return None
    if not files[0]:
        raise BadValueError("--config: expected a config.json or the folder of a run after it.")
    from .saved_config import read_options

    given = list(_read_options(expand_dotted(words)))
    found = read_options(files[0], dict(given))
    _give_way(found, given)
    return Command(**found)


def _give_way(found: dict[str, Any], words: Sequence[tuple[str, str]]) -> None:
    """Take out of a saved run's options what others take the place of.

    Settings of the recipe or the environment go one by one, and all of them where another recipe
    or environment is named, which has settings of its own for small models too.
    """
    given = {_key(*pair) for pair in words}
    named = {option: value for option, value in words if option not in KEYED}
    settings = {name for option, name in given if option == "--env-arg"}
    settings |= {name for name in ("size", "hops", "data", "corpus") if f"--{name}" in named}
    if settings & {*OWN_FILES}:  # the generated world of the saved run goes with its settings
        settings |= {"size", "hops"}
    own = found["env_options"].env_arg
    if named.get("--env", found["env"]) != found["env"]:
        own = ()
    kept = tuple(word for word in own if word.partition("=")[0] not in settings)
    found["env_options"] = replace(found["env_options"], env_arg=kept)
    changed = {name for option, name in given if option == "--recipe-arg"}
    if named.get("--recipe", found["recipe"]) != found["recipe"]:
        found["recipe_arg"], found["small"] = (), None
        found["learner"] = replace(found["learner"], critic=LearnerSettings.critic)
    found["recipe_arg"] = tuple(
        word for word in found["recipe_arg"] if word.partition("=")[0] not in changed
    )
    if "--eval-data" in named:
        found["eval_split"] = Command.eval_split
    elif "--eval-split" in named:
        found["eval_data"] = ()
    if named.get("--lora-rank") == "0":
        found["lora"] = LoraOptions()
    if named.get("--warm-start") == "0":
        found["warm"] = WarmStartOptions()


def budget(command: Command) -> Budget:
    """Return the given limits, or the default number of steps."""
    limits = (command.steps, command.tokens, command.calls, command.minutes)
    steps = DEFAULT_STEPS if all(limit is None for limit in limits) else command.steps
    return Budget(steps=steps, tokens=command.tokens, calls=command.calls, minutes=command.minutes)


def print_result(result: RunResult, folder: Path) -> None:
    """Print the scores before and after, and the files of the run."""
    console = table_console()
    console.print()
    for old, new in zip(result.before, result.after, strict=True):
        console.print(before_after(old, new))
        if line := gain_line(old, new):
            say(line)
        console.print()
    say(
        f"{result.steps} steps ({result.optimizer_steps} of the optimiser), "
        f"{result.sampled_tokens:,} sampled tokens, "
        f"{result.env_turns:,} environment steps, {result.seconds / 60:.1f} minutes"
    )
    if (apart := result.engine_apart_nats) is not None:
        say(f"engine and learner differ by {apart:.4f} nats a sampled token in the mean")
    if (full := result.context_full_frac or 0.0) >= WORTH_SAYING:
        say(f"{full:.0%} of the paths ended because their context was full (--max-context)")
    if (cut := result.cut_actions_frac or 0.0) >= WORTH_SAYING:
        say(f"{cut:.0%} of the actions were cut at their limit (--max-tokens)")
    if result.imitated_tokens is not None:
        say(f"before them {result.imitated_tokens:,} tokens of the expert's actions were imitated")
    for label, name in (
        ("curve", "curve.png"),
        ("transcripts", "trajectories/"),
        ("metrics", "metrics.jsonl"),
        ("result", "result.json"),
        ("model", f"checkpoints/step-{result.steps:06d}/"),
    ):
        path = folder / name
        if path.is_file() or any(path.glob("*")):  # --records metrics writes the fewest
            say(f"{label:12}{path}")


def _own_split(
    env: EnvConfig, sizes: Mapping[str, int | None], command: Command, report: Reporter
) -> tuple[EvalConfig, ...]:
    """Return the environment's own evaluation split, where it has one."""
    if not command.eval_split:
        return ()
    split = command.eval_split
    missing = split not in sizes and split == Command.eval_split  # one file of questions is train
    if missing or sizes.get(split, 1) == 0:
        lack = f"there is no split {split!r}" if missing else f"split {split!r} holds no task"
        report.note(f"{lack}: nothing is evaluated. Give --eval-data NAME=FILE to do so.")
        return ()
    return (EvalConfig(name=split, env=env, split=split, n=command.eval_n),)


def expand_words(words: Sequence[str]) -> list[str]:
    """Put the options of ``--preset NAME`` before the words, but for those that they give.

    Nor has it the size of a generated world where the words name files or pages of their own.

    Raises:
        UnknownNameError: No such preset.
        BadValueError: ``--preset`` without a name, or options of evaluations where there is none.
    """
    from ...algos.training.presets import preset

    given = list(_read_options(words))
    _refuse_unevaluated(dict(given))
    names = [value for option, value in given if option == "--preset"]
    if not names:
        return list(words)
    if not names[0]:
        raise BadValueError("--preset: expected a name after it; `turngym plan` has them.")
    taken = {_key(*pair) for pair in given}
    if taken & {key for name in OWN_FILES for key in ((f"--{name}", ""), ("--env-arg", name))}:
        taken.add(("--size", ""))
    added: list[str] = []
    for option, value in preset(names[0]).options():
        if _key(option, value) not in taken:
            added += [option, value] if value else [option]
    return [*added, *words]


def _refuse_unevaluated(given: Mapping[str, str]) -> None:
    """Refuse what is typed about evaluations where ``--eval-split ""`` leaves them out.

    Raises:
        BadValueError: There is such an option; ``--eval-every 0`` is said of all that come between.
    """
    if given.get("--eval-split") != "" or "--eval-data" in given:
        return
    idle = [name for name in _OF_EVALUATIONS if name in given]
    if idle and (idle, given[idle[0]]) != (["--eval-every"], "0"):
        raise BadValueError(
            f"{', '.join(idle)}: {'do' if len(idle) > 1 else 'does'} nothing with --eval-split "
            '"", which evaluates nothing. Leave one of them out, or give --eval-data.'
        )


def _read_options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, following in zip(words, [*words, "--"][1:], strict=True):
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            if not equals and not following.startswith("--"):
                value = following
            yield "--" + option[2:].replace("_", "-").removeprefix("no-"), value


def _key(option: str, value: str) -> tuple[str, str]:
    """Return what tells an option apart: its name, and the name in its value where it has one."""
    return option, value.partition("=")[0] if option in KEYED else ""
