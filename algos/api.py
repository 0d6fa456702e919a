"""Train with a single call, without a configuration object."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..agents.models.registry.fetch import is_registry_model, model_folder
from ..agents.scripted import text_env
from ..agents.warm_start.cache import ensure_starter
from ..envs.core.errors import UnknownNameError
from ..envs.core.registration import find_environment, resolve_id
from ..envs.core.settings import check_declared, check_integer
from .evaluation.defaults import TASKS
from .evaluation.result import RunResult
from .ray import RayRollouts
from .recipes import make_recipe
from .runs.loggers import Logger, check_loggers, check_record_packages
from .runs.progress import Reporter, Silent, reporter
from .runs.run_dir import run_name
from .training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from .training.settings import WarmStartSettings
from .training.supervised.warm_start import warm_start as imitate
from .training.trainer import train

_OWN = frozenset({"env", "model", "warm_start", "recipe", "budget", "evals"})
_OPTIONS = tuple(f.name for f in dataclasses.fields(TrainConfig) if f.name not in _OWN)


def train_on(  # noqa: PLR0913 - the settings that a script sets
    env_id: str,
    recipe: str = "grpo",
    *,
    settings: Mapping[str, Any] | None = None,
    model: str | Path | None = None,
    recipe_settings: Mapping[str, Any] | None = None,
    warm_start: int = 0,
    steps: int = 100,
    eval_n: int = TASKS,
    actors: int = 0,
    loggers: Sequence[str | Logger] = (),
    run_dir: Path | str | None = None,
    **options: Any,
) -> RunResult:
    """Train on an environment, or resume an interrupted run; return the scores before and after.

    The same script is a run in one process, under ``torchrun`` or ``accelerate launch`` a run of
    several, and with ``actors`` a run whose episodes are played by Ray actors:

        from turngym.algos import train_on

        result = train_on("SearchQA-v0", "grpo", settings={"size": "micro"}, engine="vllm")
        print(result.after[0].success, result.after[0].greedy.success)

    The number of threads is left to the caller: a model of a few million parameters is fastest with
    one (``OMP_NUM_THREADS=1``), as ``turngym train`` has it. With several, let those that
    wait sleep, as that does too (``OMP_WAIT_POLICY=passive``, set before torch is imported): where
    they spin beside another program, a large model's step takes three times as long.

    Args:
        env_id: Id of a registered environment, or ``MODULE:Id-v0``; evaluated on its ``dev`` split
            if it has one.
        recipe: A registered recipe.
        settings: Settings of the environment; without a size, and with the small starter, what that
            was made for.
        model: Folder or hub name, a name of ``turngym models`` or a GGUF file; None for the
            environment's small starter, made when it is not cached, and the recipe's settings for
            small models.
        recipe_settings: Changes to the recipe, with dotted names ("optim.lr").
        warm_start: Episodes of the environment's expert that the model imitates before the first
            step; see :func:`~turngym.algos.training.supervised.warm_start.warm_start`.
        steps: Training steps.
        eval_n: Tasks of an evaluation.
        actors: Rollout actors on a Ray cluster (the one that ``RAY_ADDRESS`` names, else one on
            this machine); 0 plays in this process.
        loggers: Where the metrics go besides the run directory: ``"wandb"``, ``"trackio"``, or
            objects with the methods of :class:`~turngym.algos.runs.loggers.Logger`.
        run_dir: Default ``runs/RECIPE-ENV-SIZE-MODEL-seedS``.
        options: Any other field of :class:`~turngym.algos.training.config.TrainConfig`, such as
            ``engine``, ``seed``, ``max_tokens``, ``lora``.

    Raises:
        TurngymError: A setting is invalid; nothing was done.
        KeyboardInterrupt: After a checkpoint was saved.
    """
    for name in options:
        if name not in _OPTIONS:
            raise UnknownNameError("option", name, _OPTIONS)
    own = {"env_id": env_id, "settings": settings, "model": model, "run_dir": run_dir}
    check_declared(train_on, "train_on", {**own, "recipe_settings": recipe_settings})
    check_integer("actors", actors, "train_on", min=0)
    check_loggers(loggers)  # before minutes of imitation
    check_record_packages(options.get("records", TrainConfig.records))
    env_id, model = resolve_id(env_id), None if model is None else str(model)
    env = given = EnvConfig(id=env_id, settings=dict(settings or {}))
    if model is None:
        env = given.fitted(find_environment(env_id).warm_start_settings)
    made = make_recipe(recipe, recipe_settings or {}, small=model is None)
    sizes = text_env(env.prototype).source.sizes()
    evals = (EvalConfig(env=env, n=eval_n),) if sizes.get("dev", 0) != 0 else ()
    first = int(os.environ.get("RANK", "0")) == 0  # torchrun starts several; one of them reports
    report = reporter() if first else Silent()
    if env is not given:
        report.note(f"settings={env.settings}: what the starter was made for; give others with it")
    start = _starting_model(env_id, model, report)
    config = TrainConfig(
        env=env,
        model=start,
        recipe=made,
        budget=Budget(steps=steps),
        evals=evals,
        **options,
    )
    if warm_start:
        made.check(text_env(env.prototype))  # before minutes of imitation
        how = WarmStartSettings(episodes=warm_start, render=config.render)
        imitated = imitate(
            start,
            env,
            how,
            report,
            device=config.device,
            gradient_checkpointing=config.learner.gradient_checkpointing,
        )
        config = dataclasses.replace(config, model=str(imitated.folder), warm_start=imitated.record)
    name = run_name(recipe, env_id, env.settings, model or "starter", config.seed)
    folder = Path("runs") / name if run_dir is None else run_dir
    if actors == 0:
        return train(config, folder, report, loggers=loggers)
    with RayRollouts(actors, address=os.environ.get("RAY_ADDRESS")) as engine:
        return train(config, folder, report, engine, loggers=loggers)


def _starting_model(env_id: str, model: str | None, report: Reporter) -> str:
    if model is None:
        return str(ensure_starter(env_id))
    if not is_registry_model(model) or Path(model).is_dir():
        return model
    with report.bar(f"fetching {model}") as bar:
        return str(model_folder(model, bar.update, report.note))
