"""Agents without a model: the expert, a random one, one that writes nothing, one that replays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from ..envs.core.env import Policy, TextEnv
from ..envs.core.errors import BadValueError, EpisodeError, UnknownNameError
from ..envs.core.fork import is_text_env
from ..envs.core.noisy_expert import check_mistakes

LINE = "\n"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    """One finished episode.

    Attributes:
        task_id: The task that was played.
        status: How it ended: solved, failed, truncated or env_error.
        episode_return: Sum of the rewards.
        turns: Actions taken.
        actions: The actions in order.
        metrics: The environment's metrics at the end.
        transcript: Instructions, observations and actions as one text.
    """

    task_id: str
    status: str
    episode_return: float
    turns: int
    actions: tuple[str, ...]
    metrics: Mapping[str, float]
    transcript: str


def run_episode(
    env: gym.Env[str, str],
    policy: Policy,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> EpisodeResult:
    """Play one episode to its end.

    Args:
        env: A text environment, wrapped or not.
        policy: Answers observations.
        seed: For ``env.reset``.
        options: For ``env.reset`` (``split``, ``task``).
    """
    observation, info = env.reset(seed=seed, options=dict(options) if options else None)
    parts = [text_env(env).instructions, observation]
    actions: list[str] = []
    total, over = 0.0, False
    while not over:
        action = policy(env, observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        actions.append(action)
        parts += [action, observation]
        total += float(reward)
        over = terminated or truncated
    return EpisodeResult(
        task_id=info["task_id"],
        status=info["status"],
        episode_return=total,
        turns=len(actions),
        actions=tuple(actions),
        metrics=dict(info["metrics"]),
        transcript="".join(parts),
    )


class ExpertPolicy:
    """The environment's own scripted expert, whatever the environment.

    Args:
        mistakes: Probability per action of a plausible wrong action instead.
        seed: Seed of the mistakes.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0) -> None:
        self._mistakes = check_mistakes(mistakes)
        self._seed = seed
        self._expert: Policy | None = None
        self._env: TextEnv[Any, Any] | None = None

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:
        """Return the expert's next action."""
        inner = text_env(env)
        if self._expert is None or inner is not self._env:
            self._env = inner
            self._expert = inner.expert(self._mistakes, self._seed)
        return self._expert(env, observation, info)


class RandomPolicy:
    """A legal action at random where they can be listed, else text that looks like an action.

    Such text is a few words of the observation between the tags that the environment's stop
    strings close (``</search>`` gives ``<search> ... </search>``).

    Args:
        seed: Seed of its own generator.
    """

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:  # noqa: ARG002
        """Return a random action."""
        inner = text_env(env)
        legal = inner.legal_actions()
        if legal:
            return legal[int(self._rng.integers(len(legal)))]
        words = [w for w in observation.split() if "<" not in w] or ["nothing"]
        picked = self._rng.choice(words, size=int(self._rng.integers(1, 5)))
        text = " ".join(str(w) for w in picked)
        if not inner.stop:
            return text
        stop = inner.stop[int(self._rng.integers(len(inner.stop)))]
        if stop.startswith("</") and stop.endswith(">"):
            return f"<{stop[2:]} {text} {stop}"
        return f"{text} {stop}"


class NullPolicy:
    """Writes nothing."""

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:  # noqa: ARG002
        """Return the empty action."""
        return ""


class ReplayPolicy:
    """Replays recorded actions.

    Args:
        actions: The actions of one episode, in order.
    """

    def __init__(self, actions: Sequence[str]) -> None:
        if isinstance(actions, str):
            raise BadValueError("replay: actions is one text; expected a sequence of actions.")
        self._actions = tuple(actions)
        self._next = 0

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:  # noqa: ARG002
        """Return the next recorded action.

        Raises:
            EpisodeError: All recorded actions were played and the episode goes on.
        """
        if self._next >= len(self._actions):
            raise EpisodeError(
                f"replay: the episode goes on after all {len(self._actions)} recorded actions "
                f"(turn {info.get('turn')} of task {info.get('task_id')!r}); the recording belongs "
                "to another task, seed or version of the environment."
            )
        self._next += 1
        return self._actions[self._next - 1]


_SCRIPTED: Mapping[str, Callable[[int], Policy]] = {
    "expert": lambda seed: ExpertPolicy(seed=seed),
    "random": RandomPolicy,
    "null": lambda seed: NullPolicy(),  # noqa: ARG005 - there is nothing to seed
}


def scripted_names(env: TextEnv[Any, Any] | None = None) -> tuple[str, ...]:
    """Return names that :func:`scripted` knows; with an environment, those of its baselines too."""
    return (*_SCRIPTED, *(env.baselines() if env is not None else ()))


def scripted(name: str, seed: int = 0, env: TextEnv[Any, Any] | None = None) -> Policy:
    """Return a scripted policy by name: ``expert``, ``random``, ``null``, or a baseline of ``env``.

    Raises:
        UnknownNameError: No such agent.
    """
    if name in _SCRIPTED:
        return _SCRIPTED[name](seed)
    own = env.baselines() if env is not None else {}
    if name not in own:
        raise UnknownNameError("scripted agent", name, scripted_names(env))
    return own[name](seed)


def closed(action: str, stop: Sequence[str]) -> str:
    """``action`` as a model has to write it where actions are lines: with the line's end.

    A trained model would never learn to stop otherwise, and a reward model could tell scripted
    ones from a model's. Actions of other environments, and those that a stop string ends already,
    stay as they are.
    """
    if LINE not in stop or any(action.endswith(end) for end in stop):
        return action
    return action + LINE


def text_env(env: gym.Env[Any, Any]) -> TextEnv[Any, Any]:
    """Return the :class:`~turngym.envs.core.env.TextEnv` inside all wrappers.

    Raises:
        BadValueError: There is none.
    """
    inner = env.unwrapped
    if not is_text_env(inner):
        raise BadValueError(
            f"{type(inner).__name__} is no text environment of turngym (a TextEnv)."
        )
    return inner
