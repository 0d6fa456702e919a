"""The parser: forms of actions, names, questions, and what is not understood."""

from __future__ import annotations

import pytest
from helpers.science_house import make_house, say, thing

from turngym.envs.science_world.engine.parser import parse
from turngym.envs.science_world.engine.step import NOTHING_SAID, list_possible_actions
from turngym.envs.science_world.house.state import HouseState

UNKNOWN = "No known action matches that input."


@pytest.fixture
def kitchen() -> HouseState:
    return make_house(0, "openDoors", "teleportAction", at="kitchen")


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("open cupboard", "open door"),
        ("close door to bathroom", "close door"),
        ("go bathroom", "move through door"),
        ("walk through bathroom door", "move through door"),
        ("move into bathroom", "move through door"),
        ("teleport foundry", "teleport to location"),
        ("look", "look around"),
        ("examine the stove", "look at"),
        ("look on table", "look at"),
        ("look in kitchen", "look in"),
        ("turn on stove", "activate"),
        ("turn off fridge", "deactivate"),
        ("consume red apple", "eat"),
        ("put thermometer on table", "move object"),
        ("move soap into inventory", "move object"),
        ("pour bowl to sink", "pour object"),
        ("focus timer", "focus on"),
        ("reset task", "reset task"),
        ("use lighter with soap", "use object"),
        ("read painting", "read"),
        ("flush sink", "flush"),
        ("connect stove into sink", "connect electrically"),
        ("connect terminal 1 on stove to sink terminal 2", "connect electrically"),
        ("disconnect sink", "disconnect electrically"),
        ("wait1", "wait1"),
        ("wait", "wait10"),
        ("inventory", "view inventory"),
        ("take substance called soap", None),
        ("get soap in kitchen", "pick up"),
        ("drop orange in inventory", "put down"),
        ("stir bowl", "mix"),
        ("dunk glass cup in sink", "dunk object"),
        ("  LOOK   At   A Table ", "look at"),
        ("look at painting of farm", None),
        ("go", None),
        ("", None),
        ("use thermometer", None),
        ("open", None),
        ("pick up metal pot", None),  # it is in the closed cupboard
        ("look at orange juice", None),  # in the closed fridge
        ("look at sewer", None),
        ("go to workshop", None),
    ],
)
def test_forms(kitchen: HouseState, text: str, action: str | None) -> None:
    matches = parse(kitchen, text)
    assert [match.action.name for match in matches] == ([] if action is None else [action])


def test_teleport_reaches_everything_and_other_actions_do_not(kitchen: HouseState) -> None:
    assert say(kitchen, "teleport to fountain") == "Its not clear how to go to fountain."
    assert say(kitchen, "look at fountain") == UNKNOWN
    assert say(make_house(), "teleport to kitchen") == UNKNOWN


def test_templates_follow_the_simplifications() -> None:
    plain, easy = make_house(), make_house(0, "teleportAction", "noElectricalAction")
    assert set(list_possible_actions(plain)) - set(list_possible_actions(easy)) == {
        "connect OBJ to OBJ",
        "disconnect OBJ",
    }
    assert set(list_possible_actions(easy)) - set(list_possible_actions(plain)) == {"teleport OBJ"}


def test_a_question_and_its_answers(kitchen: HouseState) -> None:
    asked = say(kitchen, "eat orange")
    assert asked == (
        "Ambiguous request: Please enter the number for the action you intended (or blank to "
        "cancel):\n0:\teat orange (in bowl, in counter, in kitchen)\n"
        "1:\teat orange (in inventory, in agent, in kitchen)\n"
    )
    ticks = kitchen.ticks
    assert say(kitchen, "1") == "The orange was delicious."
    assert kitchen.kids[kitchen.inventory] == ()
    assert kitchen.ticks == ticks + 1


@pytest.mark.parametrize("answer", ["", "9", "-1", "look around", "1 ", "one", "1" * 5000])
def test_anything_else_cancels_a_question_and_costs_a_tick(
    kitchen: HouseState, answer: str
) -> None:
    say(kitchen, "eat orange")
    ticks = kitchen.ticks
    assert say(kitchen, answer) == NOTHING_SAID
    assert kitchen.ticks == ticks + 1
    assert say(kitchen, "1") == UNKNOWN


def test_doors_and_drains_are_asked_about_as_doors() -> None:
    house = make_house(at="bathroom")
    assert say(house, "close drain").splitlines()[1:] == [
        "0:\tclose door between sink and sewer",
        "1:\tclose door between toilet and sewer",
        "2:\tclose door between bathtub and sewer",
    ]
    house = make_house(at="kitchen")
    assert say(house, "go through door").splitlines()[1:] == [
        "0:\tgo door between kitchen and hallway",
        "1:\tgo door between bathroom and kitchen",
        "2:\tgo door between kitchen and outside",
    ]


def test_what_fire_did_shows_in_a_question(kitchen: HouseState) -> None:
    say(kitchen, "open cupboard", "open fridge", "use lighter on wood cup")
    assert "\t" + "look at wood cup (on fire) (in fridge, in kitchen)\n" in say(
        kitchen, "look at cup"
    )


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("look around", 0),
        ("inventory", 0),
        ("task", 0),
        ("help", 0),
        ("objects", 0),
        ("hello", 0),
        ("wait1", 2),
        ("wait", 11),
        ("look at stove", 1),
        ("eat stove", 1),
    ],
)
def test_what_takes_time(kitchen: HouseState, text: str, ticks: int) -> None:
    say(kitchen, text)
    assert kitchen.ticks == ticks


def test_names_of_cups_tell_their_contents(kitchen: HouseState) -> None:
    bowl = thing(kitchen, "bowl")
    for text in (
        "look at bowl containing apple and banana and orange and potato",
        "look at wood bowl on counter",
        "look at bowl in wood counter",
    ):
        assert [match.objects for match in parse(kitchen, text)] == [(bowl,)]


def test_objects_lists_one_name_each_in_order() -> None:
    house = make_house(0, "openDoors")
    assert say(house, "objects").split("\n\t")[1:] == [
        *("agent", "air", "art studio", "art studio door", "bedroom", "bedroom door"),
        *("door to greenhouse", "door to kitchen", "door to living room", "door to workshop"),
        *("greenhouse", "hallway", "kitchen", "living room", "picture", "workshop"),
    ]
