"""Plants, flowers, bees, genes and animals."""

from __future__ import annotations

import pytest
from science_house import house, say, thing

from turngym.envs.science_world.physics.animals import tick_bee
from turngym.envs.science_world.records import Bloom, Slope
from turngym.envs.science_world.tasks.java_random import JavaRandom
from turngym.envs.science_world.traits import TRAITS, form
from turngym.envs.science_world.wording import describe
from turngym.envs.science_world.world import NONE, World


def planted(*simple: str, plant: str = "apple tree", soil: bool = True) -> tuple[World, int, int]:
    """A greenhouse with one plant in a flower pot: the world, the plant, the pot."""
    world = house(0, *simple, at="greenhouse")
    pot, made = world.make("flower pot"), world.make(plant)
    world.put(pot, world.here())
    if soil:
        world.put(world.make("soil"), pot)
    world.put(made, pot)
    return world, made, pot


def pass_ticks(world: World, count: int) -> None:
    """Let time pass, one tick an action."""
    for _ in range(count):
        say(world, "look at air")


def test_a_watered_seed_becomes_a_tree_that_flowers() -> None:
    world, tree, _ = planted("selfWateringFlowerPots")
    assert world.stage(tree) == "seed"
    stages = []
    for _ in range(40):
        pass_ticks(world, 1)
        stages.append(world.stage(tree))
    first = {stage: stages.index(stage) + 1 for stage in ("seedling", "adult", "reproducing")}
    assert first == {"seedling": 10, "adult": 20, "reproducing": 25}
    assert say(world, "look at apple tree") == (
        "a apple tree in the reproducing stage. On the apple tree you see: a flower."
    )


def test_names_follow_a_tick_after_the_stage() -> None:
    world, tree, _ = planted("selfWateringFlowerPots")
    assert world.name[tree] == "plant"
    pass_ticks(world, 10)
    assert (world.stage(tree), world.name[tree]) == ("seedling", "apple seed")
    assert say(world, "eat apple seed") == "The apple seed was delicious."


@pytest.mark.parametrize("soil", [True, False])
def test_a_dry_or_bare_seed_waits(soil: bool) -> None:
    world, tree, pot = planted(soil=soil)
    if not soil:
        world.put(world.make("water"), pot)
    pass_ticks(world, 30)
    assert world.stage(tree) == "seed"


def test_drought_makes_a_seedling_unwell_and_then_kills() -> None:
    world, tree, _ = planted()
    world.set_stage(tree, "seedling")
    pass_ticks(world, 10)
    assert describe(world, tree) == "a apple tree in the seedling stage (that looks unwell)"
    assert say(world, "look at sick apple tree").endswith("(that looks unwell)")
    pass_ticks(world, 10)
    assert world.stage(tree) == "dead"
    assert describe(world, tree) == "a dead apple tree"


def test_cold_kills_a_plant() -> None:
    world, tree, pot = planted("selfWateringFlowerPots")
    world.set_stage(tree, "adult")
    for _ in range(5):
        world.heat[tree] = world.heat[pot] = -20.0
        pass_ticks(world, 1)
    assert world.stage(tree) in ("dead", "reproducing")  # the fifth tick also ends its youth
    for _ in range(5):
        world.heat[tree] = -20.0
        pass_ticks(world, 1)
    assert world.stage(tree) == "dead"


def test_a_pollinated_flower_becomes_fruit() -> None:
    world, tree, _ = planted("selfWateringFlowerPots")
    other = world.make("apple tree")
    world.set_stage(tree, "reproducing")
    flower, grain = world.make("flower"), world.make("pollen")
    world.life[flower] = Bloom(tree)
    world.note[grain] = other
    world.put(flower, tree)
    world.put(grain, flower)
    pass_ticks(world, 1)
    assert describe(world, flower) == "a wilting flower"
    pass_ticks(world, 5)
    assert world.parent[flower] == NONE
    assert [world.name[kid] for kid in world.kids[tree]][-1] == "apple"


def test_own_pollen_and_other_species_do_not_pollinate() -> None:
    world, tree, _ = planted("selfWateringFlowerPots")
    pear = world.make("pear tree")
    world.set_stage(tree, "reproducing")
    flower, grain = world.make("flower"), world.make("pollen")
    world.life[flower] = Bloom(tree)
    world.note[grain] = pear
    world.put(flower, tree)
    world.put(grain, flower)
    pass_ticks(world, 10)
    assert world.life[flower].step == 0
    assert say(world, "look at flower").startswith("a flower. Inside the flower is: pollen, pollen")


