"""The original engine's registry package, played by this project's own house."""

from __future__ import annotations

import os

from turngym.envs.science_world.actions.looking import inventory, look_around
from turngym.envs.science_world.engine.action_lists import list_original_actions
from turngym.envs.science_world.engine.step import step
from turngym.envs.science_world.house.state import GoalTracker, HouseState
from turngym.envs.science_world.tasks.build import parse_simplifications, start_episode
from turngym.envs.science_world.tasks.catalogue import find_kind
from turngym.envs.science_world.tasks.solvers.solve import plan_action


class Server:
    """The Java side of the package, over this project's own house."""

    house: HouseState

    def step(self, text: str) -> str:
        if text == "crash":
            raise RuntimeError("the Java process is gone")
        return step(self.house, text).text

    def getScore(self) -> float:
        return self.goals.points / 100

    def getCompleted(self) -> bool:
        return self.goals.completed or self.goals.failed

    @property
    def goals(self) -> GoalTracker:
        assert self.house.goals is not None
        return self.house.goals


class StandIn:
    """The interface of the package's environment."""

    made = 0
    listings = 0

    def __init__(self, envStepLimit: int) -> None:
        type(self).made += 1
        self.limit = envStepLimit
        self.options = os.environ["JAVA_TOOL_OPTIONS"]
        self.server = Server()

    def load(self, task: str, variation: int, simple: str, gold: bool = False) -> None:
        kind = find_kind(task)
        self.server.house = start_episode(kind, variation, parse_simplifications(simple, kind))

    def get_num_moves(self) -> int:
        return self.server.house.ticks

    def get_valid_action_object_combinations(self) -> list[str]:
        type(self).listings += 1
        return list_original_actions(self.server.house)

    def get_gold_action_sequence(self) -> list[str]:
        house, texts = self.server.house.fork(), []
        while house.goals is not None and not house.goals.completed:
            texts.append(plan_action(house))
            step(house, texts[-1])
        return texts

    def close(self) -> None:
        self.closed = True

    def look(self) -> str:
        return look_around(self.server.house)

    def inventory(self) -> str:
        return inventory(self.server.house)
