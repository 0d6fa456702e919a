"""The house: what stands where for a seed, creation ids, containment, forks."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from science_house import MOVES, house, say, thing

from turngym.envs.errors import UnknownNameError
from turngym.envs.science_world.kinds import all_kinds, kind
from turngym.envs.science_world.materials import material, unknown_substance
from turngym.envs.science_world.wording import LOOKS, describe
from turngym.envs.science_world.world import (
    NONE,
    all_inside,
    creation_id,
    other_terminal,
    terminal,
    terminal_owner,
)

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
    world = house(0, at=place)
    assert describe(world, world.here(), True) == text


def test_starts_and_random_things_of_some_seeds() -> None:
    starts = [house(seed) for seed in range(3)]
    assert starts[0].name[starts[0].here()] == "hallway"
    for world in starts:
        shovels = [world.place_of(o) for o in world.named("shovel", world.universe)]
        assert len(shovels) == 1
        assert world.name[shovels[0]] in ("greenhouse", "outside")


def test_creation_ids_are_the_originals() -> None:
    world = house()
    ids = {"kitchen": 17205, "metal pot": 17235, "orange juice": 17268, "soap": 17295}
    assert {name: world.uid[thing(world, name)] for name in ids} == ids
    assert world.uid[world.universe] == 17199
    assert world.uid[world.sewer] == 17202


def test_terminals_come_before_plain_things_and_after_polar_parts() -> None:
    world = house()
    pot, battery = thing(world, "metal pot"), thing(world, "battery")
    assert [creation_id(world, terminal(pot, side)) - world.uid[pot] for side in (0, 1)] == [-2, -1]
    ends = [creation_id(world, terminal(battery, side)) for side in (0, 1)]
    assert [end - world.uid[battery] for end in ends] == [1, 2]
    assert terminal_owner(other_terminal(terminal(pot, 0))) == pot


def test_all_inside_of_the_kitchen_has_the_originals_length_and_order() -> None:
    world = house()
    found = all_inside(world, world.places["kitchen"])
    ids = [creation_id(world, handle) for handle in found]
    # 30 objects with two terminals each, and the kitchen's own two.
    assert len(found) == 92
    assert ids == sorted(ids)


def test_contents_are_kept_in_creation_order() -> None:
    world = house()
    table, early = thing(world, "table", "kitchen"), world.make("tin cup", early=True)
    late = world.make("tin cup")
    for o in (late, early):
        world.put(o, table)
    assert world.kids[table][0] == early
    assert world.kids[table][-1] == late
    assert world.place_of(late) == world.places["kitchen"]
    world.take_out(late)
    assert world.parent[late] == NONE
    assert late not in world.kids[table]


def test_an_object_put_into_itself_stays() -> None:
    world = house()
    cup = thing(world, "glass cup", "kitchen")
    before = world.parent[cup]
    world.put(cup, cup)
    assert world.parent[cup] == before


def test_what_is_put_into_its_own_contents_leaves_the_world_as_in_the_original() -> None:
    world = house(0, "openDoors", at="kitchen")
    cupboard = thing(world, "cupboard", "kitchen")
    said = say(world, "open cupboard", "open drawer in cupboard", "move cupboard to drawer in cupb")
    assert said == "No known action matches that input."
    said = say(world, "move cupboard to drawer in cupboard")
    assert said == "You move the cupboard to the drawer."
    assert world.place_of(cupboard) == NONE
    assert say(world, "wait1") == "You decide to wait for 1 iterations."


def test_unknown_names_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="metal pot"):
        kind("metal pott")
    with pytest.raises(UnknownNameError, match="wood"):
        material("woood")


def test_every_kind_can_be_made_and_most_described() -> None:
    world = house()
    for k in all_kinds():
        assert k.look in LOOKS
        if k.key not in ("door", "drain", "toilet"):
            made = world.make(k.key)
            assert world.name[made] == k.name
    assert unknown_substance("D").state_at(10.0) == "liquid"


@settings(max_examples=25, deadline=None)
@given(
    before=st.lists(st.sampled_from(MOVES), max_size=12),
    after=st.lists(st.sampled_from(MOVES), max_size=12),
)
def test_fork_then_act_equals_act(before: list[str], after: list[str]) -> None:
    world = house(3, "openDoors", "teleportAction")
    say(world, *before)
    kept, twin = world.digest(), world.fork()
    assert twin.digest() == kept
    texts = [say(twin, text) for text in after]
    assert world.digest() == kept
    assert [say(world, text) for text in after] == texts
    assert world.digest() == twin.digest()
    assert pickle.loads(pickle.dumps(world)).digest() == world.digest()