GENES = (("plant height", 0, 1), ("seed shape", 1, 1), ("seed color", 0, 0), ("flower color", 1, 0))


def test_traits_are_seen_by_stage() -> None:
    world, pea, _ = planted(plant="pea plant")
    world.note[pea] = GENES
    assert describe(world, pea) == "a wrinkly green  pea seed"
    world.set_stage(pea, "adult")
    assert describe(world, pea) == "a pea plant in the adult stage with a tall height"
    flower = world.make("flower")
    world.life[flower] = Bloom(pea)
    assert describe(world, flower) == "a purple flower"
    assert form("pea", GENES, "seed shape") == "wrinkly"
    assert form("pea", GENES, "leaf size") == ""
    assert all(len(traits) == 4 for traits in TRAITS.values())


@pytest.mark.parametrize("species", ["pea", "unknown B"])
def test_a_seed_has_an_allele_of_each_parent(species: str) -> None:
    world, mother, _ = planted("selfWateringFlowerPots", plant=f"{species} plant")
    father = world.make(f"{species} plant")
    traits = list(TRAITS[species])
    world.note[mother] = tuple((trait, 0, 0) for trait in traits)
    world.note[father] = tuple((trait, 1, 1) for trait in traits)
    world.set_stage(mother, "reproducing")
    flower = world.make("flower")
    world.life[flower] = Bloom(mother, 5, world.genes(father))
    world.put(flower, mother)
    pass_ticks(world, 1)
    seeds = [kid for kid in world.kids[mother] if "plant" in world.kind[kid].tags]
    assert [world.note[seed] for seed in seeds] == [tuple((trait, 0, 1) for trait in traits)]


def test_bees_stay_in_a_closed_hive_and_leave_an_open_one() -> None:
    closed, opened = house(0, at="greenhouse"), house(0, at="greenhouse")
    hive = thing(opened, "bee hive")
    say(closed, "wait", "wait")
    say(opened, "open bee hive", "wait", "wait")
    assert len(closed.kids[thing(closed, "bee hive")]) == 5
    assert len(opened.kids[hive]) < 5
    assert say(opened, "look around").count("adult bee") >= 1


def test_a_bee_leaves_what_the_agent_carries() -> None:
    world = house(0, at="greenhouse")
    jar, bee = world.make("ceramic cup"), world.make("bee")
    world.put(jar, world.inventory)
    world.put(bee, jar)
    world.random = JavaRandom(7)
    for _ in range(20):
        tick_bee(world, bee)
    assert world.parent[bee] == world.here()


@pytest.mark.parametrize(
    ("species", "shown"),
    [
        ("wolf", ["baby wolf", "juvenile wolf", "adult wolf", "dead wolf"]),
        ("dove", ["dove egg", "hatchling dove", "juvenile dove", "adult dove", "dead dove"]),
        ("common toad", ["frog egg", "tadpole", "adult frog", "dead frog"]),
        (
            "moth",
            [
                *("butterfly egg", "caterpillar", "butterfly pupa"),
                *("adult butterfly", "dead butterfly"),
            ],
        ),
    ],
)
def test_animals_age(species: str, shown: list[str]) -> None:
    world = house(0, at="outside")
    animal = world.make(species)
    world.put(animal, world.here())
    seen: list[str] = []
    for _ in range(140):
        text = describe(world, animal).removeprefix("a ")
        if not seen or seen[-1] != text:
            seen.append(text)
        pass_ticks(world, 1)
    assert seen == shown
    assert thing(world, species) == animal


@pytest.mark.parametrize(
    ("surface", "ticks"), [("titanium", 15), ("plastic", 16), ("wood", 18), ("steel", 36)]
)
def test_time_to_the_bottom_of_a_plane(surface: str, ticks: int) -> None:
    world = house(0, at="workshop")
    plane, block = world.make("inclined plane"), world.make("brick")
    world.note[plane] = Slope(45.0, surface)
    world.put(plane, world.here())
    world.put(block, plane)
    name = f"an inclined plane with a {surface} surface, with: a brick"
    assert describe(world, plane).replace("  ", " ") == f"{name} at the top of the plane"
    taken = 0
    while "at the bottom" not in describe(world, plane):
        pass_ticks(world, 1)
        taken += 1
    assert taken == ticks
