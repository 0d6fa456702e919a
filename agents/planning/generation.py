"""Pairs without people: players of different strength on the same task, and edited trajectories.

An edit changes one action of a good trajectory and plays the rest again. The environment records
what it really answers, so that such a negative is consistent; it is kept only where the outcome is
worse.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import gymnasium as gym
import numpy as np

from ...envs.core.env import Policy
from ...envs.core.errors import BadValueError, ContextFullError
from ...envs.core.fork import fork
from ...envs.core.randomness import derive_seed
from ...envs.core.settings import check_integer
from ...envs.core.tasks import get_split_size
from ...envs.utils.statistics import SAME
from ..prompting.parsing import spoken
from ..prompting.text_model import Message, TextModel
from ..scripted import RandomPolicy, closed, text_env
from .position import Position
from .records import Pair
from .search import Planner, PlannerSetup, reset_env
from .trajectory import Attempt

Player = Callable[[gym.Env[Any, Any], int], Awaitable[Attempt]]
"""Plays the episode that an environment has just begun; the number is its seed."""
Instruct = Callable[[Attempt], Awaitable[str]]
"""An instruction for what an attempt did, instead of the environment's own first prompt."""
Score = Callable[[Attempt], float]
ActionEdit = Callable[[Position, str, np.random.Generator], str | None]
"""Another action for a position instead of the given one; None where none is found."""
HINDSIGHT = (
    "An agent acted in a text environment. Its whole trajectory is shown below. Write the task "
    "that it carried out, as one or two sentences addressed to an agent that has not begun yet. "
    "Name what has to be reached, not the single steps, and write nothing else.\n\n"
    "Rules and beginning:\n{beginning}\n\nTrajectory:\n{moves}\n\nTask:"
)
"""Asks a language model what a trajectory was good for."""


def policy_player(policy_for: Callable[[int], Policy]) -> Player:
    """Return a scripted policy as a player, made anew for every episode from its seed."""

    async def play(env: gym.Env[Any, Any], seed: int) -> Attempt:
        policy, here, stop = policy_for(seed), Position.of(env), text_env(env).stop
        while not here.over:
            action = policy(here.env, here.observation, here.info)
            here = await here.step(closed(action, stop))
        return here.attempt

    return play


def planner_player(planner: Planner, setup: Callable[[], PlannerSetup]) -> Player:
    """A planner (most often :class:`~turngym.agents.planning.planners.Sampling`) as a player."""

    async def play(env: gym.Env[Any, Any], seed: int) -> Attempt:
        return (await planner.plan(env, setup(), seed)).attempt

    return play


def env_score(attempt: Attempt) -> float:
    """Return the environment's own score: the sum of the rewards."""
    return attempt.total


def choose_other_action(position: Position, action: str, rng: np.random.Generator) -> str | None:
    """Return another legal action where they can be listed, else a plausible wrong one.

    The wrong one is that of the environment's scripted expert at its worst; of an environment
    without an expert, words of the observation.
    """
    env = text_env(position.env)
    legal = env.legal_actions()
    if legal is not None:
        others = sorted({closed(text, env.stop) for text in legal} - {action})
        return others[int(rng.integers(len(others)))] if others else None
    seed = int(rng.integers(2**31))
    policy: Any = env.find_expert(1.0, seed) or RandomPolicy(seed)
    other = closed(policy(position.env, position.observation, position.info), env.stop)
    return None if other == action else other


async def edit_attempt(
    start: Position,
    attempt: Attempt,
    rng: np.random.Generator,
    change: ActionEdit = choose_other_action,
) -> Attempt | None:
    """``attempt`` with one action changed, played again from ``start``.

    Args:
        start: Where the attempt began; it is only forked.
        attempt: What is changed, at a move drawn by ``rng``. The actions after it stay as they
            were, until the episode ends or they run out.
        rng: Draws.
        change: Finds the other action.

    Returns:
        None where there is no other action, or where nothing else comes of it.

    Raises:
        EnvFault: The environment broke.
    """
    actions = attempt.trajectory.actions
    if not actions:
        return None
    at = int(rng.integers(len(actions)))
    here = start.fork()
    for place, action in enumerate(actions):
        if here.over:
            break
        if place == at:
            other = change(here, action, rng)
            if other is None:
                return None
            action = other
        here = await here.step(action)
    found = here.attempt
    return None if found.trajectory == attempt.trajectory else found


