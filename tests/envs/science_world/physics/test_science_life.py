"""Plants, flowers, bees, genes and animals."""

from __future__ import annotations

import pytest
from helpers.science_house import make_house, say, thing

from turngym.envs.science_world.house.java_random import JavaRandom
from turngym.envs.science_world.house.state import NONE, HouseState
from turngym.envs.science_world.objects.records import TRAITS, Bloom, Slope, show_trait
from turngym.envs.science_world.physics.animals import tick_bee
from turngym.envs.science_world.physics.ticking import wake
from turngym.envs.science_world.text.descriptions import describe


def planted(
    *simple: str, plant: str = "apple tree", soil: bool = True
) -> tuple[HouseState, int, int]:
    """A greenhouse with one plant in a flower pot: the house, the plant, the pot."""
    house = make_house(0, *simple, at="greenhouse")
    pot, made = house.make("flower pot"), house.make(plant)
    house.put(pot, house.get_agent_place())
    if soil:
        house.put(house.make("soil"), pot)
    house.put(made, pot)
    return house, made, pot


def pass_ticks(house: HouseState, count: int) -> None:
    """Let time pass, one tick an action."""
    for _ in range(count):
        say(house, "look at air")


def test_a_watered_seed_becomes_a_tree_that_flowers() -> None:
    house, tree, _ = planted("selfWateringFlowerPots")
    assert house.get_stage(tree) == "seed"
    stages = []
    for _ in range(40):
        pass_ticks(house, 1)
        stages.append(house.get_stage(tree))
    first = {stage: stages.index(stage) + 1 for stage in ("seedling", "adult", "reproducing")}
    assert first == {"seedling": 10, "adult": 20, "reproducing": 25}
    assert say(house, "look at apple tree") == (
        "a apple tree in the reproducing stage. On the apple tree you see: a flower."
    )


def test_names_follow_a_tick_after_the_stage() -> None:
    house, tree, _ = planted("selfWateringFlowerPots")
    assert house.name[tree] == "plant"
    pass_ticks(house, 10)
    assert (house.get_stage(tree), house.name[tree]) == ("seedling", "apple seed")
    assert say(house, "eat apple seed") == "The apple seed was delicious."


@pytest.mark.parametrize("soil", [True, False])
def test_a_dry_or_bare_seed_waits(soil: bool) -> None:
    house, tree, pot = planted(soil=soil)
    if not soil:
        house.put(house.make("water"), pot)
    pass_ticks(house, 30)
    assert house.get_stage(tree) == "seed"


def test_drought_makes_a_seedling_unwell_and_then_kills() -> None:
    house, tree, _ = planted()
    house.set_stage(tree, "seedling")
    pass_ticks(house, 10)
    assert describe(house, tree) == "a apple tree in the seedling stage (that looks unwell)"
    assert say(house, "look at sick apple tree").endswith("(that looks unwell)")
    pass_ticks(house, 10)
    assert house.get_stage(tree) == "dead"
    assert describe(house, tree) == "a dead apple tree"


def test_cold_kills_a_plant() -> None:
    house, tree, pot = planted("selfWateringFlowerPots")
    house.set_stage(tree, "adult")
    for _ in range(5):
        house.heat[tree] = house.heat[pot] = -20.0
        pass_ticks(house, 1)
    assert house.get_stage(tree) in ("dead", "reproducing")  # the fifth tick also ends its youth
    for _ in range(5):
        house.heat[tree] = -20.0
        pass_ticks(house, 1)
    assert house.get_stage(tree) == "dead"


def test_a_pollinated_flower_becomes_fruit() -> None:
    house, tree, _ = planted("selfWateringFlowerPots")
    other = house.make("apple tree")
    house.set_stage(tree, "reproducing")
    flower, grain = house.make("flower"), house.make("pollen")
    house.life[flower] = Bloom(tree)
    house.note[grain] = other
    house.put(flower, tree)
    house.put(grain, flower)
    pass_ticks(house, 1)
    assert describe(house, flower) == "a wilting flower"
    pass_ticks(house, 5)
    assert house.parent[flower] == NONE
    assert [house.name[kid] for kid in house.kids[tree]][-1] == "apple"


