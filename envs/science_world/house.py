"""The house: ten places with their furniture; a generator decides pictures, books and wires."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from .house_texts import ARTISTS, BOOKS, PICTURES, SUBJECTS
from .kinds_devices import BULB_COLORS, WIRE_COLORS
from .records import Picture
from .world import Random, World

T = TypeVar("T")

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


class HouseRandom(Random, Protocol):
    """What building the house draws from."""

    def next_boolean(self) -> bool:
        """A fair coin."""
        ...

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """A shuffled copy."""
        ...


def build_house(random: HouseRandom) -> World:
    """The world of the original before a task adds its things, with the agent at its start.

    Args:
        random: Seeded with the variation; it stays in the world and serves play as well.
    """
    world = World(random)
    world.universe = world.make("universe")
    world.sewer = world.make("sewer")
    world.put(world.sewer, world.universe)
    for build in (_kitchen, _living_room, _bedroom, _bathroom, _workshop, _greenhouse):
        build(world, random)
    for build in (_art_studio, _hallway, _outside, _foundry):
        build(world, random)
    shovel = world.make("shovel")
    indoors = random.next_int(2) == 1
    world.put(shovel, world.places["greenhouse" if indoors else "outside"])
    for source, target in DOORS:
        world.join("door", world.places[source], world.places[target])
    add_agent(world, PLACES[random.next_int(len(PLACES))])
    return world


def add_agent(world: World, start: str) -> None:
    """The agent, with its inventory, in a place."""
    world.agent = world.make("agent")
    world.inventory = world.kids[world.agent][0]
    world.put(world.agent, world.places[start])


def add_place(world: World, name: str) -> int:
    """A room, or the outside, of a name."""
    place = world.make("outside" if name == "outside" else "room", name=name)
    world.places[name] = place
    world.put(place, world.universe)
    return place


def add(world: World, place: int, *keys: str) -> list[int]:
    """Make objects in order and put them into ``place``."""
    made = [world.make(key) for key in keys]
    for o in made:
        world.put(o, place)
    return made


def filled(world: World, place: int, cup: str, *contents: str) -> int:
    """A new container in ``place`` with new things in it."""
    (made,) = add(world, place, cup)
    add(world, made, *contents)
    return made


def add_basin(world: World, place: int, key: str) -> int:
    """A sink, bathtub or toilet with its drain to the sewer."""
    basin = world.make(key)
    world.join("drain", basin, world.sewer, opened=True)
    if key == "toilet":
        add(world, basin, "water")
    world.put(basin, place)
    return basin


def _picture(world: World, random: HouseRandom, place: int) -> None:
    name = PICTURES[random.next_int(len(PICTURES))]
    subject = SUBJECTS[random.next_int(len(SUBJECTS))]
    artist = ARTISTS[random.next_int(len(ARTISTS))]
    picture = world.make("picture", name=name)
    world.note[picture] = Picture(subject, artist)
    world.put(picture, place)


def add_book(world: World, container: int, index: int, *, early: bool = False) -> int:
    """The book of an index (0 to 5)."""
    text = BOOKS[index]
    book = world.make("book", name=f"book ({text.title})", early=early)
    world.note[book] = text
    world.put(book, container)
    return book


def _maybe_shelf(world: World, random: HouseRandom, place: int) -> None:
    if not random.next_boolean():
        return
    count = random.next_int(4)
    shelf = world.make("book shelf")
    for _ in range(count):
        index = random.next_int(10)
        while index >= len(BOOKS):
            index = random.next_int(10)
        add_book(world, shelf, index)
    world.put(shelf, place)


def _kitchen(world: World, random: HouseRandom) -> None:
    kitchen = add_place(world, "kitchen")
    add_basin(world, kitchen, "sink")
    _, fridge, _, _ = add(world, kitchen, "stove", "fridge", "freezer", "oven")
    filled(world, kitchen, "cupboard", "metal pot", "tin cup", "ceramic cup")
    (counter,) = add(world, kitchen, "counter")
    filled(world, counter, "bowl", "apple", "banana", "orange", "potato")
    filled(world, fridge, "wood cup", "orange juice")
    add(world, kitchen, "thermometer")
    _picture(world, random, kitchen)
    filled(world, kitchen, "wood table", "glass cup")
    add(world, kitchen, "chair", "lighter")
    filled(world, kitchen, "glass jar", "sodium chloride")
    add(world, kitchen, "soap", "stopwatch")


def _living_room(world: World, random: HouseRandom) -> None:
    room = add_place(world, "living room")
    add(world, room, "couch", "chair")
    add(world, room, ("wood table", "steel table", "desk")[random.next_int(3)])
    _picture(world, random, room)
    _maybe_shelf(world, random, room)


def _bedroom(world: World, random: HouseRandom) -> None:
    room = add_place(world, "bedroom")
    add(world, room, "bed", "wood table", "closet")
    _picture(world, random, room)
    _maybe_shelf(world, random, room)


def _bathroom(world: World, random: HouseRandom) -> None:
    room = add_place(world, "bathroom")
    for key in ("sink", "toilet", "bathtub"):
        add_basin(world, room, key)
    add(world, room, "glass cup")
    _picture(world, random, room)


def _first_three(random: HouseRandom, colors: Sequence[str]) -> list[str]:
    return random.shuffled(colors)[:3]


def _workshop(world: World, random: HouseRandom) -> None:
    room = add_place(world, "workshop")
    (table,) = add(world, room, "wood table")
    add(world, table, *(f"{color} light bulb" for color in _first_three(random, BULB_COLORS)))
    add(world, table, *(f"{color} wire" for color in _first_three(random, WIRE_COLORS)))
    add(world, table, "switch", "battery")
    add(world, room, "ultra low temperature freezer")


def _greenhouse(world: World, random: HouseRandom) -> None:  # noqa: ARG001 - one signature
    room = add_place(world, "greenhouse")
    add(world, room, "jug")
    (hive,) = add(world, room, "bee hive")
    for number in range(5):
        world.put(world.make("bee", name=f"bee {number}"), hive)
    add_basin(world, room, "sink")


def _art_studio(world: World, random: HouseRandom) -> None:
    room = add_place(world, "art studio")
    (table,) = add(world, room, "wood table")
    choices = [world.make(key) for key in ("glass cup", "bowl", "jug")]
    world.put(random.shuffled(choices)[0], table)
    _paints(world, room)
    (cupboard,) = add(world, room, "cupboard")
    _paints(world, cupboard)
    world.name[cupboard] = "large cupboard"


def _paints(world: World, container: int) -> None:
    for paint in [world.make(f"{color} paint") for color in ("red", "blue", "yellow")]:
        cup = world.make("wood cup")
        world.put(paint, cup)
        world.put(cup, container)


def _hallway(world: World, random: HouseRandom) -> None:
    _picture(world, random, add_place(world, "hallway"))


def _outside(world: World, random: HouseRandom) -> None:  # noqa: ARG001 - one signature
    add(world, add_place(world, "outside"), "fire pit", "wood", "axe", "fountain")


def _foundry(world: World, random: HouseRandom) -> None:  # noqa: ARG001 - one signature
    room = add_place(world, "foundry")
    add(world, room, "blast furnace")
    add_basin(world, room, "sink")
    add(world, room, "steel table")
