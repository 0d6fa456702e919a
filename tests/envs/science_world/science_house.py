"""Worlds for the tests: the house without a task, and inputs one after the other."""

from __future__ import annotations

from turngym.envs.science_world.engine import step
from turngym.envs.science_world.house import build_house
from turngym.envs.science_world.tasks.java_random import JavaRandom
from turngym.envs.science_world.world import World

MOVES = (
    *("open door to kitchen", "go to kitchen", "go to hallway", "open cupboard", "wait1"),
    *("pick up thermometer", "activate sink", "move metal pot to sink", "activate stove"),
    *("use lighter on painting", "open fridge", "eat orange", "0", "pick up table", "wait"),
    *("teleport to greenhouse", "open bee hive", "teleport to kitchen", "look around"),
    *("connect stove to sink", "disconnect sink", "move metal pot to stove", "focus on air"),
)
"""Inputs that change much of the world."""


def house(seed: int = 0, *simple: str, at: str = "") -> World:
    """The house of a seed with the agent where it starts, or at a place; no tick has passed."""
    world = build_house(JavaRandom(seed))
    world.simple = frozenset(simple)
    if "openDoors" in simple:
        for o, kind in enumerate(world.kind):
            if "portal" in kind.tags:
                world.open[o] = True
    if at:
        world.put(world.agent, world.places[at])
    return world


def say(world: World, *texts: str) -> str:
    """Give inputs one after the other; the answer to the last."""
    answer = ""
    for text in texts:
        answer = step(world, text, "Boil water.").text
    return answer


def thing(world: World, name: str, place: str = "") -> int:
    """The first object of a plain name, anywhere or in a place."""
    within = world.places[place] if place else world.universe
    return next(world.named(name, within))
