"""Replies of the actions: what is refused and why, and what succeeds, in the original's words."""

from __future__ import annotations

import pytest
from helpers.science_house import make_house, say, thing

from turngym.envs.science_world.engine.step import NOTHING_SAID
from turngym.envs.science_world.house.state import NONE, HouseState
from turngym.envs.science_world.objects.records import Text

LIQUID = (
    "You can't pick up a liquid directly. Try pouring it from one container to another, or "
    "dunking empty containers into containers filled with the liquid."
)


@pytest.fixture
def kitchen() -> HouseState:
    house = make_house(0, "teleportAction", at="kitchen")
    say(house, "open cupboard", "open fridge")
    return house


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("open cupboard", "The cupboard is already open."),
        ("close oven", "The oven is already closed."),
        ("open table", "The table is not openable."),
        ("close soap", "The soap is not closeable."),
        ("open lighter", "The lighter is not openable."),
        ("open oven", "The oven is now open."),
        ("open door to bathroom", "The door is now open."),
        ("go to bathroom", "The door is not open."),
        ("go to kitchen", "It's not clear how to get there from here."),
        ("go soap", "Its not clear how to go to/through a soap."),
        ("go sink drain", "Its not clear how to go to/through a drain."),
        ("teleport to universe", "Its not clear how to go to universe."),
        ("teleport to foundry", "You teleport to the foundry."),
        ("look in glass jar", "The glass jar isn't open, so you can't see inside."),
        ("look in lighter", "The lighter isn't open, so you can't see inside."),
        ("look in soap", "It's not clear how to look inside of that."),
        ("look in stove", "Inside the stove is: \n\tnothing"),
        ("look at drawer in cupboard", "a drawer. The drawer is closed."),
        ("look at oven", "a oven, which is turned off. The oven door is closed."),
        ("look at sodium chloride in jar", "No known action matches that input."),
        ("look at painting", "a painting of abstract shapes. The artist is listed as Alexandra."),
        ("activate table", "The table is not something that can be activated."),
        ("deactivate table", "The table is not something that can be activated."),
        ("activate stove", "The stove is now activated."),
        ("deactivate oven", "The oven is already deactivated."),
        ("deactivate freezer", "The freezer is now deactivated."),
        ("eat stove", "The stove is not edible."),
        ("eat red apple", "The apple was delicious."),
        ("pick up stove", "The stove is not moveable."),
        ("pick up orange juice", LIQUID),
        ("pick up air", "You can't pick up a gas directly."),
        (
            "move soap to thermometer",
            "That can't be moved there, because the thermometer isn't open.",
        ),
        ("move soap to apple", "That can't be moved there."),
        ("move soap to soap", "You can't move something into itself."),
        ("move soap to oven", "That can't be moved there, because the oven isn't open."),
        ("move soap to bathroom", "You move the soap to the bathroom."),
        ("pick up thermometer", "You move the thermometer to the inventory."),
        ("put down orange in inventory", "You move the orange to the kitchen."),
        ("pour sink into table", "The sink is not moveable."),
        ("pour glass jar into table", "The glass jar can't be poured out, because it's not open."),
        ("pour air into table", "The kitchen the air is in is not movable."),
        ("pour soap into table", "The kitchen the soap is in is not movable."),
        ("pour apple into table", "You pour the apple into the table."),
        ("pour metal pot into soap", "That can't be moved there, because it's not a container."),
        ("pour metal pot into oven", "That can't be moved there, because the oven isn't open."),
        ("pour metal pot into metal pot", "You can't move something into itself."),
        ("pour bowl into sink", "You pour the contents of the bowl into the sink."),
        ("dunk metal pot into metal pot", "You can't dunk something into itself."),
        ("dunk sink into metal pot", "The sink is not moveable."),
        ("dunk glass jar into wood cup", "The glass jar is not open."),
        ("dunk soap into wood cup", "The soap is not a container."),
        ("dunk metal pot into tin cup", "The tin cup does not contain any liquids to dunk into."),
        (
            "dunk metal pot into wood cup",
            "You dunk the metal pot in the wood cup, moving the liquids (orange juice) to the "
            "metal pot.",
        ),
        ("focus on drawer in counter", "You focus on the drawer."),
        ("use soap on stove", "I'm not sure how to use the soap."),
        ("use thermometer on soap", "the thermometer measures a temperature of 10 degrees celsius"),
        (
            "use thermometer on stove",
            "That thing doesn't appear to have a temperature that the thermometer can read.",
        ),
        ("use lighter on stove", "It's not clear how to use those items together."),
        ("use lighter on metal pot", "The lighter heats up the metal pot a small amount."),
        ("use lighter on wood cup", "The wood cup catches fire."),
        ("read soap", "It's not clear how to read that."),
        ("flush sink", "It's not clear how to flush that."),
        ("mix metal pot", "That container is empty, so there are no items to mix."),
        ("mix wood cup", "There is only one thing (orange juice)"),
        ("mix bowl", "Mixing the contents of the bowl does not appear to produce anything new."),
        ("mix terminal 1 on stove", NOTHING_SAID.strip()),
        ("wait", "You decide to wait for 10 iterations."),
        ("reset task", "You reset the goal progress and focus."),
        ("task", "Task description:\nBoil water."),
    ],
)
def test_replies_in_the_kitchen(kitchen: HouseState, text: str, reply: str) -> None:
    assert say(kitchen, text).strip() == reply


