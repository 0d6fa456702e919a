"""The house: ten places with their furniture; a generator decides pictures, books and wires.

The micro house has three places with little in them, for short texts and small models.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..objects.kinds import BULB_COLORS, WIRE_COLORS
from ..objects.records import Picture
from .java_random import JavaRandom
from .state import HouseState
from .texts import ARTISTS, BOOKS, PICTURES, SUBJECTS

PLACES = (
    *("art studio", "bathroom", "bedroom", "foundry", "greenhouse", "hallway", "kitchen"),
    *("living room", "outside", "workshop"),
)
"""Names of the places, sorted: the order in which the agent's start is drawn."""
DOORS = (
    ("kitchen", "hallway"),
    ("living room", "hallway"),
    ("bedroom", "hallway"),
    ("bathroom", "kitchen"),
    ("workshop", "hallway"),
    ("greenhouse", "hallway"),
    ("art studio", "hallway"),
    ("kitchen", "outside"),
    ("greenhouse", "outside"),
    ("foundry", "outside"),
)


MICRO_PLACES = ("bathroom", "kitchen", "outside")
MICRO_DOORS = (("bathroom", "kitchen"), ("kitchen", "outside"))


def build_house(random: JavaRandom) -> HouseState:
    """Return the house of the original before a task adds its things, with the agent in it.

    Args:
        random: Seeded with the variation; it stays in the house and serves play as well.
    """
    house = _start_house(random)
    for build in (
        _build_kitchen,
        _build_living_room,
        _build_bedroom,
        _build_bathroom,
        _build_workshop,
        _build_greenhouse,
    ):
        build(house)
    for build in (_build_art_studio, _build_hallway, _build_outside, _build_foundry):
        build(house)
    shovel = house.make("shovel")
    indoors = random.next_int(2) == 1
    house.put(shovel, house.places["greenhouse" if indoors else "outside"])
    return _finish_house(house, DOORS, PLACES)


def build_micro_house(random: JavaRandom) -> HouseState:
    """Return kitchen, bathroom and outside, with the agent in one of them."""
    house = _start_house(random)
    kitchen = add_place(house, "kitchen")
    add_basin(house, kitchen, "sink")
    add_filled(house, kitchen, "wood table", "bowl")
    add_filled(house, kitchen, "glass jar", "sodium chloride")
    bathroom = add_place(house, "bathroom")
    add_basin(house, bathroom, "toilet")
    add(house, bathroom, "glass cup")
    add(house, add_place(house, "outside"), "fountain")
    return _finish_house(house, MICRO_DOORS, MICRO_PLACES)


def _start_house(random: JavaRandom) -> HouseState:
    house = HouseState(random)
    house.universe = house.make("universe")
    house.sewer = house.make("sewer")
    house.put(house.sewer, house.universe)
    return house


def _finish_house(
    house: HouseState, doors: Sequence[tuple[str, str]], starts: Sequence[str]
) -> HouseState:
    """Add the doors, and the agent with its inventory in a place drawn from ``starts``."""
    for source, target in doors:
        house.join("door", house.places[source], house.places[target])
    start = house.random.pick(starts)
    house.agent = house.make("agent")
    house.inventory = house.kids[house.agent][0]
    house.put(house.agent, house.places[start])
    return house


def add_place(house: HouseState, name: str) -> int:
    """Add a room, or the outside, of a name."""
    place = house.make("outside" if name == "outside" else "room", name=name)
    house.places[name] = place
    house.put(place, house.universe)
    return place


def add(house: HouseState, place: int, *keys: str) -> list[int]:
    """Make objects in order and put them into ``place``."""
    made = [house.make(key) for key in keys]
    for o in made:
        house.put(o, place)
    return made


def add_filled(house: HouseState, place: int, cup: str, *contents: str) -> int:
    """Make a new container in ``place`` with new things in it."""
    (made,) = add(house, place, cup)
    add(house, made, *contents)
    return made


def add_basin(house: HouseState, place: int, key: str) -> int:
    """Add a sink, bathtub or toilet with its drain to the sewer."""
    basin = house.make(key)
    house.join("drain", basin, house.sewer, opened=True)
    if key == "toilet":
        add(house, basin, "water")
    house.put(basin, place)
    return basin


