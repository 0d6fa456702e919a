"""Starting an episode: what a task brings, where it lies, what play draws from."""

from __future__ import annotations

import pytest

from turngym.envs.errors import BadValueError, UnknownNameError
from turngym.envs.science_world.tasks.catalogue import TASKS, TaskKind, find_kind
from turngym.envs.science_world.tasks.checker import TaskState
from turngym.envs.science_world.tasks.episode import EASY, simplifications, start_world
from turngym.envs.science_world.tasks.java_random import JavaRandom
from turngym.envs.science_world.tasks.params import Conductivity, Genetics
from turngym.envs.science_world.world import NONE, World


def names_in(world: World, place: str) -> list[str]:
    return [world.name[o] for o in world.inside(world.places[place])]


def the(world: World, name: str, place: str) -> int:
    return next(world.named(name, world.places[place]))


@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: kind.id)
def test_every_task_starts_at_its_first_middle_and_last_variation(kind: TaskKind) -> None:
    count = len(kind.variations)
    for variation in {0, count // 2, count - 1}:
        world = start_world(kind, variation)
        assert isinstance(world.goals, TaskState)
        assert world.goals.points == 0
        assert world.focus == NONE
        assert world.name[world.here()] in world.places


def test_the_house_follows_from_the_number_alone() -> None:
    def house(name: str) -> list[str]:
        return names_in(start_world(find_kind(name), 7), "bedroom")

    assert house("boil") == house("9-2") == house("find-animal")


def test_substances_lie_where_the_shuffle_puts_them() -> None:
    world = start_world(find_kind("boil"), 14)
    cream = the(world, "ice cream", "kitchen")
    cup = world.parent[cream]
    assert world.kind[cup].refer == "cup"
    assert world.name[world.parent[cup]] == "freezer"
    assert world.heat[cup] == world.heat[cream] == -15.0
    marshmallow = the(start_world(find_kind("boil"), 12), "marshmallow", "kitchen")
    assert marshmallow != NONE


def test_what_is_there_is_not_brought_again() -> None:
    world = start_world(find_kind("melt"), 6)
    assert names_in(world, "kitchen").count("orange juice") == 1
    forced = start_world(find_kind("3-3"), find_first("3-3", "metal pot", "kitchen"))
    assert names_in(forced, "kitchen").count("metal pot") == 2


def find_first(task: str, substance: str, place: str) -> int:
    params = find_kind(task).variations
    return next(
        v
        for v, p in enumerate(params)
        if isinstance(p, Conductivity) and (p.substance, p.place) == (substance, place)
    )


def test_broken_devices() -> None:
    world = start_world(find_kind("boil"), 3)
    assert world.broken[the(world, "sink", "kitchen")]
    assert world.broken[the(world, "stove", "kitchen")]
    whole = start_world(find_kind("boil"), 0)
    assert not any(whole.broken)


def test_only_the_desk_has_paint() -> None:
    cups = []
    for variation in (3, 4, 5):
        world = start_world(find_kind("6-2"), variation)
        names = names_in(world, "workshop")
        cups.append(sum(name.endswith("paint") for name in names))
    assert cups == [0, 0, 3]


def test_a_mixing_container_is_left_out_where_its_name_is_in_the_closet() -> None:
    world = start_world(find_kind("6-2"), 4)
    kids = world.kids[world.places["workshop"]]
    assert not any(world.kind[o].refer == "cup" for o in kids)
    assert names_in(world, "workshop").count("glass cup") == 3


def test_seeds_of_a_jar_have_the_asked_trait_twice() -> None:
    for task, variation in (("10-1", 0), ("10-1", 60), ("10-2", 0), ("10-2", 479)):
        params = find_kind(task).params(variation)
        world = start_world(find_kind(task), variation)
        jar = the(world, "seed jar", "greenhouse")
        assert isinstance(params, Genetics)
        trait = params.trait
        genes = [dict((name, pair) for name, *pair in world.note[o]) for o in world.kids[jar]]
        assert [seed[trait] for seed in genes] == [[0, 0], [1, 1]]
        assert len(genes[0]) == 4


def test_genes_of_the_first_jars() -> None:
    world = start_world(find_kind("10-2"), 0)
    jar = the(world, "seed jar", "greenhouse")
    order = [name for name, _, _ in world.note[world.kids[jar][0]]]
    assert order == ["seed color", "leaf shape", "flower size", "seed shape"]


def test_plants_of_8_2_stand_in_numbered_pots_in_every_stage() -> None:
    world = start_world(find_kind("8-2"), 0)
    plants = [o for o in world.inside(world.places["outside"]) if "plant" in world.kind[o].tags]
    stages = sorted(world.stage(o) for o in plants)
    assert stages == sorted(("seed", "seedling", "adult", "reproducing", "dead"))
    pots = {world.name[world.parent[o]] for o in plants}
    assert len(pots) == 5
    assert all(name.startswith("self watering flower pot ") for name in pots)


def test_play_draws_from_where_the_set_up_ended() -> None:
    calm = start_world(find_kind("lifespan-longest-lived"), 9)
    assert calm.random.state == JavaRandom(9).state
    planes = start_world(find_kind("9-1"), 9)
    drawn = JavaRandom(9)
    drawn.next_int(2)
    assert planes.random.state == drawn.state


def test_simplifications() -> None:
    boil, power = find_kind("boil"), find_kind("power-component")
    assert simplifications("easy", boil) == set(EASY)
    assert simplifications("easy", power) == set(EASY) - {"noElectricalAction"}
    assert simplifications(["OPENDOORS"], boil) == {"openDoors"}
    assert simplifications("", boil) == frozenset()
    with pytest.raises(UnknownNameError, match="simplification"):
        simplifications("openWindows", boil)
    with pytest.raises(UnknownNameError, match="about electricity"):
        simplifications("noElectricalAction", power)


def test_open_doors_and_containers() -> None:
    kind = find_kind("boil")
    shut, doors = start_world(kind, 0), start_world(kind, 0, ["openDoors"])
    boxes = start_world(kind, 0, ["openContainers"])
    for world, door, fridge in ((shut, False, False), (doors, True, False), (boxes, False, True)):
        assert world.open[world.portals[world.places["hallway"]][0]] is door
        assert world.open[the(world, "fridge", "kitchen")] is fridge


def test_a_variation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadValueError, match="variation 30 does not exist"):
        start_world(find_kind("boil"), 30)
