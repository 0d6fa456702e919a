"""Make environments, play them by fixed rules and record what they return, for the laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ..core.env import Policy, TextEnv
from ..core.errors import BadValueError, EpisodeError, TurngymError
from ..core.tasks import Task

GARBAGE = (
    "",
    "   \n",
    "???",
    "<",
    "</think>",
    "{}",
    "null",
    "I do not know.",
    "\u6f22\u5b57 \U0001f600 \x00",
)
FIRST_SEED = 11
"""Of the episodes that the laws play."""
_LEAST_MOVED = 3
"""Actions that change a state from which the episode goes on, for laws about the state."""
_MOST_EPISODES = 20
_MOST_LISTED = 4
"""Legal actions that are tried at a turn beside the one that is taken."""


class ConformanceError(TurngymError, AssertionError):
    """An environment breaks a law of the contract.

    Args:
        env: The id or the class of the environment.
        law: Name of the law.
        detail: What was seen and what was expected.
    """

    def __init__(self, env: str, law: str, detail: str) -> None:
        super().__init__(f"{env} breaks the law {law!r}: {detail}")
        self.env = env
        self.law = law
        self.detail = detail


class LawViolation(Exception):
    """A law's finding; the driver adds the names."""


class TakenStep(NamedTuple):
    """One recorded step, with the digest after it if requested."""

    action: str
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: dict[str, Any]
    digest: str


@dataclass
class Play:
    """One recorded episode."""

    observation: Any
    info: dict[str, Any]
    digest: str
    steps: list[TakenStep]
    limit: int = 0  # turns that this episode may take

    @property
    def total(self) -> float:
        """Sum of the rewards."""
        return sum(step.reward for step in self.steps)

    @property
    def earned(self) -> float:
        """Sum of the rewards without noise."""
        return self.total - sum(step.info["reward_terms"].get("noise", 0.0) for step in self.steps)

    @property
    def status(self) -> Any:
        """Status after the last step."""
        return (self.steps[-1] if self.steps else self).info.get("status")


