"""PaperCrawler for two agents that take turns (PettingZoo's AEC)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import EpisodeError, MissingExtraError
from .base import TwoAgentCrawl
from .shared_crawl import AGENTS, CRAWLER, SELECTOR

try:
    from pettingzoo import AECEnv
except ImportError as error:
    raise MissingExtraError("PaperCrawler for two agents", "pettingzoo", "marl", error) from error


class PaperCrawlAEC(TwoAgentCrawl, AECEnv[str, dict[str, str], str]):
    """The crawler acts, the selector decides about every paper it found, the crawler acts again.

    With ``batch=False`` the selector decides about one paper per turn: ``True`` or ``False``
    first, then, if it likes, its probability of True. With ``batch=True`` one text decides about
    all papers of an action, a line for each: ``1: True 0.93``. What cannot be read is False.

    A session is closed, and the next one chosen, when all its papers are decided: the frontier's
    order is that of the selector's scores. Both agents end together.

    Rewards:
        crawler: In its own step minus the price of the action; ``alpha`` in the selector's step
            for every paper that counts. The sum is PaperCrawler-v0's reward.
        selector: By the labels, see :class:`~turngym.envs.paper_crawler.marl.rewards.Weights`.

    Args, errors: those of :class:`~turngym.envs.paper_crawler.marl.base.TwoAgentCrawl`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - pettingzoo's own form
        "name": "paper_crawl_v0",
        "render_modes": ["ansi"],
        "is_parallelizable": False,
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        self._cumulative_rewards: dict[str, float] = {}
        self.agent_selection = CRAWLER

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode; seed and options as those of PaperCrawler-v0."""
        self._begin(seed, options)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.agent_selection = CRAWLER
        self._skip_agent_selection = None
        self._publish()

    def observe(self, agent: str) -> dict[str, str]:
        """What an agent sees now; the selector sees nothing while it is not asked.

        Raises:
            UnknownNameError: There is no such agent.
        """
        return {"text": self._crawl.shown(self._known(agent))}

    def step(self, action: str | None) -> None:
        """The move of :attr:`agent_selection`; None for an agent that has ended.

        Raises:
            TypeError: The action is not text.
            EpisodeError: Before the first reset, or when both agents are gone.
        """
        if not self.agents:
            raise EpisodeError(
                "PaperCrawler for two agents: there is no running episode; call reset first."
            )
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)  # pyright: ignore[reportArgumentType]
            return
        text = self._text(agent, action)
        self._cumulative_rewards[agent] = 0.0
        if agent == CRAWLER:
            self._crawl.act(text)
        else:
            self._answer(text)
        self._publish()
        self._accumulate_rewards()
        self.agent_selection = SELECTOR if self._crawl.asked else CRAWLER

    def _publish(self) -> None:
        terminated, truncated = self._ended()
        self.rewards = self._collect_rewards()
        self.terminations = dict.fromkeys(AGENTS, terminated)
        self.truncations = dict.fromkeys(AGENTS, truncated)
        self.infos = self._collect_infos()
