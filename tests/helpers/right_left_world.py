"""A world small enough to be solved exactly: three states, right or left, six turns.

Left falls back to the first state, right from the third wins. The policy sees the state alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turngym.agents.engines.base import Completion, Request
from turngym.agents.engines.sampling import uniforms
from turngym.algos.core.forest import Forest, Group, Tree, Turn, last_token_reward
from turngym.envs.core.env import Episode, Outcome, TextEnv
from turngym.envs.core.errors import EnvFault
from turngym.envs.core.tasks import Task

STATES, TURNS, WON = 3, 6, 3
RIGHT = np.array([0.6, 0.5, 0.3])
"""Probability of going right in each state."""


def go(state: int, right: bool) -> int:
    """Return the next state; ``WON`` after the last one."""
    return state + 1 if right else 0


def solve(slip: float = 0.0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return V ``[turns, states]`` and the advantage of left and right ``[turns, states, 2]``."""
    values = np.zeros((TURNS + 1, STATES + 1))
    values[:, WON] = 1.0
    actions = np.zeros((TURNS, STATES, 2))
    for turn in range(TURNS - 1, -1, -1):
        for state in range(STATES):
            left, right = values[turn + 1, go(state, False)], values[turn + 1, go(state, True)]
            actions[turn, state] = left, (1 - slip) * right + slip * left
            chances = 1 - RIGHT[state], RIGHT[state]
            values[turn, state] = chances @ actions[turn, state]
    return values[:TURNS, :STATES], actions - values[:TURNS, :STATES, None]


def exact_gradient() -> npt.NDArray[np.float64]:
    """Return the gradient of the success rate in the three states' logits."""
    _, advantages = solve()
    here, gradient = np.array([1.0, 0.0, 0.0]), np.zeros(STATES)
    for turn in range(TURNS):
        there = np.zeros(STATES)
        for state in range(STATES):
            for right in (0, 1):
                chance = here[state] * (RIGHT[state] if right else 1 - RIGHT[state])
                gradient[state] += chance * advantages[turn, state, right] * (right - RIGHT[state])
                if (after := go(state, bool(right))) != WON:
                    there[after] += chance
        here = there
    return gradient


@dataclass(frozen=True)
class Played:
    """Groups of episodes, turn after turn; all arrays are ``[turns]``.

    Attributes:
        forest: The same as a forest: one token per action, the reward on the last turn.
        group: Number of the group.
        depth: Turns taken before, in the episode.
        state: State that the action was taken in.
        right: Which action.
    """

    forest: Forest
    group: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]

    @property
    def truth(self) -> npt.NDArray[np.float64]:
        return solve()[1][self.depth, self.state, self.right]

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        """Gradient of each action's log-probability in the three logits ``[turns, 3]``."""
        scores = np.zeros((len(self.state), STATES))
        scores[np.arange(len(self.state)), self.state] = self.right - RIGHT[self.state]
        return scores


def play(groups: int, paths: int, seed: int = 0) -> Played:
    """Play groups of episodes; one number of the generator decides each action."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int]] = []
    grown: list[Group] = []
    for g in range(groups):
        trees = []
        for _ in range(paths):
            state, tree = 0, Tree()
            for depth in range(TURNS):
                right = int(rng.random() < RIGHT[state])
                after = go(state, bool(right))
                rows.append((g, depth, state, right))
                won = after == WON
                status = "solved" if won else "truncated" if depth == TURNS - 1 else "running"
                tree.add(_turn(depth, state, right, float(won), status))
                if won:
                    break
                state = after
            trees.append(tree)
        grown.append(Group(str(g), "right-left", trees))
    return Played(Forest.of(grown), *np.array(rows).T)


def _turn(depth: int, state: int, right: int, reward: float, status: Any) -> Turn:
    chance = RIGHT[state] if right else 1 - RIGHT[state]
    return Turn(
        parent=depth - 1,
        obs_ids=np.array([2 + state]),
        act_ids=np.array([right]),
        logprobs=np.log([chance]).astype(np.float32),
        entropies=np.zeros(1, np.float32),
        rewards=last_token_reward(reward, 1),
        status=status,
        action="LR"[right],
    )


@dataclass(slots=True)
class Place:
    state: int = 0


class OneTask:
    def sizes(self) -> Mapping[str, int | None]:
        return {"train": 64, "dev": 0, "test": 0}

    def task(self, split: str, index: int) -> Task[int]:
        return Task(f"{split}/{index}", split, index, index)

    def index_of(self, split: str, task_id: str) -> int | None:
        return None


class RightLeft(TextEnv[Place, int]):
    """The world as an environment; with ``slip`` a step to the right falls back now and then.

    Args:
        slip: Probability that right goes left, drawn from the episode's stream.
        breaks: Whether the third step of an episode breaks the environment.
    """

    def __init__(self, slip: float = 0.0, breaks: bool = False) -> None:
        super().__init__(source=OneTask(), max_turns=TURNS)
        self.slip, self.breaks = slip, breaks

    def begin(self, task: Task[int], random: Any) -> tuple[Place, str]:
        return Place(), "0"

    def play(self, episode: Episode[Place], action: str) -> Outcome:
        right = action == "R"
        if self.breaks and episode.turn == 3:
            raise EnvFault("broken")
        if self.slip and right:
            right = episode.random.generator.random() >= self.slip
        episode.state.state = go(episode.state.state, right)
        if episode.state.state == WON:
            return Outcome.solved("", {"outcome": 1.0})
        return Outcome.move(str(episode.state.state))


class TableEngine:
    """Goes right with the state's probability, by the request's own number; counts its work."""

    version = 0
    max_context = 400
    vocabulary = 128

    def __init__(self) -> None:
        self.asked = 0
        self.alive: set[int] = set()
        self.handles = 0

    async def generate(self, request: Request) -> Completion:
        await asyncio.sleep(0)
        self.asked += 1
        state = int(chr(request.ids[-1]))
        right = bool(uniforms(request.seed, 1)[0] < RIGHT[state])
        chance = RIGHT[state] if right else 1 - RIGHT[state]
        self.handles += 1
        self.alive.add(self.handles)
        return Completion(
            ids=np.array([ord("R" if right else "L")]),
            logprobs=np.log([chance]).astype(np.float32),
            entropies=np.zeros(1, np.float32),
            stop="length",
            cache=self.handles,
        )

    def release(self, cache: int | None) -> None:
        self.alive.remove(cache)  # pyright: ignore[reportArgumentType]
