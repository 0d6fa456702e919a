"""Worlds for the tests: the house without a task, and inputs one after the other."""

from __future__ import annotations

from turngym.envs.science_world.engine.step import step
from turngym.envs.science_world.house.build import build_house
from turngym.envs.science_world.house.java_random import JavaRandom
from turngym.envs.science_world.house.state import HouseState

MOVES = (
    *("open door to kitchen", "go to kitchen", "go to hallway", "open cupboard", "wait1"),
    *("pick up thermometer", "activate sink", "move metal pot to sink", "activate stove"),
    *("use lighter on painting", "open fridge", "eat orange", "0", "pick up table", "wait"),
    *("teleport to greenhouse", "open bee hive", "teleport to kitchen", "look around"),
    *("connect stove to sink", "disconnect sink", "move metal pot to stove", "focus on air"),
)
"""Inputs that change much of the house."""


def make_house(seed: int = 0, *simple: str, at: str = "") -> HouseState:
    """The house of a seed with the agent where it starts, or at a place; no tick has passed."""
    house = build_house(JavaRandom(seed))
    house.simple = frozenset(simple)
    if "openDoors" in simple:
        for o, kind in enumerate(house.kind):
            if "portal" in kind.tags:
                house.open[o] = True
    if at:
        house.put(house.agent, house.places[at])
    return house


def say(house: HouseState, *texts: str) -> str:
    """Give inputs one after the other; the answer to the last."""
    answer = ""
    for text in texts:
        answer = step(house, text, "Boil water.").text
    return answer


def thing(house: HouseState, name: str, place: str = "") -> int:
    """The first object of a plain name, anywhere or in a place."""
    within = house.places[place] if place else house.universe
    return next(house.find_named(name, within))
