"""PaperCrawler for two agents that act at once, the selector one step behind (PettingZoo)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import BadValueError, EpisodeError, MissingExtraError
from .base import TwoAgentCrawl
from .shared_crawl import AGENTS, CRAWLER, SELECTOR

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingExtraError("PaperCrawler for two agents", "pettingzoo", "marl", error) from error

WAIT = "WAIT"
"""What the crawler sees while it idles."""
Texts = dict[str, dict[str, str]]
Infos = dict[str, dict[str, Any]]


class PaperCrawlParallel(TwoAgentCrawl, ParallelEnv[str, dict[str, str], str]):
    """In every step the crawler acts and the selector decides about the previous step's papers.

    The selector answers for all papers of an action, a line for each: ``1: True 0.93``; what
    cannot be read is False. While it is asked nothing its text is ignored.

    A session is never closed before its papers are decided: after the action that closes it the
    crawler idles until they are, so that the frontier's order is not stale. It sees ``WAIT``, its
    info says ``idle``, its text is ignored and costs nothing. It idles after every action that
    found papers where the session shows results (``feedback``). The last papers of an episode are
    decided in such a step too, which pays the crawler for them; both agents end together there.

    Rewards:
        crawler: Minus the price of this step's action, and ``alpha`` for every paper of the
            previous step's action that counts. The sum is PaperCrawler-v0's return.
        selector: By the labels, see :class:`~turngym.envs.paper_crawler.marl.rewards.Weights`.

    Args, errors: those of :class:`~turngym.envs.paper_crawler.marl.base.TwoAgentCrawl`, without
    ``batch``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - pettingzoo's own form
        "name": "paper_crawl_parallel_v0",
        "render_modes": ["ansi"],
    }

    def __init__(self, **settings: Any) -> None:
        if "batch" in settings:
            raise BadValueError(
                "PaperCrawler for two agents: batch was given, but the parallel version always "
                "decides about all papers of an action at once; leave it out."
            )
        super().__init__(batch=True, **settings)

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Texts, Infos]:
        """Start an episode; seed and options as those of PaperCrawler-v0."""
        self._begin(seed, options)
        return self._shown(), self._infos()

    def step(
        self, actions: Mapping[str, str]
    ) -> tuple[Texts, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Both agents' moves.

        Raises:
            TypeError: An action is not text.
            BadValueError: An agent's action is missing, or there is no dictionary of actions.
            UnknownNameError: There is no such agent.
            EpisodeError: There is no running episode.
        """
        if not self.agents:
            raise EpisodeError(
                "PaperCrawler for two agents: there is no running episode; call reset first."
            )
        if not isinstance(actions, Mapping):
            raise BadValueError(
                f"PaperCrawler for two agents: the actions are {actions!r:.100}; expected a "
                "dictionary with a text of each agent."
            )
        for agent in actions:
            self._known(agent)
        for agent in AGENTS:
            if agent not in actions:
                raise BadValueError(
                    f"PaperCrawler for two agents: the action of {agent!r} is missing; expected "
                    "one of each agent, also while it idles."
                )
            self._text(agent, actions[agent])
        idle = self._idle
        self._decided = ()
        if self._crawl.asked:
            self._answer(actions[SELECTOR])
        if not idle and not self._crawl.over:
            self._crawl.act(actions[CRAWLER])
        terminated, truncated = (dict.fromkeys(AGENTS, ended) for ended in self._ended())
        paid, shown, infos = self._collect_rewards(), self._shown(), self._infos()
        if self._crawl.over:
            self.agents = []
        return shown, paid, terminated, truncated, infos

    @property
    def _idle(self) -> bool:
        """Whether the crawler has to wait for decisions."""
        turn = self._crawl.turn
        return turn is not None and (turn.closes or self.game.rules.feedback != "none")

    def _shown(self) -> Texts:
        crawler = self._crawl.shown(CRAWLER)
        if self._idle:
            crawler = WAIT
        elif self._crawl.turn is not None:
            crawler = ""
        return {CRAWLER: {"text": crawler}, SELECTOR: {"text": self._crawl.shown(SELECTOR)}}

    def _infos(self) -> Infos:
        infos = self._collect_infos()
        infos[CRAWLER]["idle"] = self._idle
        infos[SELECTOR]["idle"] = not self._crawl.asked
        return infos
