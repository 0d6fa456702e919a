"""A two-armed deterministic toy, a policy that draws letters, and a reward read off the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from turngym.agents.planning.actors import Proposal, ProposalSettings
from turngym.agents.planning.position import Position
from turngym.agents.planning.search import PlannerSetup
from turngym.agents.planning.trajectory import Trajectory
from turngym.agents.scripted import text_env
from turngym.envs.core.env import Episode, Outcome, TextEnv
from turngym.envs.core.registration import EnvironmentSpec, register_environment
from turngym.envs.core.tasks import Task


class Tasks:
    def sizes(self) -> Mapping[str, int | None]:
        return {"train": 40, "dev": 8, "test": 0}

    def task(self, split: str, index: int) -> Task[int]:
        return Task(f"{split}/{index}", split, index, index)

    def index_of(self, split: str, task_id: str) -> int | None:
        head, _, tail = task_id.partition("/")
        return int(tail) if head == split else None


class Arms(TextEnv[list[str], int]):
    """Pull ``l`` or ``r`` a few times; every right arm is worth 1, but only after a left one."""

    instructions = "Pull l or r.\n"
    stop = ("l", "r")
    steps_taken = 0

    def __init__(self, *, turns: int = 3) -> None:
        super().__init__(source=Tasks(), max_turns=turns, reward_range=(0.0, float(turns)))

    def begin(self, task: Task[int], random: Any) -> tuple[list[str], str]:
        return [], f"task {task.index}:"

    def play(self, episode: Episode[list[str]], action: str) -> Outcome:
        type(self).steps_taken += 1
        pulled = episode.state
        if action not in ("l", "r"):
            return Outcome.unreadable("\nl or r:")
        pulled.append(action)
        worth = float(worth_of("".join(pulled)))
        if len(pulled) == self.max_turns:
            done = Outcome.solved if worth == self.max_turns - 1 else Outcome.failed
            return done("", {"outcome": worth})
        return Outcome.move(f"\n{len(pulled)}:")

    def metrics(self, episode: Episode[list[str]]) -> dict[str, float]:
        return {"price": float(episode.state.count("r"))}

    def legal_actions(self) -> list[str]:
        return ["l", "r"]

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
        rng = np.random.default_rng(seed)

        def act(env: Any, observation: str, info: Any) -> str:
            good = "r" if env.unwrapped.episode.state else "l"
            return good if rng.random() >= mistakes else "lr"[good == "l"]

        return act


register_environment(
    EnvironmentSpec(
        id="Arms-v0", entry_point=f"{__name__}:Arms", summary="arms", sizes=(), hidden=True
    )
)


def worth_of(pulled: str) -> int:
    return pulled[1:].count("r") if pulled[:1] == "l" else 0


class Worth:
    """The true worth of a trajectory, scaled."""

    def __init__(self, scale: float = 1.0, bias: float = 0.0) -> None:
        self.scale, self.bias = scale, bias
        self.seen: list[Trajectory] = []

    def score(self, trajectories: Sequence[Trajectory]) -> list[float]:
        self.seen += trajectories
        return [self.bias + self.scale * worth_of("".join(t.actions)) for t in trajectories]


class Coin:
    """Says ``r`` most often; greedy it always does. A reply costs ``tokens``."""

    def __init__(self, left: float = 0.3, tokens: int = 2, most: int = 5) -> None:
        self.left, self.tokens, self.max_tokens = left, tokens, most
        self.plans: list[str] = []
        self.notes: list[str] = []
        self.forgot = 0

    async def act(self, position: Position, settings: ProposalSettings) -> Proposal:
        assert text_env(position.env).episode.status == "running"
        self.notes.append(position.note)
        drawn = (
            settings.temperature > 0 and np.random.default_rng(settings.seed).random() < self.left
        )
        memory = [*(position.memory or []), settings.seed]
        return Proposal("l" if drawn else "r", self.tokens, 7, memory=memory)

    async def reflect(self, position: Position, settings: ProposalSettings) -> Proposal:
        self.plans.append("".join(m.action for m in position.moves))
        return Proposal("begin with l", 3, 9)

    def forget(self) -> None:
        self.forgot += 1


def begun(turns: int = 3, task: int = 0) -> Arms:
    env = Arms(turns=turns)
    env.reset(seed=1, options={"split": "train", "task": task})
    return env


def tools(**more: Any) -> PlannerSetup:
    return PlannerSetup(**({"actor": Coin(), "scorer": Worth()} | more))


def letters(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda env, observation, info: "lr"[int(rng.integers(2))]
