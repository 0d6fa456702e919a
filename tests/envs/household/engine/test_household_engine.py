"""The rules of the game, one by one: names, commands, what they change and answer."""

from __future__ import annotations

import pytest
from helpers.household import make_kitchen, play, sample_games

from turngym.envs.core.errors import DataError
from turngym.envs.household.engine.state import start_game
from turngym.envs.household.engine.step import act, list_commands, write_opening
from turngym.envs.household.engine.wording import FILE, HELP, RELEASE, SHORT
from turngym.envs.household.original.problem import compile_problem


def test_names_count_down_in_the_order_of_ids() -> None:
    game = make_kitchen()
    assert game.room.names == ("fridge 1", "microwave 1", "shelf 2", "shelf 1", "sinkbasin 1")
    assert game.things.names[:2] == ("apple 2", "apple 1")
    assert write_opening(game, RELEASE) == (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
        "around you, you see a fridge 1, a microwave 1, a shelf 2, a shelf 1, and a sinkbasin 1."
        "\n\nYour task is to: x."
    )


def test_views_depend_on_what_opens() -> None:
    _, texts = play(
        make_kitchen(), "go to shelf 2", "go to fridge 1", "open fridge 1", "close fridge 1"
    )
    assert texts == [
        "You arrive at shelf 2. On the shelf 2, you see a apple 2, and a knife 1.",
        "You arrive at fridge 1. The fridge 1 is closed.",
        "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1.",
        "You close the fridge 1.",
    ]
    state = start_game(make_kitchen())
    assert act(state, "go to sinkbasin 1", FILE) == (
        "You arrive at loc 4. On the sinkbasin 1, you see nothing."
    )


@pytest.mark.parametrize(
    "command",
    [
        "",
        "go to shelf 1",  # another receptacle of the same place
        "go to shelf 2",
        "Go to fridge 1",
        "go  to fridge 1",
        "take apple 1 from shelf 2",
        "take desklamp 1 from shelf 1",  # it cannot be picked up
        "examine apple 2",  # not held
        "open shelf 2",
        "put apple 2 in/on shelf 1",
        "slice apple 2 with knife 1",
        "use knife 1",
        "look around",
        "help me",
        "dance",
    ],
)
def test_what_is_not_admissible_changes_nothing(command: str) -> None:
    state, _ = play(make_kitchen(), "go to shelf 2")
    before = state.digest()
    assert act(state, command, RELEASE) is None
    assert state.digest() == before
    assert command not in list_commands(state, RELEASE)


def test_an_apple_is_cleaned_and_the_task_won_on_the_current_state() -> None:
    state, texts = play(
        make_kitchen(),
        "go to shelf 1",
        "take apple 2 from shelf 2",
        "go to sinkbasin 1",
        "clean apple 2 with sinkbasin 1",
        "go to fridge 1",
        "open fridge 1",
        "move apple 2 to fridge 1",
    )
    assert texts[1] == "You pick up the apple 2 from the shelf 2."
    assert texts[3] == "You clean the apple 2 using the sinkbasin 1."
    assert texts[-1] == "You move the apple 2 to the fridge 1."
    assert state.is_won()
    act(state, "take apple 2 from fridge 1", RELEASE)
    assert not state.is_won()


def test_heat_and_cool_undo_each_other_and_cool_alone_is_cold() -> None:
    _, texts = play(
        make_kitchen(),
        "go to shelf 1",
        "take apple 2 from shelf 2",
        "examine apple 2",
        "go to microwave 1",
        "heat apple 2 with microwave 1",  # closed as it is
        "examine apple 2",
        "go to fridge 1",
        "cool apple 2 with fridge 1",
        "examine apple 2",
        "go to sinkbasin 1",
        "clean apple 2 with sinkbasin 1",
        "examine apple 2",
    )
    assert texts[2] == "There's nothing special about apple 2."
    assert texts[5] == "This is a hot apple 2."
    assert texts[8] == "This is a cold apple 2."
    assert texts[11] == "This is a cool and clean apple 2."