def test_own_pollen_and_other_species_do_not_pollinate() -> None:
    house, tree, _ = planted("selfWateringFlowerPots")
    pear = house.make("pear tree")
    house.set_stage(tree, "reproducing")
    flower, grain = house.make("flower"), house.make("pollen")
    house.life[flower] = Bloom(tree)
    house.note[grain] = pear
    house.put(flower, tree)
    house.put(grain, flower)
    pass_ticks(house, 10)
    assert house.life[flower].step == 0
    assert say(house, "look at flower").startswith("a flower. Inside the flower is: pollen, pollen")


GENES = (("plant height", 0, 1), ("seed shape", 1, 1), ("seed color", 0, 0), ("flower color", 1, 0))


def test_traits_are_seen_by_stage() -> None:
    house, pea, _ = planted(plant="pea plant")
    house.note[pea] = GENES
    assert describe(house, pea) == "a wrinkly green  pea seed"
    house.set_stage(pea, "adult")
    assert describe(house, pea) == "a pea plant in the adult stage with a tall height"
    flower = house.make("flower")
    house.life[flower] = Bloom(pea)
    assert describe(house, flower) == "a purple flower"
    assert show_trait("pea", GENES, "seed shape") == "wrinkly"
    assert show_trait("pea", GENES, "leaf size") == ""
    assert all(len(traits) == 4 for traits in TRAITS.values())


@pytest.mark.parametrize("species", ["pea", "unknown B"])
def test_a_seed_has_an_allele_of_each_parent(species: str) -> None:
    house, mother, _ = planted("selfWateringFlowerPots", plant=f"{species} plant")
    father = house.make(f"{species} plant")
    traits = list(TRAITS[species])
    house.note[mother] = tuple((trait, 0, 0) for trait in traits)
    house.note[father] = tuple((trait, 1, 1) for trait in traits)
    house.set_stage(mother, "reproducing")
    flower = house.make("flower")
    house.life[flower] = Bloom(mother, 5, house.get_genes(father))
    house.put(flower, mother)
    pass_ticks(house, 1)
    seeds = [kid for kid in house.kids[mother] if "plant" in house.kind[kid].tags]
    assert [house.note[seed] for seed in seeds] == [tuple((trait, 0, 1) for trait in traits)]


def test_bees_stay_in_a_closed_hive_and_leave_an_open_one() -> None:
    closed, opened = make_house(0, at="greenhouse"), make_house(0, at="greenhouse")
    hive = thing(opened, "bee hive")
    say(closed, "wait", "wait")
    say(opened, "open bee hive", "wait", "wait")
    assert len(closed.kids[thing(closed, "bee hive")]) == 5
    assert len(opened.kids[hive]) < 5
    assert say(opened, "look around").count("adult bee") >= 1


def test_a_bee_leaves_what_the_agent_carries() -> None:
    house = make_house(0, at="greenhouse")
    jar, bee = house.make("ceramic cup"), house.make("bee")
    house.put(jar, house.inventory)
    house.put(bee, jar)
    house.random = JavaRandom(7)
    for _ in range(20):
        tick_bee(house, bee, wake)
    assert house.parent[bee] == house.get_agent_place()


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
    house = make_house(0, at="outside")
    animal = house.make(species)
    house.put(animal, house.get_agent_place())
    seen: list[str] = []
    for _ in range(140):
        text = describe(house, animal).removeprefix("a ")
        if not seen or seen[-1] != text:
            seen.append(text)
        pass_ticks(house, 1)
    assert seen == shown
    assert thing(house, species) == animal


@pytest.mark.parametrize(
    ("surface", "ticks"), [("titanium", 15), ("plastic", 16), ("wood", 18), ("steel", 36)]
)
def test_time_to_the_bottom_of_a_plane(surface: str, ticks: int) -> None:
    house = make_house(0, at="workshop")
    plane, block = house.make("inclined plane"), house.make("brick")
    house.note[plane] = Slope(45.0, surface)
    house.put(plane, house.get_agent_place())
    house.put(block, plane)
    name = f"an inclined plane with a {surface} surface, with: a brick"
    assert describe(house, plane).replace("  ", " ") == f"{name} at the top of the plane"
    taken = 0
    while "at the bottom" not in describe(house, plane):
        pass_ticks(house, 1)
        taken += 1
    assert taken == ticks
