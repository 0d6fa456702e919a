"""The actions of a crawl and what each of them found, for pictures and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from ...agents.scripted import text_env
from ...envs.core.env import Policy
from ...envs.core.errors import BadValueError
from ...envs.paper_crawler.env import PaperCrawler


@dataclass(frozen=True, slots=True)
class FoundPaper:
    """A paper that an action found.

    Attributes:
        id: Of the paper.
        title: Its title.
        score: The selector's probability.
        answer: Whether it is an annotated answer.
    """

    id: str
    title: str
    score: float
    answer: bool


@dataclass(frozen=True, slots=True)
class CrawlAction:
    """One action of a crawl.

    Attributes:
        kind: search, expand or invalid.
        arg: Query or section.
        paper: The paper whose section it is; empty for a search.
        cost: Its price.
        relevant: How many of the new papers were rewarded.
        new: Papers that it put into the queue.
    """

    kind: str
    arg: str
    paper: str
    cost: float
    relevant: int
    new: tuple[FoundPaper, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One finished crawl.

    Attributes:
        task_id: Of the request.
        request: Its text.
        answers: Number of annotated answers.
        actions: The actions in order, stops left out.
        metrics: The environment's metrics.
    """

    task_id: str
    request: str
    answers: int
    actions: Sequence[CrawlAction]
    metrics: Mapping[str, float] = field(default_factory=dict)

    def recall(self) -> list[float]:
        """Return the share of the answers that were found before any action and after each."""
        found, shares = 0, [0.0]
        for action in self.actions:
            found += sum(paper.answer for paper in action.new)
            shares.append(found / max(1, self.answers))
        return shares


def crawler_in(env: gym.Env[Any, Any]) -> PaperCrawler:
    """Return the crawler inside an environment's wrappers.

    Raises:
        BadValueError: It is another environment.
    """
    inner = text_env(env)
    if not isinstance(inner, PaperCrawler):
        raise BadValueError(f"{inner.name} is no PaperCrawler; expected --env PaperCrawler-v0.")
    return inner


def trace(env: gym.Env[Any, Any], policy: Policy, seed: int, options: Mapping[str, Any]) -> Trace:
    """Play an episode and record what each action did.

    Raises:
        BadValueError: The environment is no PaperCrawler, or it broke.
    """
    crawler = crawler_in(env)
    observation, info = env.reset(seed=seed, options=dict(options))
    request = crawler.episode.task.payload
    answers = frozenset(request.answers)
    actions: list[CrawlAction] = []
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation, info))
        crawl = info["crawl"]
        for action in crawl["actions"]:
            if action["kind"] != "stop":
                actions.append(_read_action(crawler, crawl["paper_id"], action, answers))
    if info["status"] == "env_error":
        raise BadValueError(f"task {info['task_id']}: {observation}")
    return Trace(info["task_id"], request.text, len(answers), actions, dict(info["metrics"]))


def _read_action(
    crawler: PaperCrawler, paper: str, action: Mapping[str, Any], answers: frozenset[str]
) -> CrawlAction:
    new = []
    for paper_id, score in zip(action["new_ids"], action["new_scores"], strict=True):
        found = crawler.library.find(paper_id)
        title = found.title if found else paper_id
        new.append(FoundPaper(paper_id, title, score, paper_id in answers))
    return CrawlAction(
        kind=action["kind"],
        arg=action["arg"],
        paper=paper,
        cost=action["cost"],
        relevant=action["n_relevant"],
        new=tuple(new),
    )
