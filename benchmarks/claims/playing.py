"""Playing arms: rollout strategies of one model, and linear crawlers.

Strategies are measured by leaves per token and call, and by entropy. A linear crawler is PaSa's
session PPO without a language model, trained in seconds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...agents.engines.base import Sampling
from ...agents.engines.factory import EngineSettings, build_engine
from ...agents.models.loading import load_tokenizer
from ...agents.rendering.factory import make_renderer
from ...algos.core.forest import Forest, Group
from ...algos.core.protocols import Rollout, Start
from ...algos.rollouts import Branch, Chains, EpisodeRunner, Expand, seed_at
from ...algos.rollouts.stats import tokens_sampled, turns_taken
from ...algos.training.config import EnvConfig
from ..matrix.references import make_start_model
from ..matrix.suite import Limits, SuiteEnv
from ..papers.linear_crawler import LinearCrawler, LinearSettings, linear_world, train_linear
from ..runtime.threads import prepare
from .cached_arms import OnProgress, Values, run_arms
from .experiments import CrawledArm, Crawling, ModelExperiment, PlayedArm, Playing
from .outcome import ArmRuns

ROLLOUTS: dict[str, Any] = {"chains": Chains, "expand": Expand, "branch": Branch}
MAX_BATCH = 64


def run_playing(
    experiment: Playing, seeds: Sequence[int], folder: Path, on_progress: OnProgress
) -> tuple[ArmRuns, ...]:
    """Play every arm with every seed; the model is made on first use.

    Raises:
        TurngymError: A setting that does not exist, or a model that cannot be made.
    """
    known: list[EpisodeRunner] = []

    def values(arm: PlayedArm, seed: int) -> Values:
        if not known:
            known.append(make_runner(experiment))
        return play_arm(experiment, arm, seed, known[0])

    return run_arms(experiment, seeds, folder, on_progress, values)


def start_folder(experiment: ModelExperiment) -> str:
    """Return the folder of an experiment's starting model, made when it is not cached."""
    column = SuiteEnv(
        id=experiment.env_id,
        settings=experiment.settings,
        start=experiment.start,
        limits=Limits(tokens=1, calls=1),
        max_tokens=experiment.max_tokens,
        eval_tasks=1,
        eval_every=0,
    )
    return make_start_model(column)[0]


def make_runner(experiment: Playing) -> EpisodeRunner:
    """Make the episode runner of an experiment."""
    prepare(small=True)
    folder = start_folder(experiment)
    tokenizer = load_tokenizer(folder)
    engine = build_engine(folder, tokenizer, EngineSettings(max_batch=MAX_BATCH))
    env = EnvConfig(id=experiment.env_id, settings=experiment.settings).make()
    sampling = Sampling(max_tokens=experiment.max_tokens, temperature=1.0)
    return EpisodeRunner(env, engine, make_renderer(tokenizer), sampling, None)


def play_arm(experiment: Playing, arm: PlayedArm, seed: int, runner: EpisodeRunner) -> Values:
    """Play an arm with a seed; return every metric by task."""
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
    """Return the mean entropies (nats) of first tokens: of first actions, and of later ones."""
    first: list[float] = []
    after: list[float] = []
    for path in forest:
        for at, turn in enumerate(forest.turns(path)):
            (after if at else first).append(float(np.mean(turn.entropies[:probe_tokens])))
    return first, after


def run_crawling(
    experiment: Crawling, seeds: Sequence[int], folder: Path, on_progress: OnProgress
) -> tuple[ArmRuns, ...]:
    """Train and score every arm with every seed.

    Raises:
        TurngymError: A setting that does not exist or does not fit.
    """
    return run_arms(
        experiment, seeds, folder, on_progress, lambda arm, seed: crawl_arm(experiment, arm, seed)
    )


def crawl_arm(experiment: Crawling, arm: CrawledArm, seed: int) -> Values:
    """Return recall, actions and return of whole crawls, by request."""
    given: dict[str, Any] = {**experiment.settings, **arm.settings}
    settings = LinearSettings(**given)
    drawn = {} if settings.full else {"schedule": "sampled", "per_layer": settings.drawn}
    training_env = linear_world(**{**experiment.env_settings, **drawn, **arm.env_settings})
    return score_requests(
        train_linear(training_env, settings, seed),
        linear_world(**experiment.env_settings),
        experiment.requests,
    )


def score_requests(crawler: LinearCrawler, env: Any, requests: int) -> Values:
    """Score whole crawls of the first dev requests by the default environment."""
    values: dict[str, dict[str, float]] = {name: {} for name in Crawling.measures}
    for task in range(requests):
        crawler.crawl(env, task, {"split": "dev", "task": task})
        metrics = env.metrics(env.episode)
        unit = f"dev/{task}"
        values["recall"][unit] = float(metrics["crawler_recall"])
        values["actions"][unit] = float(metrics["all_actions"])
        values["return"][unit] = float(env.episode.total_reward)
    return values
