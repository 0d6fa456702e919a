"""The texts of an entry's episodes: an entry holds actions, replaying them gives the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...envs.api import TextEnv
from ..schema.entry import Episode
from ..schema.suite import Cell


@dataclass(frozen=True)
class ShownTurn:
    """One action of a transcript.

    Attributes:
        number: From 1.
        observation: What the agent saw.
        action: What it wrote.
        reward: What it got.
        terms: Named parts of the reward.
        valid: Whether the world could read the action.
        session: The context that ``observation`` belongs to.
    """

    number: int
    observation: str
    action: str
    reward: float
    terms: dict[str, float]
    valid: bool
    session: int


@dataclass(frozen=True)
class ShownEpisode:
    """One episode as its page shows it.

    Attributes:
        episode: What the entry holds.
        turns: Its actions with what they answered.
        last: The last observation.
        status: How it ended; the error where one stopped it.
        total: Sum of the rewards.
        metrics: The world's measures.
    """

    episode: Episode
    turns: tuple[ShownTurn, ...]
    last: str
    status: str
    total: float
    metrics: dict[str, float]


def shown(world: TextEnv[Any, Any], cell: Cell, episode: Episode) -> ShownEpisode:
    """Replay an episode of a verified entry and keep its texts.

    Args:
        world: An environment of the cell; its state is replaced.
        cell: The episode's cell.
        episode: What the entry holds.
    """
    options = {"split": cell.split, "task": episode.task}
    observation, info = world.reset(seed=episode.seed, options=options)
    turns: list[ShownTurn] = []
    for number, action in enumerate(episode.actions, start=1):
        session = info["session"]
        answer, reward, _, _, info = world.step(action)
        terms = {name: value for name, value in info["reward_terms"].items() if value}
        turns.append(
            ShownTurn(number, observation, action, reward, terms, info["valid_action"], session)
        )
        observation = answer
    return ShownEpisode(
        episode=episode,
        turns=tuple(turns),
        last=observation,
        status=episode.error or info["status"],
        total=world.episode.total_reward,
        metrics=dict(info["metrics"]),
    )


def by_task(episodes: Iterator[Episode], env: str) -> dict[int, list[Episode]]:
    """The episodes of one world by task; runs and trials in order."""
    found: dict[int, list[Episode]] = {}
    for episode in episodes:
        if episode.env == env:
            found.setdefault(episode.task, []).append(episode)
    for listed in found.values():
        listed.sort(key=lambda episode: (episode.run, episode.trial))
    return dict(sorted(found.items()))
