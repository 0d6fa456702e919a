"""Arms of the linear crawler: PaSa's session PPO without a language model, in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..linear_crawler import LinearCrawler, LinearSettings, linear_world, train_linear
from .cached_arms import Tell, Values, run_arms
from .experiments import CrawledArm, Crawling
from .outcome import ArmRuns


def run_crawling(
    experiment: Crawling, seeds: Sequence[int], folder: Path, tell: Tell
) -> tuple[ArmRuns, ...]:
    """Train and score every arm with every seed.

    Raises:
        TurngymError: A setting that does not exist or does not fit.
    """
    return run_arms(
        experiment, seeds, folder, tell, lambda arm, seed: crawl_arm(experiment, arm, seed)
    )


def crawl_arm(experiment: Crawling, arm: CrawledArm, seed: int) -> Values:
    """Recall, actions and return of whole crawls, by request."""
    given: dict[str, Any] = {**experiment.settings, **arm.settings}
    settings = LinearSettings(**given)
    drawn = {} if settings.full else {"schedule": "sampled", "per_layer": settings.drawn}
    world = linear_world(**{**experiment.world, **drawn, **arm.world})
    return score_requests(
        train_linear(world, settings, seed), linear_world(**experiment.world), experiment.requests
    )


def score_requests(crawler: LinearCrawler, env: Any, requests: int) -> Values:
    """Whole crawls of the first dev requests, scored as the usual world does."""
    values: dict[str, dict[str, float]] = {name: {} for name in Crawling.measures}
    for task in range(requests):
        crawler.crawl(env, task, {"split": "dev", "task": task})
        metrics = env.measure(env.episode)
        unit = f"dev/{task}"
        values["recall"][unit] = float(metrics["crawler_recall"])
        values["actions"][unit] = float(metrics["all_actions"])
        values["return"][unit] = float(env.episode.total_reward)
    return values
