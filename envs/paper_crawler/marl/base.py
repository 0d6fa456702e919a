"""What both PettingZoo versions share: settings, spaces, what is told, copies."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from ...core.errors import BadValueError, UnknownNameError
from ...core.spaces import Utf8Text
from ..env import PaperCrawler
from ..papers import Judged
from .decisions import BATCH_RULES, Decision
from .rewards import Judge, RewardSelector, make_guard, make_weights
from .shared_crawl import AGENTS, CRAWLER, SELECTOR, SharedCrawl

MAX_CHARS = 10_000_000
"""Most characters of an observation: a batch may ask about every paper of a long section."""
PROBE = "options"
"""PettingZoo's ``api_test`` resets with an option of this name, so it is let through."""


class TwoAgentCrawl:
    """The crawl that both agents sit at.

    Args:
        batch: Whether one text of the selector decides about all papers of an action.
        reward_selector: Whose judgement pays the crawler beside the labels: ``"frozen"`` (the
            environment's own selector, which nobody trains), ``"ema"`` (``slow_selector``) or
            ``"live"`` (the selector agent's own decisions, which invites collusion).
        slow_selector: A copy of the selector agent that its trainer lets follow slowly: a callable
            from a list of (request, paper) to probabilities, or a Selector.
        selector_rewards: Weights of the selector's reward by name, see
            :class:`~turngym.envs.paper_crawler.marl.rewards.Weights`.
        settings: Those of :class:`~turngym.envs.paper_crawler.env.PaperCrawler`.

    Raises:
        UnknownNameError: An unknown setting or value; names the nearest.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: A file that does not hold what it should.
    """

    def __init__(
        self,
        *,
        batch: bool = False,
        reward_selector: RewardSelector = "frozen",
        slow_selector: Judge | None = None,
        selector_rewards: Mapping[str, float] | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(batch, bool):
            raise BadValueError(
                f"PaperCrawler for two agents: batch is {batch!r}; expected True or False."
            )
        known = (*_setting_names(TwoAgentCrawl), *_setting_names(PaperCrawler))
        for name in settings:
            if name not in known:
                raise UnknownNameError("setting", name, known, "PaperCrawler for two agents")
        game = PaperCrawler(**settings)
        guard = make_guard(reward_selector, game.parts.selector, slow_selector, game.rules.label)
        self._crawl = SharedCrawl(game, guard, make_weights(selector_rewards), batch=batch)
        self.batch = batch
        self.reward_selector = reward_selector
        self.render_mode: str | None = game.render_mode
        self.instructions: Mapping[str, str] = {
            CRAWLER: game.instructions,
            SELECTOR: BATCH_RULES if batch and game.instructions else "",
        }
        self.possible_agents: list[str] = list(AGENTS)
        self.agents: list[str] = []
        self.observation_spaces: dict[str, Any] = {
            agent: gym.spaces.Dict({"text": Utf8Text(MAX_CHARS)}) for agent in AGENTS
        }
        self.action_spaces: dict[str, Any] = {
            agent: Utf8Text(game.action_space.max_chars) for agent in AGENTS
        }
        self._decided: tuple[Decision, ...] = ()
        self._earned = 0.0

    @property
    def game(self) -> PaperCrawler:
        """The crawl as it was before the crawler's present action; read it, do not step it."""
        return self._crawl.game

    @property
    def asked(self) -> list[Judged]:
        """Requests and papers that the selector's next text decides about, for scripted ones."""
        return self._crawl.asked

    def observation_space(self, agent: str) -> gym.spaces.Space[Any]:
        """Text under the key ``text``."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Space[Any]:
        """Text."""
        return self.action_spaces[agent]

    def render(self) -> str | None:
        """What was shown and said so far (render mode ``"ansi"``), else None."""
        if self.render_mode is None:
            return None
        said = (f"[{agent}]\n{shown}{text}\n" for agent, shown, text in self._crawl.log)
        return "".join(said)

    def close(self) -> None:
        """Close the game."""
        self.game.close()

    def fork(self) -> Any:
        """An independent copy at this very state; read-only data stays shared."""
        twin = object.__new__(type(self))
        state = vars(twin)
        state.update(vars(self))
        state["_crawl"] = self._crawl.fork()
        for name in ("observation_spaces", "action_spaces"):
            state[name] = copy.deepcopy(state[name])
        for name, value in state.items():
            if name != "instructions" and type(value) in (dict, list):
                state[name] = value.copy()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.fork()

    # ------------------------------------------------------------------ inside

    def _begin(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        wanted = {name: value for name, value in (options or {}).items() if name != PROBE}
        self._crawl.reset(seed, wanted)
        self.agents = list(AGENTS)
        self._decided, self._earned = (), 0.0

    def _answer(self, text: str) -> None:
        self._decided = self._crawl.answer(self._text(SELECTOR, text))

    def _collect_rewards(self) -> dict[str, float]:
        paid = self._crawl.collect_rewards()
        self._earned += paid[SELECTOR]
        return paid

    def _text(self, agent: str, action: object) -> str:
        if not isinstance(action, str):
            raise TypeError(
                f"PaperCrawler for two agents: the action of {agent!r} is a "
                f"{type(action).__name__}; expected text (str)."
            )
        return action

    def _known(self, agent: str) -> str:
        if agent not in AGENTS:
            raise UnknownNameError("agent", agent, AGENTS, "PaperCrawler for two agents")
        return agent

    def _ended(self) -> tuple[bool, bool]:
        """Whether the episode has terminated, and whether it was truncated."""
        result = self._crawl.result
        return (False, False) if result is None else (result[2], result[3])

    def _collect_infos(self) -> dict[str, dict[str, Any]]:
        """Both agents' infos."""
        result = self._crawl.result
        info: dict[str, Any] = {} if result is None else {**result[4]}
        tally = self._crawl.tally
        metrics: dict[str, float] = {}
        if self._crawl.over and info["status"] != "env_error":
            metrics = {
                "return": self._earned,
                "decisions": float(tally.decisions),
                "invalid_decisions": float(tally.unreadable),
                "accuracy": tally.right / max(tally.decisions, 1),
            }
        selector = {
            **{name: info[name] for name in ("task_id", "split", "dataset", "status")},
            "paper_ids": [paper.id for _, paper in self._crawl.asked],
            "pending": self._crawl.pending,
            "valid_action": not any(decision.error for decision in self._decided),
            "errors": [decision.error for decision in self._decided if decision.error],
            "invalid_decisions": tally.unreadable,
            "metrics": metrics,
        }
        return {CRAWLER: info, SELECTOR: selector}


def _setting_names(cls: type) -> list[str]:
    """The settings that a constructor names."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
