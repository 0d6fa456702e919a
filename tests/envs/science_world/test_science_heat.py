"""Heat, change of state, fire and quiet rooms: numbers of the original, to the last bit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from science_house import MOVES, house, say, thing

from turngym.envs.science_world.physics import quiet
from turngym.envs.science_world.physics.quiet import settle
from turngym.envs.science_world.world import NONE

AFTER_ONE_TICK = {
    "air": 24.850821859203265,
    "sink": 10.014963099011439,
    "orange juice": 9.962,
    "wood cup": 9.239999999999998,
    "counter": 10.013497844195875,
    "bowl": 10.000676668241924,
    "thermometer": 10.01494494218201,
    "glass cup": 10.000709184953331,
    "metal pot": 10.00067285390028,
}
"""Kitchen of seed 0 after the agent has come: from a trace of the original."""


def test_one_tick_of_the_kitchen_to_the_last_bit() -> None:
    world = house(0, "openDoors", "teleportAction")
    say(world, "teleport to kitchen")
    found = {name: world.heat[thing(world, name, "kitchen")] for name in AFTER_ONE_TICK}
    assert found == AFTER_ONE_TICK


def test_a_paper_cup_in_the_blast_furnace_burns_at_once() -> None:
    world = house(at="foundry")
    furnace = thing(world, "blast furnace")
    cup, lead = world.make("paper cup"), world.make("lead")
    world.put(lead, cup)
    world.put(cup, furnace)
    say(world, "activate blast furnace")
    # Warmed to 309 by the furnace, on fire and so at 410, then the exchange with the lead.
    assert world.burning[cup]
    assert world.heat[cup] == pytest.approx(390.0)
    assert world.heat[lead] == pytest.approx(29.0)
    assert say(world, "open blast furnace", "look in furnace").count("paper cup (on fire)") == 1


def test_water_boils_on_the_stove_and_is_renamed() -> None:
    world = house(0, at="kitchen")
    say(world, "open cupboard", "move metal pot to sink", "activate sink", "deactivate sink")
    water = world.kids[thing(world, "metal pot")][0]
    say(world, "move metal pot to stove", "activate stove", "wait", "wait", "wait")
    assert world.state[water] == "gas"
    assert world.name[water] == "steam"


def test_water_freezes_and_ice_melts() -> None:
    world = house(0, at="kitchen")
    freezer, water = thing(world, "freezer"), world.make("water")
    world.put(water, freezer)
    say(world, *["wait"] * 3)
    assert (world.name[water], world.state[water]) == ("ice", "solid")
    world.put(water, world.places["kitchen"])
    say(world, *["wait"] * 20)
    assert (world.name[water], world.state[water]) == ("water", "liquid")


def test_water_puts_a_fire_out_and_its_heat_lights_it_again() -> None:
    world = house(0, "openDoors", "teleportAction", at="outside")
    lighter, cup, water = thing(world, "lighter"), world.make("tin cup"), world.make("water")
    for o in (lighter, cup):
        world.put(o, world.inventory)
    world.put(water, cup)
    assert say(world, "move wood to fire pit", "use lighter on wood") == "The wood catches fire."
    said = say(world, "look at fire pit")
    assert said == "a fire pit (containing a substance called wood (on fire))"
    assert say(world, "use lighter on wood") == "The wood is already on fire."
    said = say(world, "wait1", "pour tin cup into fire pit", "look at fire pit")
    assert said == (
        "a fire pit (containing a substance called steam, a substance called burned wood)"
    )
    said = say(world, "wait1", "look at fire pit")
    assert said == (
        "a fire pit (containing a substance called steam, a substance called wood (on fire))"
    )


def test_what_burns_becomes_ash() -> None:
    world = house(0, at="outside")
    wood, pit = thing(world, "wood"), thing(world, "fire pit")
    say(world, "move wood to fire pit")
    world.burning[wood] = True
    say(world, *["wait"] * 10)
    assert world.parent[wood] == NONE
    assert [world.name[kid] for kid in world.kids[pit]] == ["ash"]
    assert say(world, "look at fire pit") == "a fire pit (containing a substance called burned ash)"


def test_a_tap_fills_cups_but_never_the_open_basin() -> None:
    world = house(0, at="kitchen")
    say(world, "move glass cup to sink")
    said = say(world, "activate sink", "look at sink")
    assert said == (
        "a sink, which is turned on. In the sink is: a glass cup (containing a substance called "
        "water). The drain is open."
    )
    size = len(world.kind)
    say(world, *["wait"] * 20)
    assert len(world.kind) - size <= 2  # what drains away is used again
    said = say(world, "close sink drain", "look at sink")
    assert "a substance called water. The drain is closed." in said


def test_stopwatch_and_thermometer() -> None:
    world = house(0, at="kitchen")
    assert say(world, "look at stopwatch") == (
        "a stopwatch, which is deactivated. The time reads 0 ticks."
    )
    said = say(world, "activate stopwatch", "wait1", "deactivate stopwatch", "look at stopwatch")
    assert said == "a stopwatch, which is deactivated. The time reads 3 ticks."
    said = say(world, "use thermometer on air")
    assert said == "the thermometer measures a temperature of 24 degrees celsius"


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 40),
    texts=st.lists(st.sampled_from((*MOVES, "teleport to outside", "wait")), max_size=15),
)
def test_quiet_rooms_end_in_the_same_world(seed: int, texts: list[str]) -> None:
    late, eager = (house(seed, "openDoors", "teleportAction") for _ in range(2))
    answers = [say(late, text) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quiet, "caged_bees", lambda world, place: NONE)
        assert [say(eager, text) for text in texts] == answers
    settle(late)
    assert late.heat == eager.heat
    assert late.digest() == eager.digest()