def test_moving_something_wired_cuts_it() -> None:
    house = make_house(0, at="workshop")
    say(house, "connect green light bulb anode to black wire terminal 1")
    assert say(house, "pick up green light bulb") == (
        "(disconnecting green light bulb)You move the green light bulb to the inventory."
    )
    assert not house.wires


def test_the_toilet_flushes_for_five_ticks() -> None:
    house = make_house(0, at="bathroom")
    assert say(house, "wait1", "flush toilet") == "The toilet is now flushing."
    assert say(house, "flush toilet") == "That is already flushing."
    assert say(house, "look at toilet") == (
        "a toilet, which is flushing. In the toilet is: A drain, which is open."
    )
    assert say(house, "wait1", "wait1", "look at toilet") == (
        "a toilet. In the toilet is: A drain, which is closed, a substance called water."
    )


def test_documents() -> None:
    house = make_house(0, at="hallway")
    notes = {"recipe": Text("instructions to make tea", "To make tea, wait."), "paper": None}
    for key, note in notes.items():
        made = house.make(key)
        house.note[made] = note
        house.put(made, house.get_agent_place())
    assert say(house, "read instructions to make tea") == "The recipe reads:\nTo make tea, wait."
    assert say(house, "look at recipe") == "A recipe titled instructions to make tea"
    assert say(house, "read paper") == "The paper does not have any text on it."
    assert say(house, "look at paper") == "A blank paper"


def test_axe_and_shovel() -> None:
    house = make_house(4, "teleportAction", at="outside")
    tree = house.make("apple tree")
    house.set_stage(tree, "adult")
    for o in (tree, thing(house, "shovel"), thing(house, "stove")):
        house.put(o, house.get_agent_place())
    say(house, "wait1")
    assert say(house, "use axe on apple tree") == "You chop down the apple tree, creating wood."
    assert house.parent[tree] == NONE
    assert say(house, "use axe on stove") == "You hit the stove with the axe, causing it to break."
    assert say(house, "activate stove") == (
        "The stove appears broken, and can't be activated or deactivated."
    )
    assert say(house, "use axe on air") == "I'm not sure how to use those two things together."
    dug = "You dig a hole in the ground, and place the soil nearby."
    assert say(house, "use shovel on ground") == dug
    assert "\ta hole (containing nothing)\n" in say(house, "look around")


def test_ground_passes_things_on_and_holds_nothing() -> None:
    house = make_house(0, at="outside")
    assert say(house, "move orange to ground") == "You move the orange to the ground."
    assert house.parent[thing(house, "orange", "outside")] == house.get_agent_place()
    assert say(house, "look in ground") == "There is nothing in the ground."
    assert say(house, "pour ground into fountain") == (
        "The ground is empty, so there's nothing to pour."
    )
