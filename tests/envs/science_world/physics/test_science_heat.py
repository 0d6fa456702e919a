"""Heat, change of state, fire and quiet rooms: numbers of the original, to the last bit."""

from __future__ import annotations

import pytest
from helpers.science_house import MOVES, make_house, say, thing
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.science_world.engine.step import digest_house
from turngym.envs.science_world.house.state import NONE
from turngym.envs.science_world.physics import ticking
from turngym.envs.science_world.physics.ticking import settle

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
    house = make_house(0, "openDoors", "teleportAction")
    say(house, "teleport to kitchen")
    found = {name: house.heat[thing(house, name, "kitchen")] for name in AFTER_ONE_TICK}
    assert found == AFTER_ONE_TICK


def test_a_paper_cup_in_the_blast_furnace_burns_at_once() -> None:
    house = make_house(at="foundry")
    furnace = thing(house, "blast furnace")
    cup, lead = house.make("paper cup"), house.make("lead")
    house.put(lead, cup)
    house.put(cup, furnace)
    say(house, "activate blast furnace")
    # Warmed to 309 by the furnace, on fire and so at 410, then the exchange with the lead.
    assert house.burning[cup]
    assert house.heat[cup] == pytest.approx(390.0)
    assert house.heat[lead] == pytest.approx(29.0)
    assert say(house, "open blast furnace", "look in furnace").count("paper cup (on fire)") == 1


def test_water_boils_on_the_stove_and_is_renamed() -> None:
    house = make_house(0, at="kitchen")
    say(house, "open cupboard", "move metal pot to sink", "activate sink", "deactivate sink")
    water = house.kids[thing(house, "metal pot")][0]
    say(house, "move metal pot to stove", "activate stove", "wait", "wait", "wait")
    assert house.state[water] == "gas"
    assert house.name[water] == "steam"


def test_water_freezes_and_ice_melts() -> None:
    house = make_house(0, at="kitchen")
    freezer, water = thing(house, "freezer"), house.make("water")
    house.put(water, freezer)
    say(house, *["wait"] * 3)
    assert (house.name[water], house.state[water]) == ("ice", "solid")
    house.put(water, house.places["kitchen"])
    say(house, *["wait"] * 20)
    assert (house.name[water], house.state[water]) == ("water", "liquid")


def test_water_puts_a_fire_out_and_its_heat_lights_it_again() -> None:
    house = make_house(0, "openDoors", "teleportAction", at="outside")
    lighter, cup, water = thing(house, "lighter"), house.make("tin cup"), house.make("water")
    for o in (lighter, cup):
        house.put(o, house.inventory)
    house.put(water, cup)
    assert say(house, "move wood to fire pit", "use lighter on wood") == "The wood catches fire."
    said = say(house, "look at fire pit")
    assert said == "a fire pit (containing a substance called wood (on fire))"
    assert say(house, "use lighter on wood") == "The wood is already on fire."
    said = say(house, "wait1", "pour tin cup into fire pit", "look at fire pit")
    assert said == (
        "a fire pit (containing a substance called steam, a substance called burned wood)"
    )
    said = say(house, "wait1", "look at fire pit")
    assert said == (
        "a fire pit (containing a substance called steam, a substance called wood (on fire))"
    )


def test_what_burns_becomes_ash() -> None:
    house = make_house(0, at="outside")
    wood, pit = thing(house, "wood"), thing(house, "fire pit")
    say(house, "move wood to fire pit")
    house.burning[wood] = True
    say(house, *["wait"] * 10)
    assert house.parent[wood] == NONE
    assert [house.name[kid] for kid in house.kids[pit]] == ["ash"]
    assert say(house, "look at fire pit") == "a fire pit (containing a substance called burned ash)"


def test_a_tap_fills_cups_but_never_the_open_basin() -> None:
    house = make_house(0, at="kitchen")
    say(house, "move glass cup to sink")
    said = say(house, "activate sink", "look at sink")
    assert said == (
        "a sink, which is turned on. In the sink is: a glass cup (containing a substance called "
        "water). The drain is open."
    )
    size = len(house.kind)
    say(house, *["wait"] * 20)
    assert len(house.kind) - size <= 2  # what drains away is used again
    said = say(house, "close sink drain", "look at sink")
    assert "a substance called water. The drain is closed." in said


def test_stopwatch_and_thermometer() -> None:
    house = make_house(0, at="kitchen")
    assert say(house, "look at stopwatch") == (
        "a stopwatch, which is deactivated. The time reads 0 ticks."
    )
    said = say(house, "activate stopwatch", "wait1", "deactivate stopwatch", "look at stopwatch")
    assert said == "a stopwatch, which is deactivated. The time reads 3 ticks."
    said = say(house, "use thermometer on air")
    assert said == "the thermometer measures a temperature of 24 degrees celsius"


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 40),
    texts=st.lists(st.sampled_from((*MOVES, "teleport to outside", "wait")), max_size=15),
)
def test_quiet_rooms_end_in_the_same_world(seed: int, texts: list[str]) -> None:
    late, eager = (make_house(seed, "openDoors", "teleportAction") for _ in range(2))
    answers = [say(late, text) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ticking, "count_caged_bees", lambda house, place: NONE)
        assert [say(eager, text) for text in texts] == answers
    settle(late)
    assert late.heat == eager.heat
    assert digest_house(late) == digest_house(eager)
