"""`turngym demo`: a model finds a better strategy while you watch, a small one or a real one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...agents.engines.factory import EngineSettings
from ...algos.evaluation.defaults import TASKS
from ...algos.evaluation.evaluate import Evaluation
from ...algos.evaluation.result import RunResult
from ...algos.learner.settings import LearnerSettings
from ...algos.runs.loggers import check_record_packages
from ...algos.runs.progress import Reporter, clock, reporter
from ...algos.runs.run_dir import list_differences, read_json
from ...algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig, model_digest
from ...envs.core.errors import BadValueError, DataError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import check_writable
from ..runtime.threads import prepare
from .arguments import RunDir
from .model_options import STARTER, Sampler, WarmStartOptions, model_path, starter, warmed
from .tables import say
from .train import print_result

ENV = "SearchQA-v0"
HOPS = 2
START: Mapping[str, Any] = {
    "mistakes": 0.0,
    "habits": {"haste": 0.85},
    "err_steps": 60,
    "read_until": 0.98,
    "read_until_sampled": 0.97,
}
"""Changes to the starter's settings: its teacher makes no slips, but in 85 of 100 questions of
two hops it answers with what the first search found. It reads well first, sampled too, so that what
is left to learn is what to do."""


STEPS = 40
"""Training steps with the small model."""
REAL_SETTINGS: Mapping[str, Any] = {"size": "full", "hops": 1}
REAL_TASKS, REAL_TOKENS = 40, 160
"""With a real model: the environment, questions of an evaluation, tokens of an action (the expert's
that counts a list of twelve has 127)."""
REAL_EPISODES = 312
"""Of the expert: 26 steps of 12, eight minutes of two cores for SmolLM2-135M."""
REAL_MINUTES = 13.0
"""Of GRPO with its first evaluation. With what stands around it (loading, two more evaluations, of
which the one of the model as it is writes to the limit of every action, the imitation) two cores
need less than half an hour."""
REAL_RECIPE: Mapping[str, Any] = {
    "groups_per_step": 8,
    "rollout.n": 8,
    "optim.lr": 3e-5,
    "optim.warmup_steps": 2,
    "optim.minibatches": 1,
    "loss.kl.coef": 0.0,
    "loss.entropy_coef": 0.0,
}
"""One optimiser step a batch and no reference, so that the update's own pass is the only one; and
without the entropy bonus: in a step without a right answer it is the only gradient, and AdamW makes
a whole step of it."""
AS_IT_IS = "as-it-is-dev.txt"
"""File of the episodes that the real model played before it learned anything."""
MICRO_BATCH_TOKENS = 2048
"""Tokens of a forward pass of training, which keeps the real model below 8 GiB."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Watch a model find a better strategy: table, curve and transcripts.

    Without --model a small model that is made here learns the micro SearchQA. With one that
    `turngym models` lists, a model folder or a GGUF file, that model plays the full SearchQA in
    English: as it is, after it imitated the expert, and after reinforcement learning.

    Attributes:
        model: A model that `turngym models` lists, a model folder, GGUF file or hub name; left out,
            or starter: the small one made here.
        run_dir: Folder of the run; left out: the next runs/demo-N.
        steps: Training steps; left out: 40 with the small model, as many as fit with --model.
        minutes: Minutes of reinforcement learning with --model.
        warm_start: Episodes of the expert that --model imitates first; left out: 312.
        n: Questions of the evaluations; left out: 200, and 40 with --model.
        seed: Seed of the training.
        sampler: What samples the model's actions.
    """

    model: str | None = None
    run_dir: RunDir = None
    steps: int | None = None
    minutes: float | None = None
    warm_start: int | None = None
    n: int | None = None
    seed: int = 0
    sampler: Sampler = field(default_factory=lambda: EngineSettings(max_batch=128))


def run(command: Command) -> None:
    """Train a model, and show what changed.

    Raises:
        BadValueError: Options that go with ``--model`` alone, without it; less than one question;
            a folder that cannot be made.
        MissingExtraError: A package that the run needs at its end is not installed.
    """
    if command.n is not None and command.n < 1:
        raise BadValueError(f"--n is {command.n}; expected at least 1.")
    check_record_packages("all")
    folder = Path(command.run_dir or "runs").expanduser()  # told now, not after a model was made
    if command.run_dir:
        make_folder(folder)
    if not (folder / "result.json").exists():  # a finished run gives its result again
        check_writable(folder)
    if command.model not in (None, STARTER):
        _show_real_model(command, command.model)
        return
    for name in ("minutes", "warm_start"):
        if getattr(command, name) is not None:
            raise BadValueError(f"--{name.replace('_', '-')}: goes with --model.")
    _show_small_model(command)


def _show_small_model(command: Command) -> None:
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
        budget=Budget(steps=STEPS if command.steps is None else command.steps),
        evals=(EvalConfig(name="dev", env=env, split="dev", n=command.n or TASKS),),
        seed=command.seed,
        eval_every=5,
        checkpoint_every=20,
        **vars(command.sampler),
    )
    folder = (
        Path(command.run_dir).expanduser() if command.run_dir else next_folder(Path("runs"), config)
    )
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


def _show_real_model(command: Command, name: str) -> None:
    """Score a model as it is, let it imitate and then learn, and show all three."""
    from ...algos import train
    from ...algos.recipes import make_recipe

    began = time.monotonic()
    options = WarmStartOptions(
        warm_start=REAL_EPISODES if command.warm_start is None else command.warm_start,
        warm_start_micro_batch_tokens=MICRO_BATCH_TOKENS,
    )
    budget = _budget(command)  # refused now where it makes no sense, not after ten minutes
    prepare(small=False)
    report = reporter()
    model = model_path(name, (), "model")
    if slow := tell_if_slow(command.sampler.device):
        report.note(slow)
    env = EnvConfig(id=ENV, settings=REAL_SETTINGS)
    what = EvalConfig(name="dev", env=env, split="dev", n=command.n or REAL_TASKS)
    report.note(f"1. {name} as it is, on {what.n} questions of the full {ENV}, in English")
    first = _evaluate_as_it_is(model, what, command, report)
    report.note(first.summary_line(0))
    report.note(f"2. it imitates {options.warm_start} episodes of the expert")
    start = warmed(options, model, env, report, device=command.sampler.device)
    config = TrainConfig(
        env=env,
        model=model if start is None else str(start.folder),
        warm_start=None if start is None else start.record,
        recipe=make_recipe("grpo", REAL_RECIPE),
        budget=budget,
        evals=(what,),
        learner=LearnerSettings(micro_batch_tokens=MICRO_BATCH_TOKENS),
        seed=command.seed,
        max_tokens=REAL_TOKENS,
        eval_every=0,
        checkpoint_every=5,
        **vars(command.sampler),
    )
    folder = (
        Path(command.run_dir).expanduser() if command.run_dir else next_folder(Path("runs"), config)
    )
    report.note(
        f"3. GRPO: {config.recipe.groups_per_step} questions a step, "
        f"{config.recipe.rollout.max_paths} attempts each; only right answers are rewarded"
    )
    result = train(config, folder, report)
    _write_as_it_was(folder, first, model)
    report.note("4. after imitation (before) and after GRPO (after)")
    print_result(result, folder)
    for line in tell_three(first, result, folder):
        say(line)
    say(f"{'all in all':12}{clock(time.monotonic() - began)} minutes")
    how = f"--env.hops {REAL_SETTINGS['hops']} --max-tokens {REAL_TOKENS}"
    say(f"{'watch it':12}turngym play {ENV} {how} --agent {folder}")


def _budget(command: Command) -> Budget:
    """Return the given limits, or the minutes that fit into half an hour with the rest."""
    minutes = command.minutes
    if minutes is None and command.steps is None:
        minutes = REAL_MINUTES
    return Budget(steps=command.steps, minutes=minutes)


def tell_if_slow(device: str) -> str:
    """Return what to expect of a processor that does not multiply bfloat16; empty elsewhere."""
    from ...agents.models.loading import has_bfloat16, resolve_device

    where = resolve_device(device)
    if where.type != "cpu" or has_bfloat16(where):
        return ""
    return (
        "   this processor does not multiply bfloat16, as those with AVX-512 do: what is before "
        "GRPO takes some five times as long as the quarter of an hour there, and GRPO's minutes "
        "hold fewer steps; --n, --warm-start and --minutes make it shorter"
    )


def _evaluate_as_it_is(
    model: str, what: EvalConfig, command: Command, report: Reporter
) -> Evaluation:
    from ...algos.evaluation.lm_agent import TokenAgent

    agent = TokenAgent(model, max_tokens=REAL_TOKENS, engine=command.sampler)
    return agent.evaluate(what.make(), report)


def _write_as_it_was(folder: Path, first: Evaluation, model: str) -> None:
    from ...agents.models.loading import load_tokenizer
    from ...agents.rendering.factory import make_renderer
    from ...algos.training.run_writer import write_evaluation

    renderer = make_renderer(load_tokenizer(model))
    write_evaluation(folder / "trajectories" / AS_IT_IS, first, renderer, TrainConfig.transcripts)


def tell_three(first: Evaluation, result: RunResult, folder: Path) -> list[str]:
    """Return lines on what the model does as it is, after imitation, and after learning."""
    from ...algos.training.run_writer import read_first_episode

    lines = ["the first question greedily, and all of them, sampled and greedily:"]
    name = first.name
    moments = (
        ("as it is", [first.score()], AS_IT_IS),
        ("after imitation", result.before, f"step-{0:06d}-{name}.txt"),
        ("after GRPO", result.after, f"step-{result.steps:06d}-{name}.txt"),
    )
    for when, scores, file in moments:
        if scores and scores[0].n:
            greedy = scores[0].greedy or scores[0]
            searches = greedy.metrics["searches"]
            right = f"{scores[0].success.mean:.1%} and {greedy.success.mean:.1%} right"
            lines.append(f"  {when}: {right}, {searches:.2f} searches per question greedily")
            episode = read_first_episode(folder / "trajectories" / file, "greedy")
            lines += [f"    {line}" for line in episode]
    return lines


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


def next_folder(root: Path, config: TrainConfig) -> Path:
    """Return ``demo-N``: the last one where it is this run and was interrupted, else a new one."""
    made = sorted(
        (p for p in root.glob("demo-*") if p.name.removeprefix("demo-").isdigit()),
        key=lambda p: int(p.name.removeprefix("demo-")),
    )
    if made and not (made[-1] / "result.json").exists() and _is_run(made[-1], config):
        return made[-1]
    number = int(made[-1].name.removeprefix("demo-")) + 1 if made else 1
    return root / f"demo-{number}"


def _is_run(folder: Path, config: TrainConfig) -> bool:
    try:
        old = read_json(folder / "config.json")
    except DataError:
        return False
    new = json.loads(json.dumps(config.resolved(model_digest(config.model))))
    return not list_differences(old, new)
