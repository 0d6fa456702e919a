"""Lists of actions: the original's, and the one of actions that are understood."""

from __future__ import annotations

from collections import Counter

import pytest
from helpers.science_house import MOVES, make_house, say
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.science_world.engine.action_lists import list_legal_actions, list_original_actions
from turngym.envs.science_world.engine.parser import UNKNOWN, parse
from turngym.envs.science_world.engine.step import NOTHING_SAID, digest_house
from turngym.envs.science_world.house.state import HouseState

EASY = ("openDoors", "teleportAction", "noElectricalAction", "selfWateringFlowerPots")


@pytest.fixture
def kitchen() -> HouseState:
    return make_house(0, *EASY, at="kitchen")


def test_counts_of_the_originals_list() -> None:
    # From runs of the original: seed 0, all four simplifications, hallway then kitchen.
    house = make_house(0, *EASY)
    counts = [len(list_original_actions(house))]
    for text in ("go to kitchen", "open cupboard"):
        say(house, text)
        counts.append(len(list_original_actions(house)))
    assert counts == [115, 976, 1035]


def test_the_originals_list_has_what_lies_in_closed_containers(kitchen: HouseState) -> None:
    listed = set(list_original_actions(kitchen))
    for text in (
        "pick up metal pot",
        "look in metal pot",
        "mix metal pot",
        "move banana to metal pot",
        "dunk cup containing orange juice into metal pot",
        "look at sewer",
        "close drain to sewer",
        "teleport to outside",
    ):
        assert text in listed
    assert say(kitchen, "pick up metal pot") == UNKNOWN


def test_listing_changes_nothing(kitchen: HouseState) -> None:
    say(kitchen, "open bee hive", "wait1")
    before = digest_house(kitchen)
    first = list_original_actions(kitchen), list_legal_actions(kitchen)
    assert (list_original_actions(kitchen), list_legal_actions(kitchen)) == first
    assert digest_house(kitchen) == before


def test_an_open_question_lists_numbers(kitchen: HouseState) -> None:
    say(kitchen, "look at drawer", "open cupboard", "look at drawer")
    assert list_original_actions(kitchen) == list_legal_actions(kitchen) == ["0", "1"]


@settings(max_examples=12, deadline=None)
@given(texts=st.lists(st.sampled_from(MOVES), max_size=12), pick=st.integers(0, 10_000))
def test_legal_actions_are_understood_and_not_refused(texts: list[str], pick: int) -> None:
    house = make_house(3, "openDoors", "teleportAction")
    say(house, *texts)
    listed = list_legal_actions(house)
    assert listed == sorted(listed)
    for text in listed[pick % 7 :: 41]:
        said = say(house.fork(), text)
        assert said != UNKNOWN, text
        assert said != NOTHING_SAID, text
        for refusal in (" is not ", "isn't open", "I'm not sure", "You can't", "not clear how"):
            assert refusal not in said or text.startswith(("look", "use", "read")), (text, said)


def test_most_legal_actions_mean_one_thing(kitchen: HouseState) -> None:
    meanings = Counter(len(parse(kitchen, text)) for text in list_legal_actions(kitchen))
    assert meanings[0] == 0
    assert meanings[1] > 0.95 * sum(meanings.values())