class Lab:
    """Makes copies of one environment and plays them.

    Args:
        make: Makes the environment, wrapped or bare.
        sample: How many tasks and episodes the thorough laws look at.
    """

    def __init__(self, make: Callable[[], gym.Env[Any, Any]], sample: int) -> None:
        self.make_alone = make
        self.sample = sample
        self.env = self.make()
        self.text_env = self.inner(self.env)

    def make(self) -> gym.Env[Any, Any]:
        """Make a fresh copy."""
        env = self.make_alone()
        self.inner(env)
        return env

    @staticmethod
    def inner(env: gym.Env[Any, Any]) -> TextEnv[Any, Any]:
        """Return the environment inside its wrappers.

        Raises:
            BadValueError: It is not a :class:`TextEnv`.
        """
        if not isinstance(env.unwrapped, TextEnv):
            raise BadValueError(f"check_text_env: {env} is not a TextEnv.")
        return env.unwrapped

    def digests(self, env: gym.Env[Any, Any]) -> str:
        """Return the digest of the episode and that of its state, as one text."""
        inner = self.inner(env)
        return f"{inner.digest()}:{inner.state_digest()}"

    def expert(self, env: gym.Env[Any, Any], mistakes: float, seed: int) -> Policy | None:
        """Return the environment's scripted expert, None when it has none."""
        return self.inner(env).find_expert(mistakes, seed)

    def play(
        self,
        env: gym.Env[Any, Any],
        seed: int | None,
        act: Callable[[gym.Env[Any, Any], str, dict[str, Any]], str],
        options: Mapping[str, Any] | None = None,
        digests: bool = False,
    ) -> Play:
        """Play one episode to its end, or to twice the turn limit when it does not end.

        Digests (:meth:`digests`) are taken after every step where ``digests`` is set, and are empty
        otherwise.
        """
        observation, info = env.reset(seed=seed, options=None if options is None else dict(options))
        text_env = self.inner(env)
        play = Play(observation, dict(info), self.digests(env) if digests else "", [])
        play.limit = text_env.max_turns
        for _ in range(2 * text_env.max_turns):
            action = act(env, observation, info)
            try:
                observation, reward, terminated, truncated, info = env.step(action)
            except Exception as error:  # of the environment's own code
                where = f"task {info['task_id']}, episode seed {text_env.episode.random.seed}"
                turn = f"turn {len(play.steps) + 1}"
                error.add_note(f"{text_env.name}, {where}, {turn}: the action was {action!r:.1000}")
                raise
            digest = self.digests(env) if digests else ""
            taken = (observation, reward, terminated, truncated, dict(info), digest)
            play.steps.append(TakenStep(action, *taken))
            if info.get("status") == "env_error":
                raise LawViolation(f"the environment broke at action {action!r}: {observation}")
            if terminated or truncated:
                break
        return play

    def mixed(self, seed: int) -> Callable[[gym.Env[Any, Any], str, dict[str, Any]], str]:
        """Return a fixed blend of expert actions (with mistakes), legal actions and garbage."""
        rng = np.random.default_rng(seed)
        experts: dict[int, Policy | None] = {}

        def act(env: gym.Env[Any, Any], observation: str, info: dict[str, Any]) -> str:
            if id(env) not in experts:
                experts[id(env)] = self.expert(env, mistakes=0.5, seed=seed)
            expert, legal = experts[id(env)], self.legal_actions(env)
            kind = int(rng.integers(4))
            pick = int(rng.integers(1 << 30))
            if kind <= 1 and expert is not None:
                return expert(env, observation, info)
            if kind <= 2 and legal:
                return legal[pick % len(legal)]
            return GARBAGE[pick % len(GARBAGE)]

        return act

    def same_moves(self, moves: Sequence[str]) -> Callable[..., str]:
        """Acts as recorded, and says nothing when the record is used up."""
        left = iter(moves)
        return lambda *_: next(left, "")

    def legal_actions(self, env: gym.Env[Any, Any]) -> list[str] | None:
        """Return the environment's legal actions, None where it lists none."""
        legal = self.inner(env).legal_actions()
        return None if legal is None else check_texts("legal_actions()", legal)

    def candidates(self, env: gym.Env[Any, Any], move: str, key: tuple[int, int]) -> list[str]:
        """Return ``move`` and a few of the legal actions, others for every seed and turn (``key``).

        An episode takes one action per turn, and many end with the first; what only some actions do
        is seen by trying them on forks.
        """
        legal = sorted(set(self.legal_actions(env) or ()))
        picks = np.random.default_rng(key).permutation(len(legal))[:_MOST_LISTED]
        return list(dict.fromkeys([move, *(legal[at] for at in picks)]))

    def mixed_moves(self, seed: int) -> list[str]:
        """Return the actions of one mixed episode."""
        return [step.action for step in self.play(self.make(), seed, self.mixed(seed)).steps]

    def moving_episodes(self, least: int) -> Iterator[tuple[int, list[str]]]:
        """Yield seeds and actions of ``least`` mixed episodes, and of more in which little moves.

        Laws about the state say nothing of episodes that end with their first action.
        """
        moved = 0
        for seed in range(FIRST_SEED, FIRST_SEED + _MOST_EPISODES):
            if seed >= FIRST_SEED + least and moved >= _LEAST_MOVED:
                return
            play = self.play(self.make(), seed, self.mixed(seed), digests=True)
            yield seed, [step.action for step in play.steps]
            digests = [play.digest, *(step.digest for step in play.steps[:-1])]
            states = [digest.partition(":")[2] for digest in digests]
            moved += sum(a != b for a, b in pairwise(states))

    def tasks(self, text_env: TextEnv[Any, Any]) -> Iterator[Task[Any]]:
        """Yield a sample of every split: the first tasks, then spread over the rest."""
        sizes = text_env.source.sizes()
        each = max(2, self.sample // max(1, len(sizes)))
        for split, size in sizes.items():
            top = 10_000 if size is None else size
            half = (each + 1) // 2
            spread = np.linspace(half, top - 1, num=each - half, dtype=int) if top > each else []
            indices = range(top) if top <= each else [*range(half), *(int(i) for i in spread)]
            for index in dict.fromkeys(indices):
                yield text_env.source.task(split, index)


def check_texts(what: str, value: Any) -> list[str]:
    """Return ``value`` as a list if it holds texts; one text alone is not taken for its letters."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise LawViolation(f"{what} returned {value!r:.200}; expected a list of texts")
    texts = list(value)
    for text in texts:
        if not isinstance(text, str):
            raise LawViolation(
                f"{what} returned {text!r:.200}, a {type(text).__name__}, among others; expected "
                "a list of texts"
            )
    return texts


def describe_difference(one: Play, two: Play) -> str:
    """Return the first difference of two plays in words, empty when they are equal."""
    for what in ("observation", "info", "digest"):
        if getattr(one, what) != getattr(two, what):
            return f"reset: {what} {getattr(one, what)!r} against {getattr(two, what)!r}"
    for turn, (a, b) in enumerate(zip(one.steps, two.steps, strict=False), start=1):
        for what in TakenStep._fields:
            if getattr(a, what) != getattr(b, what):
                return f"turn {turn}: {what} {getattr(a, what)!r} against {getattr(b, what)!r}"
    if len(one.steps) != len(two.steps):
        return f"{len(one.steps)} turns against {len(two.steps)}"
    return ""


def refuses_to_step(env: gym.Env[Any, Any]) -> bool:
    """Return whether a step raises :class:`EpisodeError`."""
    try:
        env.step("")
    except EpisodeError:
        return True
    return False
