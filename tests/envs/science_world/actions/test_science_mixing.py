"""Mixing: every rule, what it says, and what does not react."""

from __future__ import annotations

import pytest
from helpers.science_house import make_house, say

from turngym.envs.science_world.actions.mixing import RULES, Rule
from turngym.envs.science_world.house.state import HouseState
from turngym.envs.science_world.objects.kinds import list_kinds

KEYS = {k.key for k in list_kinds()}


def mixed(*keys: str) -> tuple[str, list[str]]:
    """Mix new things of some kinds in a bowl: what is said, and what is in it then."""
    house = make_house(0, at="hallway")
    bowl = house.make("bowl")
    house.put(bowl, house.get_agent_place())
    for key in keys:
        house.put(settled(house, key), bowl)
    said = say(house, "mix bowl")
    return said, [house.name[kid] for kid in house.kids[bowl]]


def settled(house: HouseState, key: str) -> int:
    made = house.make(key)
    material = house.material[made]
    if material is not None:
        house.state[made] = material.state_at(house.heat[made])
    return made


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.product)
def test_every_rule_gives_its_product_and_says_so(rule: Rule) -> None:
    ingredients, product, says = rule
    keys = [name for name, _ in ingredients]
    assert KEYS.issuperset(keys)
    assert KEYS.issuperset((product,))
    said, left = mixed(*keys)
    assert said == says
    assert left == [product]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (("water", "sodium chloride"), "Sodium chloride and water mix to produce salt water."),
        (("red paint", "blue paint"), "Red and blue paint mix to produce violet paint."),
        (("blue paint", "green paint"), "Blue and green paint mix to produce blue green paint."),
        (("paper", "red paint"), "Paper and blue paint mix to produce red paper."),
        (("bread", "jam"), "Bread and peanuts mix to produce a jam sandwich."),
        (("red paint", "green paint"), "The paints mix to produce brown paint."),
        (("red paint", "green paint", "blue paint"), "The paints mix to produce brown paint."),
        (
            ("red paint", "green paint", "blue paint", "violet paint"),
            "The paints mix to produce brown paint.",
        ),
    ],
)
def test_words_of_some_mixes(keys: tuple[str, ...], said: str) -> None:
    assert mixed(*keys)[0] == said


@pytest.mark.parametrize(
    "keys",
    [
        ("water", "apple"),
        ("water", "sodium chloride", "apple"),
        ("red paint", "yellow-green paint"),  # the original does not know it
        ("red paint", "green paint", "blue paint", "violet paint", "yellow paint"),
        ("red paint", "red paint"),
    ],
)
def test_nothing_new(keys: tuple[str, ...]) -> None:
    said, left = mixed(*keys)
    assert said == "Mixing the contents of the bowl does not appear to produce anything new."
    assert len(left) == len(keys)


def test_ice_does_not_dissolve_salt() -> None:
    house = make_house(0, at="hallway")
    bowl, ice, salt = (settled(house, key) for key in ("bowl", "ice", "sodium chloride"))
    house.put(bowl, house.get_agent_place())
    house.put(ice, bowl)
    house.put(salt, bowl)
    assert "anything new" in say(house, "mix bowl")