class HindsightRelabeller:
    """Asks a text model for the instruction that fits what was done.

    Args:
        model: Writes.
        max_tokens: Maximum tokens of an instruction.
        chat: Ask in a message; else as a text that the model continues.
        seed: Of its sampling.

    Raises:
        BadValueError: ``max_tokens`` is not positive, or a text for a model that only chats.

    Attributes:
        too_long: Trajectories so far that left the model no room to write.
    """

    def __init__(
        self, model: TextModel, *, max_tokens: int = 128, chat: bool = True, seed: int = 0
    ) -> None:
        check_integer("max_tokens", max_tokens, "HindsightRelabeller", min=1)
        if not (chat or model.continues):
            raise BadValueError("HindsightRelabeller: this model only answers dialogues; set chat.")
        self._model = model
        self._max_tokens = max_tokens
        self._chat = chat
        self._seed = seed
        self.too_long = 0

    async def __call__(self, attempt: Attempt) -> str:
        """Return the instruction, without the thoughts that led to it.

        The environment's own first prompt where the model writes nothing, or has no room to.
        """
        trajectory = attempt.trajectory
        moves = "\n".join(f"Agent: {m.action}\nAnswer: {m.observation}" for m in trajectory.moves)
        text = HINDSIGHT.format(beginning=trajectory.instruction.strip(), moves=moves)
        try:
            done = await self._model.complete(
                [Message("user", text)] if self._chat else text,
                stop=() if self._chat else ("\n\n",),
                max_tokens=self._max_tokens,
                seed=derive_seed(self._seed),
            )
        except ContextFullError:
            self.too_long += 1
            return trajectory.instruction
        text = spoken(done.text)
        return f"{text}\n" if text else trajectory.instruction


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """How pairs are made.

    Attributes:
        tasks: The first so many tasks of the split.
        tries: Attempts of each player per task.
        contrasts: Maximum number of pairs per task of two attempts with different scores; those
            that differ least come first.
        edits: Edits tried per task on its best attempt, where that scored above the worst
            possible; one is kept where it scores lower.
        concurrency: Maximum number of tasks at a time.
        seed: Of episodes, players and edits.
    """

    tasks: int = 500
    tries: int = 1
    contrasts: int = 1
    edits: int = 1
    concurrency: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        minimum = {"tasks": 1, "tries": 1, "contrasts": 0, "edits": 0, "concurrency": 1, "seed": 0}
        for name, low in minimum.items():
            check_integer(name, getattr(self, name), "pairs", min=low)
        if not (self.contrasts or self.edits):
            raise BadValueError("pairs: contrasts and edits are both 0; there would be no pair.")


