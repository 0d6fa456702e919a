"""What a crawl did, action by action, for pictures and curves."""

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
class Seen:
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
class Deed:
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
    new: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One finished crawl.

    Attributes:
        task_id: Of the request.
        request: Its text.
        answers: Number of annotated answers.
        deeds: The actions in order, stops left out.
        metrics: The environment's measures.
    """

    task_id: str
    request: str
    answers: int
    deeds: Sequence[Deed]
    metrics: Mapping[str, float] = field(default_factory=dict)

    def recall(self) -> list[float]:
        """Share of the answers that were found before any action and after each."""
        found, shares = 0, [0.0]
        for deed in self.deeds:
            found += sum(seen.answer for seen in deed.new)
            shares.append(found / max(1, self.answers))
        return shares


def crawler_in(env: gym.Env[Any, Any]) -> PaperCrawler:
    """The crawler inside an environment's wrappers.

    Raises:
        BadValueError: It is another world.
    """
    world = text_env(env)
    if not isinstance(world, PaperCrawler):
        raise BadValueError(f"{world.name} is no PaperCrawler; expected --env PaperCrawler-v0.")
    return world


def trace(env: gym.Env[Any, Any], policy: Policy, seed: int, options: Mapping[str, Any]) -> Trace:
    """Play an episode and note what each action did.

    Raises:
        BadValueError: The environment is no PaperCrawler, or it broke.
    """
    world = crawler_in(env)
    observation, info = env.reset(seed=seed, options=dict(options))
    request = world.episode.task.payload
    answers = frozenset(request.answers)
    deeds: list[Deed] = []
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation, info))
        crawl = info["crawl"]
        for action in crawl["actions"]:
            if action["kind"] != "stop":
                deeds.append(_deed(world, crawl["paper_id"], action, answers))
    if info["status"] == "env_error":
        raise BadValueError(f"task {info['task_id']}: {observation}")
    return Trace(info["task_id"], request.text, len(answers), deeds, dict(info["metrics"]))


def _deed(
    world: PaperCrawler, paper: str, action: Mapping[str, Any], answers: frozenset[str]
) -> Deed:
    new = []
    for paper_id, score in zip(action["new_ids"], action["new_scores"], strict=True):
        found = world.library.find(paper_id)
        title = found.title if found else paper_id
        new.append(Seen(paper_id, title, score, paper_id in answers))
    return Deed(
        kind=action["kind"],
        arg=action["arg"],
        paper=paper,
        cost=action["cost"],
        relevant=action["n_relevant"],
        new=tuple(new),
    )
