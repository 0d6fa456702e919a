"""The micro house: three places with little in them, for short texts and small models."""

from __future__ import annotations

from .house import HouseRandom, add, add_agent, add_basin, add_place, filled
from .world import World

PLACES = ("bathroom", "kitchen", "outside")
"""Names of the places, sorted: the order in which the agent's start is drawn."""
DOORS = (("bathroom", "kitchen"), ("kitchen", "outside"))


def build_micro_house(random: HouseRandom) -> World:
    """Kitchen, bathroom and outside, and the agent in one of them."""
    world = World(random)
    world.universe = world.make("universe")
    world.sewer = world.make("sewer")
    world.put(world.sewer, world.universe)
    kitchen = add_place(world, "kitchen")
    add_basin(world, kitchen, "sink")
    filled(world, kitchen, "wood table", "bowl")
    filled(world, kitchen, "glass jar", "sodium chloride")
    bathroom = add_place(world, "bathroom")
    add_basin(world, bathroom, "toilet")
    add(world, bathroom, "glass cup")
    add(world, add_place(world, "outside"), "fountain")
    for source, target in DOORS:
        world.join("door", world.places[source], world.places[target])
    add_agent(world, PLACES[random.next_int(len(PLACES))])
    return world
