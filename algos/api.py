"""Train with a single call, without a configuration object."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..agents.scripted import text_env
from ..agents.warm_start.cache import ensure_starter
from ..envs.core.errors import UnknownNameError
from .evaluation.defaults import TASKS
from .evaluation.result import RunResult
from .ray import RayRollouts
from .recipes import make_recipe
from .runs.progress import reporter, without_progress_bars
from .training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from .training.trainer import train

_OWN = frozenset({"env", "model", "recipe", "budget", "evals"})
_OPTIONS = tuple(f.name for f in dataclasses.fields(TrainConfig) if f.name not in _OWN)


@without_progress_bars()
def train_on(  # noqa: PLR0913 - the settings that a script sets
    env_id: str,
    recipe: str = "grpo",
    *,
    settings: Mapping[str, Any] | None = None,
    model: str | None = None,
    recipe_settings: Mapping[str, Any] | None = None,
    steps: int = 100,
    eval_n: int = TASKS,
    actors: int = 0,
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
    one (``OMP_NUM_THREADS=1``), as ``turngym train`` has it.

    Args:
        env_id: Id of a registered environment; evaluated on its ``dev`` split if it has one.
        recipe: A registered recipe.
        settings: Settings of the environment.
        model: Folder or hub name; None for the environment's small starter, made when it is not
            cached, and the recipe's settings for small models.
        recipe_settings: Changes to the recipe, with dotted names ("optim.lr").
        steps: Training steps.
        eval_n: Tasks of an evaluation.
        actors: Rollout actors on a Ray cluster (the one that ``RAY_ADDRESS`` names, else one on
            this machine); 0 plays in this process.
        run_dir: Default ``runs/RECIPE-ENV-seedS``.
        options: Any other field of :class:`~turngym.algos.training.config.TrainConfig`, such as
            ``engine``, ``seed``, ``max_tokens``, ``lora``.

    Raises:
        TurngymError: A setting is invalid; nothing was done.
        KeyboardInterrupt: After a checkpoint was saved.
    """
    for name in options:
        if name not in _OPTIONS:
            raise UnknownNameError("option", name, _OPTIONS)
    env = EnvConfig(id=env_id, settings=dict(settings or {}))
    made = make_recipe(recipe, recipe_settings or {}, small=model is None)
    sizes = text_env(env.prototype).source.sizes()
    evals = (EvalConfig(env=env, n=eval_n),) if sizes.get("dev", 0) != 0 else ()
    config = TrainConfig(
        env=env,
        model=str(ensure_starter(env_id)) if model is None else model,
        recipe=made,
        budget=Budget(steps=steps),
        evals=evals,
        **options,
    )
    name = f"{recipe}-{env_id.removesuffix('-v0')}-seed{config.seed}".lower()
    folder = Path("runs") / name if run_dir is None else run_dir
    if actors == 0:
        return train(config, folder, reporter())
    with RayRollouts(actors, address=os.environ.get("RAY_ADDRESS")) as engine:
        return train(config, folder, reporter(), engine)