@dataclass(frozen=True, kw_only=True)
class PairMaker:
    """Makes pairs.

    Attributes:
        env: Of the tasks; it is only forked.
        players: Who plays. One that samples gives contrasts by itself with ``tries`` above 1.
        settings: How pairs are made.
        instruct: Hindsight instructions; None keeps the environment's own first prompt.
        change: How an action is edited.
        score: What the environment makes of an attempt.
    """

    env: gym.Env[Any, Any]
    players: Sequence[Player]
    settings: PairSettings
    instruct: Instruct | None = None
    change: ActionEdit = choose_other_action
    score: Score = env_score

    async def pairs(
        self,
        split: str,
        on_progress: Callable[[int, int], None] | None = None,
        on_task: Callable[[int, list[Pair]], None] | None = None,
    ) -> list[Pair]:
        """Return pairs from the first tasks of a split; the same settings give the same ones.

        Args:
            split: Of the tasks.
            on_progress: Called with the tasks done and their number.
            on_task: Called with each task and its pairs as it ends, for who stops before the last.

        Raises:
            UnknownNameError: There is no such split.
            BadValueError: No players, or no two attempts with different scores.
            EnvFault: The environment broke.
        """
        if not self.players:
            raise BadValueError("pairs: there are no players; expected at least one.")
        env = text_env(self.env)
        size = get_split_size(env.source, split, env.name)
        tasks = range(self.settings.tasks if size is None else min(size, self.settings.tasks))
        places = asyncio.Semaphore(self.settings.concurrency)
        done = 0

        async def one(task: int) -> list[Pair]:
            nonlocal done
            async with places:
                found = await self._of_task(split, task)
            done += 1
            if on_task is not None:
                on_task(task, found)
            if on_progress is not None:
                on_progress(done, len(tasks))
            return found

        found = await asyncio.gather(*(one(task) for task in tasks))
        pairs = [pair for some in found for pair in some]
        if not pairs:
            raise BadValueError(
                f"pairs: all attempts at the {len(tasks)} tasks of split {split!r} scored the "
                "same; add players of another strength, or let one sample several tries."
            )
        return pairs

    async def _of_task(self, split: str, task: int) -> list[Pair]:
        seed = derive_seed(self.settings.seed, task)
        begun = await reset_env(fork(self.env), seed, split, task)
        attempts: list[Attempt] = []
        for number, player in enumerate(self.players):
            for again in range(self.settings.tries):
                attempts.append(await player(fork(begun), derive_seed(seed, number, again)))
        # a first prompt that fills a player's context leaves nothing to judge
        attempts = [attempt for attempt in attempts if attempt.trajectory.moves]
        rng = np.random.default_rng([seed, 4])
        found = self._contrasts(attempts, rng) + await self._edits(begun, attempts, rng)
        name = f"{text_env(begun).name}/{text_env(begun).episode.task.id}"
        return [
            await self._pair(f"{name}/{number}", better, worse)
            for number, (better, worse) in enumerate(found)
        ]

    def _contrasts(
        self, attempts: Sequence[Attempt], rng: np.random.Generator
    ) -> list[tuple[Attempt, Attempt]]:
        """Return pairs with different scores: those first whose actions are the same for longest.

        The later two trajectories part, the more exactly a reward model has to find the error.
        Equals are drawn by ``rng``; none is taken twice.
        """
        scores = [self.score(attempt) for attempt in attempts]
        unlike = {
            (better.trajectory, worse.trajectory): (better, worse)
            for better, high in zip(attempts, scores, strict=True)
            for worse, low in zip(attempts, scores, strict=True)
            if _exceeds(high, low)
        }
        choices = list(unlike.values())
        drawn = sorted(rng.permutation(len(choices)), key=lambda i: -_shared_actions(*choices[i]))
        return [choices[i] for i in drawn[: self.settings.contrasts]]

    async def _edits(
        self, begun: gym.Env[Any, Any], attempts: Sequence[Attempt], rng: np.random.Generator
    ) -> list[tuple[Attempt, Attempt]]:
        best = max(attempts, key=self.score, default=None)
        if best is None or self.score(best) <= text_env(begun).reward_range[0]:
            return []
        start = Position.of(begun)
        found: dict[Any, tuple[Attempt, Attempt]] = {}
        for _ in range(self.settings.edits):
            other = await edit_attempt(start, best, rng, self.change)
            if other is not None and _exceeds(self.score(best), self.score(other)):
                found.setdefault(other.trajectory, (best, other))
        return list(found.values())

    async def _pair(self, name: str, better: Attempt, worse: Attempt) -> Pair:
        one, other = better.trajectory, worse.trajectory
        if self.instruct is not None:
            text = await self.instruct(better)
            one, other = replace(one, instruction=text), replace(other, instruction=text)
        return Pair(name, one, other)


def _exceeds(high: float, low: float) -> bool:
    """Return whether a score is higher; the same rewards in another order differ by rounding."""
    return high > low and not math.isclose(high, low, rel_tol=SAME, abs_tol=SAME)


def _shared_actions(one: Attempt, other: Attempt) -> int:
    """Return how many actions two attempts share at their beginning."""
    pairs = zip(one.trajectory.actions, other.trajectory.actions, strict=False)
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], pairs))