def test_slicing_needs_a_note_of_the_location() -> None:
    state, texts = play(
        make_kitchen(),
        "go to shelf 1",
        "take apple 2 from shelf 2",
        "move apple 2 to shelf 2",
        "take knife 1 from shelf 2",
        "slice apple 2 with knife 1",
        "go to fridge 1",
        "slice apple 1 with knife 1",  # noted there at first, inside the closed fridge
    )
    assert texts[4] == "You sliced the apple 2 with the knife 1."
    assert texts[6] == "You sliced the apple 1 with the knife 1."
    assert state.sliced.bit_count() == 2


def test_look_names_what_was_moved_within_a_place() -> None:
    _, texts = play(
        make_kitchen(),
        "look",
        "go to shelf 1",
        "look",
        "take apple 2 from shelf 2",
        "move apple 2 to shelf 1",
        "look",
    )
    assert texts[0] == (
        "You are in the middle of a room. Looking quickly around you, you see nothing."
    )
    assert texts[2] == "You are facing the shelf 2, and shelf 1. Next to it, you see nothing."
    assert texts[5] == "You are facing the shelf 2, and shelf 1. Next to it, you see a apple 2."


def test_holders_show_what_lies_in_them_and_lamps_turn_on() -> None:
    state, texts = play(
        make_kitchen(),
        "go to shelf 1",
        "use desklamp 1",
        "take bowl 1 from shelf 1",
        "examine bowl 1",
        "inventory",
        "help",
    )
    assert texts[1] == "You turn on the desklamp 1."
    assert texts[3] == "This is a normal bowl 1. In it, you see a egg 1."
    assert texts[4:] == ["You are carrying: a bowl 1.", HELP]
    assert act(state, "help", FILE) is None


def test_the_list_is_exactly_what_can_be_done() -> None:
    state, _ = play(make_kitchen(), "go to shelf 1", "take apple 2 from shelf 2")
    assert list_commands(state, RELEASE) == [
        "examine apple 2",
        "examine shelf 1",
        "examine shelf 2",
        "go to fridge 1",
        "go to microwave 1",
        "go to sinkbasin 1",
        "help",
        "inventory",
        "look",
        "move apple 2 to shelf 1",
        "move apple 2 to shelf 2",
        "use desklamp 1",
    ]
    for words in (RELEASE, FILE, SHORT):
        for command in list_commands(state, words):
            assert act(state.fork(), command, words) is not None


def test_states_are_equal_after_a_circle_and_tell_apart_what_matters() -> None:
    state, _ = play(make_kitchen(), "go to shelf 1")
    start = state.identify()
    circle = ("take knife 1 from shelf 2", "go to fridge 1", "go to shelf 2")
    for command in (*circle, "move knife 1 to shelf 2", "inventory", "look"):
        assert act(state, command, RELEASE) is not None
    assert state.identify() == start
    for command in ("take apple 2 from shelf 2", "move apple 2 to shelf 2"):
        act(state, command, RELEASE)
    assert state.identify() != start  # the apple can be sliced here from now on
    act(state, "use desklamp 1", RELEASE)
    act(state, "go to fridge 1", RELEASE)
    closed = state.identify()
    act(state, "open fridge 1", RELEASE)
    assert state.identify() != closed
    act(state, "close fridge 1", RELEASE)
    assert state.identify() == closed


def test_games_with_things_in_several_receptacles_start_so() -> None:
    several = [
        game
        for game in sample_games()
        if sum(mask.bit_count() for mask in game.contents)
        > len({o for mask in game.contents for o in range(99) if mask >> o & 1})
    ]
    assert several


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("(define", "no PDDL problem"),
        ("(:init (receptacleAtLocation a l)) (:goal (and))", "none of the six"),
        (
            "(:init (receptacleType a)) (:goal (objecttype ?o appletype) "
            "(receptacletype ?r shelftype))",
            "do not fit together",
        ),
    ],
)
def test_what_is_no_problem_is_refused(text: str, match: str) -> None:
    with pytest.raises(DataError, match=match):
        compile_problem(text, "", "p")