def _add_picture(house: HouseState, place: int) -> None:
    name, subject, artist = (house.random.pick(texts) for texts in (PICTURES, SUBJECTS, ARTISTS))
    picture = house.make("picture", name=name)
    house.note[picture] = Picture(subject, artist)
    house.put(picture, place)


def add_book(house: HouseState, container: int, index: int, *, early: bool = False) -> int:
    """Add the book of an index (0 to 5)."""
    text = BOOKS[index]
    book = house.make("book", name=f"book ({text.title})", early=early)
    house.note[book] = text
    house.put(book, container)
    return book


def _maybe_add_shelf(house: HouseState, place: int) -> None:
    random = house.random
    if not random.next_boolean():
        return
    count = random.next_int(4)
    shelf = house.make("book shelf")
    for _ in range(count):
        index = random.next_int(10)
        while index >= len(BOOKS):
            index = random.next_int(10)
        add_book(house, shelf, index)
    house.put(shelf, place)


def _build_kitchen(house: HouseState) -> None:
    kitchen = add_place(house, "kitchen")
    add_basin(house, kitchen, "sink")
    _, fridge, _, _ = add(house, kitchen, "stove", "fridge", "freezer", "oven")
    add_filled(house, kitchen, "cupboard", "metal pot", "tin cup", "ceramic cup")
    (counter,) = add(house, kitchen, "counter")
    add_filled(house, counter, "bowl", "apple", "banana", "orange", "potato")
    add_filled(house, fridge, "wood cup", "orange juice")
    add(house, kitchen, "thermometer")
    _add_picture(house, kitchen)
    add_filled(house, kitchen, "wood table", "glass cup")
    add(house, kitchen, "chair", "lighter")
    add_filled(house, kitchen, "glass jar", "sodium chloride")
    add(house, kitchen, "soap", "stopwatch")


def _build_living_room(house: HouseState) -> None:
    room = add_place(house, "living room")
    add(house, room, "couch", "chair")
    add(house, room, house.random.pick(("wood table", "steel table", "desk")))
    _add_picture(house, room)
    _maybe_add_shelf(house, room)


def _build_bedroom(house: HouseState) -> None:
    room = add_place(house, "bedroom")
    add(house, room, "bed", "wood table", "closet")
    _add_picture(house, room)
    _maybe_add_shelf(house, room)


def _build_bathroom(house: HouseState) -> None:
    room = add_place(house, "bathroom")
    for key in ("sink", "toilet", "bathtub"):
        add_basin(house, room, key)
    add(house, room, "glass cup")
    _add_picture(house, room)


def _build_workshop(house: HouseState) -> None:
    room = add_place(house, "workshop")
    (table,) = add(house, room, "wood table")
    add(house, table, *(f"{color} light bulb" for color in house.random.shuffled(BULB_COLORS)[:3]))
    add(house, table, *(f"{color} wire" for color in house.random.shuffled(WIRE_COLORS)[:3]))
    add(house, table, "switch", "battery")
    add(house, room, "ultra low temperature freezer")


def _build_greenhouse(house: HouseState) -> None:
    room = add_place(house, "greenhouse")
    add(house, room, "jug")
    (hive,) = add(house, room, "bee hive")
    for number in range(5):
        house.put(house.make("bee", name=f"bee {number}"), hive)
    add_basin(house, room, "sink")


def _build_art_studio(house: HouseState) -> None:
    room = add_place(house, "art studio")
    (table,) = add(house, room, "wood table")
    choices = [house.make(key) for key in ("glass cup", "bowl", "jug")]
    house.put(house.random.shuffled(choices)[0], table)
    _add_paints(house, room)
    (cupboard,) = add(house, room, "cupboard")
    _add_paints(house, cupboard)
    house.name[cupboard] = "large cupboard"


def _add_paints(house: HouseState, container: int) -> None:
    for paint in [house.make(f"{color} paint") for color in ("red", "blue", "yellow")]:
        cup = house.make("wood cup")
        house.put(paint, cup)
        house.put(cup, container)


def _build_hallway(house: HouseState) -> None:
    _add_picture(house, add_place(house, "hallway"))


def _build_outside(house: HouseState) -> None:
    add(house, add_place(house, "outside"), "fire pit", "wood", "axe", "fountain")


def _build_foundry(house: HouseState) -> None:
    room = add_place(house, "foundry")
    add(house, room, "blast furnace")
    add_basin(house, room, "sink")
    add(house, room, "steel table")
