"""Arms that play: what a rollout strategy gets for its tokens and calls, and where it wavers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...agents.engine import Sampling
from ...agents.loading import load_model, load_tokenizer
from ...agents.render import make_renderer
from ...agents.transformers_engine import TransformersEngine
from ...algos.config import EnvConfig
from ...algos.contracts import Rollout, Start
from ...algos.forest import Forest, Group
from ...algos.rollout_stats import tokens_sampled, turns_taken
from ...algos.rollouts import Branch, Chains, EpisodeRunner, Expand, seed_at
from ..machine import prepare
from ..matrix.column import start_model
from ..matrix.suite import Limits, SuiteEnv
from .experiments import PlayedArm, Playing
from .kept import Tell, Values, run_kept
from .outcome import ArmRuns

ROLLOUTS: dict[str, Any] = {"chains": Chains, "expand": Expand, "branch": Branch}
MAX_BATCH = 64


def run_playing(
    experiment: Playing, seeds: Sequence[int], folder: Path, tell: Tell
) -> tuple[ArmRuns, ...]:
    """Play every arm with every seed; the model is made when the first one needs it.

    Raises:
        TurngymError: A setting that does not exist, or a model that cannot be made.
    """
    known: list[EpisodeRunner] = []

    def values(arm: PlayedArm, seed: int) -> Values:
        if not known:
            known.append(player_of(experiment))
        return play_arm(experiment, arm, seed, known[0])

    return tuple(
        run_kept(arm.name, folder / experiment.key(arm), seeds, lambda s, a=arm: values(a, s), tell)
        for arm in experiment.arms
    )


def player_of(experiment: Playing) -> EpisodeRunner:
    """The model in its world."""
    prepare(small=True)
    column = SuiteEnv(
        id=experiment.env_id,
        settings=experiment.settings,
        start=experiment.start,
        limits=Limits(tokens=1, calls=1),
        max_tokens=experiment.max_tokens,
        eval_tasks=1,
        eval_every=0,
    )
    folder, _ = start_model(column)
    tokenizer = load_tokenizer(folder)
    engine = TransformersEngine(load_model(folder), tokenizer, max_batch=MAX_BATCH)
    env = EnvConfig(id=experiment.env_id, settings=experiment.settings).make()
    sampling = Sampling(max_tokens=experiment.max_tokens, temperature=1.0)
    return EpisodeRunner(env, engine, make_renderer(tokenizer), sampling, None)


def play_arm(experiment: Playing, arm: PlayedArm, seed: int, runner: EpisodeRunner) -> Values:
    """Every measure of every task."""
    rollout: Rollout = ROLLOUTS[arm.rollout](**arm.settings)
    starts = [
        Start(experiment.split, task, seed_at(seed, task), f"{seed}/{task}")
        for task in range(seed * experiment.tasks, (seed + 1) * experiment.tasks)
    ]
    groups = asyncio.run(runner.groups(rollout, starts))
    values: dict[str, dict[str, float]] = {name: {} for name in experiment.measures}
    for place, group in enumerate(groups):
        for name, value in _of_group(group, experiment.probe_tokens).items():
            values[name][f"task {place}"] = value
    return {name: units for name, units in values.items() if units}


def _of_group(group: Group, probe_tokens: int) -> dict[str, float]:
    forest = Forest.of([group])
    if not forest.paths:
        return {}
    leaves = len(forest.paths)
    found = {
        "leaves_per_token": math.log2(leaves / tokens_sampled(forest)),
        "leaves_per_call": math.log2(leaves / turns_taken(forest)),
    }
    first, after = _entropies(forest, probe_tokens)
    if first and after:
        found["entropy_rise"] = float(np.mean(after) - np.mean(first))
    return found


def _entropies(forest: Forest, probe_tokens: int) -> tuple[list[float], list[float]]:
    """Mean entropy in nats of an action's first tokens: first actions, and those after a reply."""
    first: list[float] = []
    after: list[float] = []
    for path in forest:
        for at, turn in enumerate(forest.turns(path)):
            (after if at else first).append(float(np.mean(turn.entropies[:probe_tokens])))
    return first, after
