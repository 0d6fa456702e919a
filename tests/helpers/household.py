"""Games and transcripts of the original, and short games made by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from turngym.envs.household.engine.game import Game
from turngym.envs.household.engine.state import HouseState, start_game
from turngym.envs.household.engine.step import act
from turngym.envs.household.engine.wording import RELEASE
from turngym.envs.household.original.files import read_game_files
from turngym.envs.household.original.problem import compile_problem

DATA = Path(__file__).parents[1] / "envs" / "household" / "data"

KITCHEN = """
(define (problem p) (:domain alfred) (:objects nothing)
(:init ; a comment
    (receptacleType Shelf_bar_1 ShelfType) (receptacleAtLocation Shelf_bar_1 loc_bar_1)
    (receptacleType Shelf_bar_2 ShelfType) (receptacleAtLocation Shelf_bar_2 loc_bar_1)
    (receptacleType Fridge_bar_1 FridgeType) (receptacleAtLocation Fridge_bar_1 loc_bar_2)
    (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType)
    (receptacleAtLocation Sink_bar_1_bar_SinkBasin loc_bar_3)
    (receptacleType Microwave_bar_1 MicrowaveType) (receptacleAtLocation Microwave_bar_1 loc_bar_4)
    (openable Fridge_bar_1) (openable Microwave_bar_1) (atLocation agent1 loc_bar_9)
    (objectType Apple_bar_1 AppleType) (objectType Apple_bar_2 AppleType)
    (objectType Knife_bar_1 KnifeType) (objectType Bowl_bar_1 BowlType)
    (objectType Egg_bar_1 EggType) (objectType DeskLamp_bar_1 DeskLampType)
    (inReceptacle Apple_bar_1 Shelf_bar_1) (inReceptacle Apple_bar_2 Fridge_bar_1)
    (inReceptacle Knife_bar_1 Shelf_bar_1) (inReceptacle Bowl_bar_1 Shelf_bar_2)
    (inReceptacle DeskLamp_bar_1 Shelf_bar_2)
    (inReceptacleObject Egg_bar_1 Bowl_bar_1) (isReceptacleObject Bowl_bar_1)
    (objectAtLocation Apple_bar_2 loc_bar_2) (objectAtLocation Egg_bar_1 loc_bar_5)
    (pickupable Apple_bar_1) (pickupable Apple_bar_2) (pickupable Knife_bar_1)
    (pickupable Bowl_bar_1) (toggleable DeskLamp_bar_1)
    (cleanable Apple_bar_1) (heatable Apple_bar_1) (coolable Apple_bar_1) (sliceable Apple_bar_1)
    (cleanable Apple_bar_2) (heatable Apple_bar_2) (coolable Apple_bar_2) (sliceable Apple_bar_2)
    (canContain ShelfType AppleType) (canContain ShelfType KnifeType)
    (canContain ShelfType BowlType) (canContain FridgeType AppleType)
)
(:goal (and (exists (?r - receptacle) (exists (?o - object) (and GOAL)))))
"""
SIMPLE_GOAL = (
    "(inReceptacle ?o ?r) (objectType ?o AppleType) (receptacleType ?r FridgeType) (isClean ?o)"
)


def make_kitchen(goal: str = SIMPLE_GOAL) -> Game:
    """Two shelves in one place, a fridge, a sink and a microwave; a clean apple is wanted."""
    return compile_problem(KITCHEN.replace("GOAL", goal), "Your task is to: x.", "kitchen")


def play(game: Game, *commands: str) -> tuple[HouseState, list[str | None]]:
    """The state after some commands, and the answers."""
    state = start_game(game)
    return state, [act(state, command, RELEASE) for command in commands]


@cache
def sample_games() -> tuple[Game, ...]:
    """The games of the sample that the original plays."""
    return tuple(file.compile() for file in read_game_files(DATA / "games") if not file.refused)
