"""Demonstrations: episodes of the environment's scripted expert instead of the policy's own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...agents.engines.base import Completion
from ...agents.rendering.factory import Renderer
from ...agents.scripted import scripted, text_env
from ...agents.warm_start.demonstrations import EXPERT
from ...agents.warm_start.thoughts import with_thought
from ...envs.core.env import Policy, TextEnv
from ...envs.core.errors import BadValueError, EnvFault
from ..core.checks import check_numbers
from ..core.forest import Group, Tree
from ..core.protocols import Start, Unforked
from .episode_runner import EpisodeRunner
from .seeds import seed_at


@dataclass(frozen=True, kw_only=True)
class Demonstrations(Unforked):
    """``n`` episodes per task that the expert plays, tokenised as the model would have written.

    An action is followed by nothing where it ends with one of the stop strings, else by the
    end-of-text token. Log-probabilities and entropies are recorded as 0: nobody sampled.

    Attributes:
        n: Episodes per task; the expert's mistakes differ.
        mistakes: Probability per action of a plausible wrong one instead.
    """

    n: int = 1
    mistakes: float = 0.0

    samples: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.n < 1 or not 0 <= self.mistakes <= 1:
            raise BadValueError(
                f"Demonstrations: n {self.n}, mistakes {self.mistakes}; expected at least 1, and "
                "0 to 1."
            )

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment without an expert.

        Raises:
            BadValueError: It has none.
        """
        if env.find_expert() is None:
            raise BadValueError(
                f"{env.name} has no scripted expert, so there is nothing to imitate. Choose a "
                "recipe that learns from its own episodes."
            )

    async def __call__(self, runner: EpisodeRunner, start: Start) -> Group:
        """Play the episodes one after the other; each is a tree."""
        try:
            first = await runner.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.n)
        trees = []
        for i in range(self.n):
            await asyncio.sleep(0)  # nothing else here may wait: else Ctrl-C would find no gap
            handle, tree = first.fork(i), Tree()
            env = text_env(handle.env)
            policy = self.make_player(env, seed_at(start.seed, i) % 2**32)
            info: Any = env.episode.info({}, {})
            observation = env.episode.observation
            while not handle.done:
                action = policy(handle.env, observation, info)
                action = self.speak(action, env, runner.renderer)
                result = await runner.act(handle, self._written(runner, action))
                observation, info = result.observation, result.info
                runner.append(handle, tree, result)
            trees.append(tree)
        return Group(start.uid, first.task_id, trees)

    def make_player(self, env: TextEnv[Any, Any], seed: int) -> Policy:
        """Return who plays an episode: the expert."""
        return env.expert(mistakes=self.mistakes, seed=seed)

    def speak(self, action: str, env: TextEnv[Any, Any], renderer: Renderer) -> str:  # noqa: ARG002
        """Return how an action of the expert is put into words: as it is."""
        return action

    @staticmethod
    def _written(runner: EpisodeRunner, action: str) -> Completion:
        ids = runner.renderer.write_ended(action, runner.sampling.stop)
        none = np.zeros(len(ids), np.float32)
        return Completion(
            ids=np.asarray(ids, dtype=np.int64),
            logprobs=none,
            entropies=none,
            stop="eos" if ids[-1] == runner.renderer.eos_id else "stop",
        )


@dataclass(frozen=True, kw_only=True)
class SpokenDemonstrations(Demonstrations):
    """Demonstrations as a chat model would give them: a short thought, then the tool call.

    See :func:`~turngym.agents.warm_start.thoughts.with_thought`.

    Attributes:
        player: ``"expert"``, or a baseline of the environment whose actions can be told from what
            it is shown, where the expert's cannot; it makes no mistakes.
    """

    player: str = EXPERT

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment without this player.

        Raises:
            BadValueError: There is no expert, nor a baseline of the player's name.
            UnknownNameError: There is an expert, but no such baseline.
        """
        if self.player not in env.baselines():
            super().check(env)
            scripted(self.player, 0, env)

    def make_player(self, env: TextEnv[Any, Any], seed: int) -> Policy:
        """Return who plays an episode."""
        if self.player == EXPERT:
            return super().make_player(env, seed)
        return scripted(self.player, seed, env)

    def speak(self, action: str, env: TextEnv[Any, Any], renderer: Renderer) -> str:
        """Return the action, a call behind a thought where the model's format has room for one."""
        return with_thought(action, env.tools) if renderer.thinks_before_calls else action
