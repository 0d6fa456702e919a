"""Retail for two agents, assistant and customer, as an AEC environment of PettingZoo."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from ..core.env import check_action
from ..core.errors import BadValueError, EpisodeError, MissingExtraError, UnknownNameError
from ..core.spaces import Utf8Text
from ..core.tasks import draw_task
from .customer.interface import END_OF_TOKEN, CustomerState, Event, UserTurn
from .customer.parser import strip_thoughts
from .customer.scenario import Scenario
from .env import Retail
from .shop.toolset import CLOSE, OPEN

try:
    AECEnv: Any = import_module("pettingzoo").AECEnv
except ImportError as error:
    raise MissingExtraError("Retail for two agents", "pettingzoo", "marl", error) from error

ASSISTANT, CUSTOMER = "assistant", "customer"
PROBE = "options"
"""A reset option that means nothing; PettingZoo's own tests pass it to every environment."""


class RetailUtterance(str):
    """Text with the dtype that PettingZoo compares with the space's."""

    __slots__ = ()
    dtype = np.dtype(str)


class ExternalCustomer:
    """A customer whose words come from outside."""

    blocking = False
    tracks = False
    plays_prose = True

    def __init__(self) -> None:
        self.words = ""

    def begin(self, scenario: Scenario, key: int, brief: str) -> tuple[CustomerState, UserTurn]:  # noqa: ARG002
        """Return the words that were given."""
        return CustomerState(key, 1), UserTurn(self.words)

    def reply(
        self,
        scenario: Scenario,  # noqa: ARG002 - the words come from outside
        state: CustomerState,
        message: str,  # noqa: ARG002
        events: Sequence[Event],  # noqa: ARG002
    ) -> UserTurn:
        """Return the words that were given."""
        state.turn += 1
        for token, end in END_OF_TOKEN.items():
            if token in self.words:
                state.end = end
                return UserTurn(token, end)
        return UserTurn(self.words)


class RetailAEC(AECEnv):
    """A customer with a brief that only they see, and an assistant with the shop's tools.

    The customer speaks first. The assistant's tool calls are answered at once, its messages go to
    the customer; the customer ends the talk with a token, and says nothing ("...") with a text that
    is empty, too long or no valid UTF-8. Both get 1 for a success: the right
    records changed in the right way, and all that was asked for was told.

    Args:
        render_mode: None or ``"ansi"``.
        **settings: Settings of :class:`Retail`, ``customer`` aside.

    Raises:
        BadValueError: A ``customer``, or a value out of range.
        UnknownNameError: An unknown setting or value.
    """

    metadata = {"name": "retail_v0", "render_modes": ["ansi"], "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, *, render_mode: str | None = None, **settings: Any) -> None:
        super().__init__()
        if "customer" in settings:
            raise BadValueError("RetailAEC: the second agent is the customer; leave customer out.")
        self.external = ExternalCustomer()
        self.inner = Retail(customer=self.external, render_mode=render_mode, **settings)
        self.render_mode = render_mode
        self.possible_agents = [ASSISTANT, CUSTOMER]
        space = self.inner.observation_space.max_chars
        self._spaces = {agent: Utf8Text(space) for agent in self.possible_agents}
        heard = space - len("Customer: \n")  # what the assistant sees stands around the words
        self._actions = {ASSISTANT: Utf8Text(space), CUSTOMER: Utf8Text(heard)}
        self.agents: list[str] = []
        self.agent_selection = CUSTOMER
        self._seen: dict[str, str] = {}
        self._rng = np.random.default_rng()

    def observation_space(self, agent: str) -> Utf8Text:
        """Return the space of texts."""
        return self._spaces[agent]

    def action_space(self, agent: str) -> Utf8Text:
        """Return the space of texts."""
        return self._actions[agent]

    def observe(self, agent: str) -> RetailUtterance:
        """Return an agent's last observation; the customer's first one is their brief.

        Raises:
            UnknownNameError: There is no such agent.
            EpisodeError: Before the first reset.
        """
        if agent not in self.possible_agents:
            raise UnknownNameError("agent", agent, self.possible_agents, "RetailAEC")
        if not self._seen:
            raise EpisodeError("RetailAEC: no episode yet; call reset first.")
        return RetailUtterance(self._seen[agent])

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Draw a task; the customer begins.

        Args:
            seed: Seed of the task and the episode.
            options: ``split`` and ``task``, as for :class:`Retail`.

        Raises:
            UnknownNameError: An option, split or task id that does not exist.
            BadValueError: A negative seed, or a task index out of range.
        """
        if seed is not None:
            self._rng = np.random.default_rng(self.inner.seed_stream(seed))
        given = {name: value for name, value in (options or {}).items() if name != PROBE}
        source, name = self.inner.source, self.inner.name
        if "task" not in given:
            task = draw_task(source, given.get("split"), self._rng, name)
            given = {**given, "split": task.split, "task": task.id}
        first = int(self._rng.integers(2**31))
        self.external.words = ""
        self.inner.reset(seed=first, options=given)
        self._options, self._seed = given, first
        self.agents = self.possible_agents.copy()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        brief = self.inner.episode.task.payload.brief
        self._seen = {ASSISTANT: "", CUSTOMER: f"{brief}\n"}
        self._begun, self._waiting = False, ""
        self.agent_selection = CUSTOMER

    def step(self, action: Any) -> None:
        """Play the present agent's text; None for an agent that has ended.

        Raises:
            TypeError: The action is not text.
            EpisodeError: Before the first reset, or when both agents are gone.
        """
        if not self.agents:
            raise EpisodeError("RetailAEC: step after the end; call reset first.")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        check_action(action, f"RetailAEC, {agent}")
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if agent == CUSTOMER:
            self._act_as_customer(action)
        else:
            self._act_as_assistant(action)
        self._accumulate_rewards()

    def fork(self) -> RetailAEC:
        """Return an independent copy at this very state; the shop's data stays shared."""
        twin: RetailAEC = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(twin, name, value.copy() if type(value) in (dict, list) else value)
        twin._spaces, twin._actions = copy.deepcopy((self._spaces, self._actions))
        twin._rng = copy.deepcopy(self._rng)
        twin.external = copy.copy(self.external)
        twin.inner = cast("Retail", self.inner.fork())
        twin.inner.customer = twin.external
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> RetailAEC:
        return self.fork()

    def _act_as_customer(self, words: str) -> None:
        readable = self._actions[CUSTOMER].contains(words)
        self.external.words = (" ".join(words.split()) if readable else "") or "..."
        if self._begun:
            self._step_env(self._waiting)
        else:
            self._begun = True
            observation, _ = self.inner.reset(seed=self._seed, options=self._options)
            self._seen[ASSISTANT] = observation
        self.agent_selection = ASSISTANT

    def _act_as_assistant(self, action: str) -> None:
        readable = self.inner.action_space.contains(action)
        if not readable or OPEN in action or CLOSE in action or not strip_thoughts(action):
            self._step_env(action)
            return
        self._waiting = action
        self._seen[CUSTOMER] = f"{strip_thoughts(action)}\n"
        self.agent_selection = CUSTOMER

    def _step_env(self, action: str) -> None:
        observation, reward, ended, cut, info = self.inner.step(action)
        self._seen[ASSISTANT] = observation
        for agent in self.agents:
            self.rewards[agent] = reward
            self.terminations[agent] = ended
            self.truncations[agent] = cut
            self.infos[agent] = dict(info)

    def render(self) -> str | None:
        """Return the transcript."""
        return self.inner.render()

    def close(self) -> None:
        """Do nothing, as nothing is open."""
