"""WebShop's reward by hand, the token set ratio, and the laws of the generated words."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.web_shop.catalogue import list_shelves, load_shop
from turngym.envs.web_shop.goals import SPLITS, TEMPLATES, draw_price_limit, load_goals
from turngym.envs.web_shop.items import Item
from turngym.envs.web_shop.reward import (
    NO_LIMIT,
    Goal,
    are_alike,
    compute_similarity,
    compute_token_set_ratio,
    count_options_met,
    find_best_choice,
    has_attribute,
    is_right,
    match_goal,
    match_type,
)
from turngym.envs.web_shop.words import LANGUAGES

LAMP = Item(
    id="B1",
    title="Nor floor lamp, solid wood",
    kind="floor lamp",
    nouns=frozenset({"floor", "lamp"}),
    path=("Home", "Lighting", "Floor Lamp"),
    attributes=("solid wood", "energy efficient"),
    options=(("color", ("ivory", "light ivory")), ("size", ("12 inch", "24 inch"))),
    price=45.0,
    description="Made by hand.",
    features=("Dimmable light",),
)
GOAL = Goal(
    text="a lamp",
    item="B1",
    kind="floor lamp",
    nouns=frozenset({"floor", "lamp"}),
    path=LAMP.path,
    attributes=("solid wood", "space saving"),
    options=("ivory", "12 inch"),
    price_limit=50.0,
)


def test_the_reward_by_hand() -> None:
    bought = match_goal(LAMP, (("color", "ivory"), ("size", "24 inch")), GOAL)
    assert bought.score == pytest.approx((1 + 1 + 1) / 5)
    assert (bought.type, bought.attributes, bought.options, bought.price) == (1, 0.5, 0.5, 1)
    dear = match_goal(replace(LAMP, price=50.01), (), GOAL)
    assert dear.score == pytest.approx((1 + 0 + 0) / 5)
    other = match_goal(replace(LAMP, nouns=frozenset({"stool"})), (("color", "ivory"),), GOAL)
    assert (other.score, other.type) == (0, 0)
    plain = match_goal(LAMP, (), replace(GOAL, attributes=("solid wood",), options=()))
    assert (plain.score, plain.options) == (1, 1)


@pytest.mark.parametrize(
    ("nouns", "kind", "path", "worth"),
    [
        ({"floor"}, "floor lamp", ("Home", "Lighting"), 1.0),  # half of the nouns
        ({"n1"}, "other", ("Home", "Lighting"), 1.0),  # a fifth, and two names of the path
        ({"n1"}, "other", ("Home", "Kitchen"), 0.5),  # a fifth and nothing else
        ({"n1"}, "big", ("Home", "Kitchen"), 1.0),  # a fifth and the same kind
        ({"x"}, "big", ("Home", "Lighting"), 0.0),  # no noun
    ],
)
def test_types_by_hand(nouns: set[str], kind: str, path: tuple[str, ...], worth: float) -> None:
    if "n1" in nouns or "x" in nouns:
        goal = replace(GOAL, kind="big", nouns=frozenset(f"n{i}" for i in range(5)))
    else:
        goal = GOAL
    item = replace(LAMP, nouns=frozenset(nouns), kind=kind, path=path)
    assert match_type(item, goal) == worth


def test_a_type_of_few_common_nouns_is_worth_a_tenth() -> None:
    goal = replace(GOAL, nouns=frozenset(f"n{i}" for i in range(11)))
    assert match_type(replace(LAMP, nouns=frozenset({"n3"})), goal) == 0.1
    assert match_type(LAMP, replace(GOAL, nouns=frozenset(), kind="x", path=())) == 0.5


def test_attributes_and_options_by_hand() -> None:
    assert has_attribute(LAMP, "wood, solid")  # the same words
    assert has_attribute(LAMP, "dimmable")  # in a feature
    assert has_attribute(LAMP, "by hand")  # in the description
    assert not has_attribute(LAMP, "heavy duty")
    assert (
        count_options_met(LAMP, (("color", "light ivory"),), ("ivory",)) == 1
    )  # contains the words
    assert (
        count_options_met(LAMP, (("size", "12 inch"),), ("12 inch wide",)) == 0
    )  # sizes must be equal
    assert count_options_met(LAMP, (("color", "nor"),), ("ivory",)) == 1  # stands in the title
    assert count_options_met(LAMP, (("color", "ivory"), ("size", "12 inch")), ("ivory",)) == 1
    assert find_best_choice(LAMP, GOAL) == (("color", "ivory"), ("size", "12 inch"))


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("solid wood", "wood solid", 100),
        ("light blue", "blue", 100),
        ("easy clean", "easy fit", 200 * 4 / 12),  # "easy" to "easy fit"; the whole texts: 1000/18
        ("abc", "xyz", 0),
        ("", "abc", 0),
        ("...", "...", 0),
    ],
)
def test_token_set_ratios_by_hand(one: str, other: str, ratio: float) -> None:
    assert compute_token_set_ratio(one, other) == pytest.approx(ratio)


@settings(max_examples=100, deadline=None)
@given(st.text("abc d", max_size=10), st.text("abc d", max_size=10))
def test_ratios_are_symmetric_and_bounded(one: str, other: str) -> None:
    assert compute_token_set_ratio(one, other) == compute_token_set_ratio(other, one)
    assert 0 <= compute_token_set_ratio(one, other) <= 100
    assert compute_similarity(one, one) == 100
    assert compute_similarity(one, other) == pytest.approx(compute_similarity(other, one))


@pytest.mark.parametrize("size", ["full", "micro"])
def test_words_are_told_apart(size: str) -> None:
    """What the reward of a generated item rests on."""
    language = LANGUAGES[size]
    nouns = [word for shelf in list_shelves(language) for word in shelf.kind.split()]
    assert len(set(nouns)) == len(nouns)
    for department in language.departments.values():
        assert not any(are_alike(a, b) for a, b in combinations(department.attributes, 2))
        values = [value for listed in department.options.values() for value in listed]
        assert len(set(values)) == len(values)
        free = [v for name, listed in department.options.items() if name != "size" for v in listed]
        assert not any(are_alike(a, b) for a in free for b in values if a != b)


@pytest.mark.parametrize("size", ["full", "micro"])
def test_generated_items_have_exactly_what_their_lists_say(size: str) -> None:
    shop = load_shop(size, 0)
    for item in shop.items[:: max(1, len(shop.items) // 300)]:
        attributes = LANGUAGES[size].departments[item.path[0]].attributes
        for attribute in attributes:
            assert has_attribute(item, attribute) is (attribute in item.attributes)
        for attribute in item.attributes:  # and each stands where it can be read
            assert any(attribute in text for text in item.texts)
        for _, values in item.options:
            assert not any(value in text for value in values for text in item.texts)
        assert item.price >= 1


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["full", "micro"]), st.sampled_from(SPLITS), st.integers(0, 10**6))
def test_the_item_of_a_goal_earns_all(size: str, split: str, number: int) -> None:
    goals = load_goals(size, 0)
    goal = goals.task(split, number % (goals.sizes()[split] or 1)).payload
    item = goals.shop[goal.item]
    assert is_right(item, goal)
    assert match_goal(item, find_best_choice(item, goal), goal).score == 1
    assert match_goal(item, (), goal).score == pytest.approx(
        (len(goal.attributes) + 1) / (len(goal.attributes) + len(goal.options) + 1)
    )
    assert all(word in goal.text for word in (goal.kind, *goal.attributes, *goal.options))
    if goal.price_limit < NO_LIMIT:
        assert item.price < goal.price_limit <= item.price + 40
        assert f"{goal.price_limit:.0f}" in goal.text


@pytest.mark.parametrize("size", ["full", "micro"])
def test_splits_share_no_item_and_no_form(size: str) -> None:
    goals = load_goals(size, 0)
    items = {
        split: {goals.task(split, i).payload.item for i in range(n or 0)}
        for split, n in ((s, min(n or 0, 900)) for s, n in goals.sizes().items())
    }
    forms = TEMPLATES[size]
    for one, other in combinations(SPLITS, 2):
        assert not items[one] & items[other]
        assert not set(forms[one]) & set(forms[other])


def test_price_limits() -> None:
    rng = np.random.default_rng(0)
    drawn = {draw_price_limit(20.0, rng) for _ in range(100)}
    assert drawn == {40.0, 50.0, 60.0}  # of 30, 40, 50, 60 the larger of two
    assert draw_price_limit(985.0, rng) == NO_LIMIT
    assert {draw_price_limit(975.5, rng) for _ in range(9)} == {990.0}


def test_another_seed_is_another_shop() -> None:
    one, other = load_shop("micro", 0), load_shop("micro", 1)
    assert [item.title for item in one.items] != [item.title for item in other.items]
    assert len({item.id for item in one.items}) == 120
    assert len(load_shop("full", 0).items) == 3840
