"""The house: what stands where for a seed, creation ids, containment, forks."""

from __future__ import annotations

import pickle

import pytest
from helpers.science_house import MOVES, make_house, say, thing
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.errors import UnknownNameError
from turngym.envs.science_world.engine.step import digest_house
from turngym.envs.science_world.house.state import (
    NONE,
    get_creation_id,
    get_other_terminal,
    get_terminal,
    get_terminal_owner,
    list_all_inside,
)
from turngym.envs.science_world.objects.kinds import get_kind, list_kinds
from turngym.envs.science_world.objects.materials import get_material, make_unknown_substance
from turngym.envs.science_world.text.descriptions import LOOKS, describe

ART_STUDIO = """This room is called the art studio. In it, you see: 
	the agent
	a substance called air
	a large cupboard. The large cupboard door is closed. 
	a table. On the table is: a jug (containing nothing).
	a wood cup (containing red paint)
	a wood cup (containing blue paint)
	a wood cup (containing yellow paint)
You also see:
	A door to the hallway (that is closed)
"""  # noqa: W291 - the original's own blanks and tabs
BEDROOM = """This room is called the bedroom. In it, you see: 
	the agent
	a substance called air
	a bed. On the bed is: a mattress. On the mattress is: a white pillow..
	a closet. The closet door is closed. 
	a painting
	a table. On the table is: nothing.
You also see:
	A door to the hallway (that is closed)
"""  # noqa: W291


@pytest.mark.parametrize(("place", "text"), [("art studio", ART_STUDIO), ("bedroom", BEDROOM)])
def test_rooms_of_seed_0(place: str, text: str) -> None:
    house = make_house(0, at=place)
    assert describe(house, house.get_agent_place(), True) == text


def test_starts_and_random_things_of_some_seeds() -> None:
    starts = [make_house(seed) for seed in range(3)]
    assert starts[0].name[starts[0].get_agent_place()] == "hallway"
    for house in starts:
        shovels = [house.find_place(o) for o in house.find_named("shovel", house.universe)]
        assert len(shovels) == 1
        assert house.name[shovels[0]] in ("greenhouse", "outside")


def test_creation_ids_are_the_originals() -> None:
    house = make_house()
    ids = {"kitchen": 17205, "metal pot": 17235, "orange juice": 17268, "soap": 17295}
    assert {name: house.uid[thing(house, name)] for name in ids} == ids
    assert house.uid[house.universe] == 17199
    assert house.uid[house.sewer] == 17202


def test_terminals_come_before_plain_things_and_after_polar_parts() -> None:
    house = make_house()
    pot, battery = thing(house, "metal pot"), thing(house, "battery")
    assert [
        get_creation_id(house, get_terminal(pot, side)) - house.uid[pot] for side in (0, 1)
    ] == [-2, -1]
    ends = [get_creation_id(house, get_terminal(battery, side)) for side in (0, 1)]
    assert [end - house.uid[battery] for end in ends] == [1, 2]
    assert get_terminal_owner(get_other_terminal(get_terminal(pot, 0))) == pot


def test_all_inside_of_the_kitchen_has_the_originals_length_and_order() -> None:
    house = make_house()
    found = list_all_inside(house, house.places["kitchen"])
    ids = [get_creation_id(house, handle) for handle in found]
    # 30 objects with two terminals each, and the kitchen's own two.
    assert len(found) == 92
    assert ids == sorted(ids)


def test_contents_are_kept_in_creation_order() -> None:
    house = make_house()
    table, early = thing(house, "table", "kitchen"), house.make("tin cup", early=True)
    late = house.make("tin cup")
    for o in (late, early):
        house.put(o, table)
    assert house.kids[table][0] == early
    assert house.kids[table][-1] == late
    assert house.find_place(late) == house.places["kitchen"]
    house.take_out(late)
    assert house.parent[late] == NONE
    assert late not in house.kids[table]


def test_an_object_put_into_itself_stays() -> None:
    house = make_house()
    cup = thing(house, "glass cup", "kitchen")
    before = house.parent[cup]
    house.put(cup, cup)
    assert house.parent[cup] == before


def test_what_is_put_into_its_own_contents_leaves_the_world_as_in_the_original() -> None:
    house = make_house(0, "openDoors", at="kitchen")
    cupboard = thing(house, "cupboard", "kitchen")
    said = say(house, "open cupboard", "open drawer in cupboard", "move cupboard to drawer in cupb")
    assert said == "No known action matches that input."
    said = say(house, "move cupboard to drawer in cupboard")
    assert said == "You move the cupboard to the drawer."
    assert house.find_place(cupboard) == NONE
    assert say(house, "wait1") == "You decide to wait for 1 iterations."


def test_unknown_names_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="metal pot"):
        get_kind("metal pott")
    with pytest.raises(UnknownNameError, match="wood"):
        get_material("woood")


def test_every_kind_can_be_made_and_most_described() -> None:
    house = make_house()
    for k in list_kinds():
        assert k.look in LOOKS
        if k.key not in ("door", "drain", "toilet"):
            made = house.make(k.key)
            assert house.name[made] == k.name
    assert make_unknown_substance("D").state_at(10.0) == "liquid"


@settings(max_examples=25, deadline=None)
@given(
    before=st.lists(st.sampled_from(MOVES), max_size=12),
    after=st.lists(st.sampled_from(MOVES), max_size=12),
)
def test_fork_then_act_equals_act(before: list[str], after: list[str]) -> None:
    house = make_house(3, "openDoors", "teleportAction")
    say(house, *before)
    kept, twin = digest_house(house), house.fork()
    assert digest_house(twin) == kept
    texts = [say(twin, text) for text in after]
    assert digest_house(house) == kept
    assert [say(house, text) for text in after] == texts
    assert digest_house(house) == digest_house(twin)
    assert digest_house(pickle.loads(pickle.dumps(house))) == digest_house(house)
