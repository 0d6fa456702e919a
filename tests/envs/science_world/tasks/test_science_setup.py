"""Starting an episode: what a task brings, where it lies, what play draws from."""

from __future__ import annotations

import pytest

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.science_world.house.java_random import JavaRandom
from turngym.envs.science_world.house.state import NONE, HouseState
from turngym.envs.science_world.tasks.build import EASY, parse_simplifications, start_episode
from turngym.envs.science_world.tasks.catalogue import TASKS, TaskKind, find_kind
from turngym.envs.science_world.tasks.checker import TaskState
from turngym.envs.science_world.tasks.params import Conductivity, Genetics


def names_in(house: HouseState, place: str) -> list[str]:
    return [house.name[o] for o in house.walk_inside(house.places[place])]


def the(house: HouseState, name: str, place: str) -> int:
    return next(house.find_named(name, house.places[place]))


@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: kind.id)
def test_every_task_starts_at_its_first_middle_and_last_variation(kind: TaskKind) -> None:
    count = len(kind.variations)
    for variation in {0, count // 2, count - 1}:
        house = start_episode(kind, variation)
        assert isinstance(house.goals, TaskState)
        assert house.goals.points == 0
        assert house.focus == NONE
        assert house.name[house.get_agent_place()] in house.places


def test_the_house_follows_from_the_number_alone() -> None:
    def make_house(name: str) -> list[str]:
        return names_in(start_episode(find_kind(name), 7), "bedroom")

    assert make_house("boil") == make_house("9-2") == make_house("find-animal")


def test_substances_lie_where_the_shuffle_puts_them() -> None:
    house = start_episode(find_kind("boil"), 14)
    cream = the(house, "ice cream", "kitchen")
    cup = house.parent[cream]
    assert house.kind[cup].refer == "cup"
    assert house.name[house.parent[cup]] == "freezer"
    assert house.heat[cup] == house.heat[cream] == -15.0
    marshmallow = the(start_episode(find_kind("boil"), 12), "marshmallow", "kitchen")
    assert marshmallow != NONE


def test_what_is_there_is_not_brought_again() -> None:
    house = start_episode(find_kind("melt"), 6)
    assert names_in(house, "kitchen").count("orange juice") == 1
    forced = start_episode(find_kind("3-3"), find_first("3-3", "metal pot", "kitchen"))
    assert names_in(forced, "kitchen").count("metal pot") == 2


def find_first(task: str, substance: str, place: str) -> int:
    params = find_kind(task).variations
    return next(
        v
        for v, p in enumerate(params)
        if isinstance(p, Conductivity) and (p.substance, p.place) == (substance, place)
    )


def test_broken_devices() -> None:
    house = start_episode(find_kind("boil"), 3)
    assert house.broken[the(house, "sink", "kitchen")]
    assert house.broken[the(house, "stove", "kitchen")]
    whole = start_episode(find_kind("boil"), 0)
    assert not any(whole.broken)


def test_only_the_desk_has_paint() -> None:
    cups = []
    for variation in (3, 4, 5):
        house = start_episode(find_kind("6-2"), variation)
        names = names_in(house, "workshop")
        cups.append(sum(name.endswith("paint") for name in names))
    assert cups == [0, 0, 3]


def test_a_mixing_container_is_left_out_where_its_name_is_in_the_closet() -> None:
    house = start_episode(find_kind("6-2"), 4)
    kids = house.kids[house.places["workshop"]]
    assert not any(house.kind[o].refer == "cup" for o in kids)
    assert names_in(house, "workshop").count("glass cup") == 3


def test_seeds_of_a_jar_have_the_asked_trait_twice() -> None:
    for task, variation in (("10-1", 0), ("10-1", 60), ("10-2", 0), ("10-2", 479)):
        params = find_kind(task).params(variation)
        house = start_episode(find_kind(task), variation)
        jar = the(house, "seed jar", "greenhouse")
        assert isinstance(params, Genetics)
        trait = params.trait
        genes = [dict((name, pair) for name, *pair in house.note[o]) for o in house.kids[jar]]
        assert [seed[trait] for seed in genes] == [[0, 0], [1, 1]]
        assert len(genes[0]) == 4


def test_genes_of_the_first_jars() -> None:
    house = start_episode(find_kind("10-2"), 0)
    jar = the(house, "seed jar", "greenhouse")
    order = [name for name, _, _ in house.note[house.kids[jar][0]]]
    assert order == ["seed color", "leaf shape", "flower size", "seed shape"]


def test_plants_of_8_2_stand_in_numbered_pots_in_every_stage() -> None:
    house = start_episode(find_kind("8-2"), 0)
    plants = [
        o for o in house.walk_inside(house.places["outside"]) if "plant" in house.kind[o].tags
    ]
    stages = sorted(house.get_stage(o) for o in plants)
    assert stages == sorted(("seed", "seedling", "adult", "reproducing", "dead"))
    pots = {house.name[house.parent[o]] for o in plants}
    assert len(pots) == 5
    assert all(name.startswith("self watering flower pot ") for name in pots)


def test_play_draws_from_where_the_set_up_ended() -> None:
    calm = start_episode(find_kind("lifespan-longest-lived"), 9)
    assert calm.random.state == JavaRandom(9).state
    planes = start_episode(find_kind("9-1"), 9)
    drawn = JavaRandom(9)
    drawn.next_int(2)
    assert planes.random.state == drawn.state


def test_simplifications() -> None:
    boil, power = find_kind("boil"), find_kind("power-component")
    assert parse_simplifications("easy", boil) == set(EASY)
    assert parse_simplifications("easy", power) == set(EASY) - {"noElectricalAction"}
    assert parse_simplifications(["OPENDOORS"], boil) == {"openDoors"}
    assert parse_simplifications("", boil) == frozenset()
    with pytest.raises(UnknownNameError, match="simplification"):
        parse_simplifications("openWindows", boil)
    with pytest.raises(UnknownNameError, match="about electricity"):
        parse_simplifications("noElectricalAction", power)


def test_open_doors_and_containers() -> None:
    kind = find_kind("boil")
    shut, doors = start_episode(kind, 0), start_episode(kind, 0, ["openDoors"])
    boxes = start_episode(kind, 0, ["openContainers"])
    for house, door, fridge in ((shut, False, False), (doors, True, False), (boxes, False, True)):
        assert house.open[house.portals[house.places["hallway"]][0]] is door
        assert house.open[the(house, "fridge", "kitchen")] is fridge


def test_a_variation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadValueError, match="variation is 30; expected an integer from 0 to 29"):
        start_episode(find_kind("boil"), 30)
