"""Kinds of objects: what all sinks, cups or apples have in common, as read-only records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import UnknownNameError
from .materials import PAINT_COLORS, Material, get_material

OPEN, CLOSABLE, NO_BOX = "open", "closable", "no box"
"""Container kinds: always open; with a lid, closed at first; refuses contents as if closed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What objects of one kind share.

    Attributes:
        key: Name of the kind, unique ("wood table", "water").
        name: Name of a new object ("table").
        material: What it is made of; None for things that have no temperature.
        box: One of :data:`OPEN`, :data:`CLOSABLE`, :data:`NO_BOX`; empty for no container at all.
        words: Further names that it answers to.
        look: Which description it has (a key of ``text.descriptions.LOOKS``).
        refer: Which way of naming it has (a key of ``text.references.REFERS``).
        tick: What it does of itself every tick (a key of ``physics.ticking.TICKS``).
        movable: Whether it can be picked up.
        device: Whether it counts as a device, and which: ``switchable``, ``fixed`` or ``usable``.
        starts_on: A new device is active.
        heats: Temperature that the active device heats its contents to.
        cools: Temperature that the active device cools its contents to.
        poles: ``hidden`` (terminals of plain things), ``wire`` or ``polar`` (anode, cathode).
        role: Electrical role: ``user``, ``generator`` or ``switch``.
        edible: Whether it can be eaten.
        parts: Kinds of the objects that it is made with, in order.
        tags: Groups that it belongs to ("substance", "plant", "place").
        color: For foods that are shown with their colour.
        species: Of living things, the species that their stage names use.
        cycle: Of living things, which life cycle (a key of ``records.CYCLES``).
        plain_name: The descriptive name is the plain one but for fire (not of animals, inclined
            planes, doors and drains).
    """

    key: str
    name: str
    material: Material | None = None
    box: str = ""
    words: tuple[str, ...] = ()
    look: str = "a"
    refer: str = "plain"
    tick: str = ""
    movable: bool = True
    device: str = ""
    starts_on: bool = False
    heats: float | None = None
    cools: float | None = None
    poles: str = "hidden"
    role: str = "user"
    edible: bool = False
    parts: tuple[str, ...] = ()
    tags: frozenset[str] = field(default_factory=frozenset)
    color: str = ""
    species: str = ""
    cycle: str = ""
    plain_name: bool = True

    @property
    def digest(self) -> str:
        """The key stands for the record."""
        return self.key

    def __reduce__(self) -> tuple[object, ...]:
        return get_kind, (self.key,)


_KINDS: dict[str, Kind] = {}


def get_kind(key: str) -> Kind:
    """Return the kind of a name.

    Raises:
        UnknownNameError: There is none.
    """
    if key not in _KINDS:
        raise UnknownNameError("kind of object", key, _KINDS)
    return _KINDS[key]


def list_kinds() -> Iterable[Kind]:
    """Return every kind, in the order of definition."""
    return _KINDS.values()


def define(key: str, made_of: str = "", tags: str = "", **rest: Any) -> None:
    """Add a kind; ``made_of`` names its material, ``tags`` its groups separated by blanks.

    The name of new objects is ``key`` unless ``name`` is given.
    """
    made = get_material(made_of) if made_of else None
    name = str(rest.pop("name", key))
    groups = frozenset(tags.split())
    rest["plain_name"] = groups.isdisjoint(("animal", "plane", "portal"))
    _KINDS[key] = Kind(key, name, made, tags=groups, **rest)


STOVE, OVEN, FURNACE, LIGHTER = 260.0, 540.0, 3000.0, 2200.0
FRIDGE, FREEZER, COLD_FREEZER = 2.0, -18.0, -86.0


def _define_appliances() -> None:
    fixed: dict[str, Any] = {"movable": False, "device": "switchable", "tick": "heater"}
    define("stove", box=OPEN, look="stove", words=("stove",), heats=STOVE, **fixed)
    define("hot plate", box=OPEN, look="stove", words=("hot plate",), heats=STOVE, **fixed)
    define("oven", box=CLOSABLE, look="oven", words=("oven",), heats=OVEN, **fixed)
    words = ("furnace",)
    define("blast furnace", box=CLOSABLE, look="oven", words=words, heats=FURNACE, **fixed)
    fixed |= {"starts_on": True, "tick": "cooler", "box": CLOSABLE, "look": "fridge"}
    define("fridge", words=("fridge",), cools=FRIDGE, **fixed)
    define("freezer", words=("freezer",), cools=FREEZER, **fixed)
    define("ultra low temperature freezer", words=("freezer",), cools=COLD_FREEZER, **fixed)


def _define_basins() -> None:
    fixed: dict[str, Any] = {"movable": False, "device": "switchable", "box": OPEN}
    define("sink", "steel", look="sink", tick="basin", tags="basin", **fixed)
    define("bathtub", "ceramic", look="sink", tick="basin", tags="basin", **fixed)
    define("toilet", "steel", look="toilet", tick="toilet", tags="basin", **fixed)


def _define_tools() -> None:
    tool: dict[str, Any] = {"box": NO_BOX, "device": "usable"}
    define("thermometer", "glass", look="thermometer", **tool)
    define("lighter", "metal", look="a", **tool)
    define("shovel", "steel", look="a", **tool)
    define("axe", "steel", look="an", **tool)
    watch: dict[str, Any] = {"box": NO_BOX, "device": "switchable", "tick": "stopwatch"}
    define("stopwatch", look="stopwatch", words=("watch", "timer"), **watch)


BULB_COLORS = ("red", "green", "blue", "yellow", "orange", "violet")
WIRE_COLORS = ("red", "green", "blue", "yellow", "orange", "black")


def _define_electrical() -> None:
    define("terminal", movable=False)
    part: dict[str, Any] = {"poles": "polar", "device": "fixed", "tick": "consumer"}
    for color in BULB_COLORS:
        words = ("light", "light bulb")
        define(f"{color} light bulb", look="on off", words=words, tags="bulb", **part)
    define("electric motor", look="on off", words=("motor",), **part)
    define("electric buzzer", look="on off", words=("buzzer",), **part)
    switch = part | {"device": "switchable", "role": "switch", "tick": ""}
    define("switch", look="on off", words=("component",), **switch)
    wire: dict[str, Any] = {"poles": "wire", "device": "fixed", "tick": "wire"}
    for color in WIRE_COLORS:
        define(f"{color} wire", "metal", look="wire", words=("component",), tags="wire", **wire)
    source = part | {"role": "generator", "tick": "generator", "words": ("generator",)}
    define("battery", look="battery", starts_on=True, tags="source", **source)
    free = source | {"tick": "outdoor generator"}
    define("solar panel", look="on off", tags="source", **free)
    define("wind generator", look="on off", tags="source", **free)
    source["device"] = "switchable"
    define("gas generator", look="on off", tags="source", **source)
    define("nuclear generator", look="on off", tags="source", **source)


FRUITS = (
    *("apple", "apricot", "avocado", "banana", "cherry"),
    *("grapefruit", "lemon", "orange", "peach", "pear"),
)
UNKNOWN_PLANTS = ("B", "C", "D", "E")

LIFE_SPANS: dict[str, float] = {
    **{"giant tortoise": 150.0, "parrot": 80.0, "elephant": 70.0, "crocodile": 45.0},
    **{"brown bear": 30.0, "turtle": 30.0, "beaver": 16.0, "wolf": 14.0, "chipmunk": 12.0},
    **{"common toad": 10.0, "rabbit": 9.0, "blue jay": 7.0, "frog": 6.0, "hedgehog": 5.0},
    **{"mouse": 4.0, "chameleon": 3.0, "dove": 2.0, "dragonfly": 0.4, "moth": 0.2},
    **{"ant": 0.1, "bee": 0.1, "butterfly": 0.1},
}
"""Years that each species lives; the tasks about life spans go by it."""

_CYCLES = {
    **dict.fromkeys(("giant tortoise", "turtle", "crocodile", "chameleon"), "hatching"),
    **dict.fromkeys(("parrot", "dove", "blue jay"), "hatching"),
    **dict.fromkeys(("common toad", "frog"), "frog"),
    **dict.fromkeys(("butterfly", "moth"), "butterfly"),
}


def _define_animals() -> None:
    words = ("living thing", "organism")
    living: dict[str, Any] = {"look": "animal", "words": words}
    for species in LIFE_SPANS:
        if species == "bee":
            continue
        cycle = _CYCLES.get(species, "mammal")
        rest = {**living, "refer": "animal", "tick": "animal", "species": species}
        define(species, cycle=cycle, tags="animal living", **rest)
    bee = {**living, "look": "bee", "refer": "bee", "tick": "bee", "species": "bee"}
    define("bee", cycle="adult", tags="animal living bee", **bee)


def _define_plants() -> None:
    words = ("living thing", "organism")
    living: dict[str, Any] = {"box": OPEN, "words": words, "edible": True, "cycle": "plant"}
    groups = "plant living tree"
    for fruit in FRUITS:
        shown: dict[str, Any] = {"look": "tree", "refer": "tree", "tick": "tree"}
        name: dict[str, Any] = {"name": "plant", "species": fruit}
        define(f"{fruit} tree", "plant matter", groups, **name, **living, **shown)
    for species in ("pea", *(f"unknown {letter}" for letter in UNKNOWN_PLANTS)):
        shown = {"look": "bred plant", "refer": "bred plant", "tick": "tree"}
        key = f"{species} plant"
        define(key, "plant matter", groups, name=species, species=species, **living, **shown)
    flower: dict[str, Any] = {"look": "flower", "refer": "flower", "tick": "flower"}
    define("flower", "flower matter", "flower", box=OPEN, **flower)
    define("pollen", "pollen matter", "pollen", box=NO_BOX, look="pollen", refer="pollen")


def _define_places() -> None:
    fixed: dict[str, Any] = {"movable": False, "box": OPEN}
    define("universe", look="universe", tags="place", **fixed)
    define("sewer", "steel", box=OPEN, look="cup", tags="sewer")
    define("room", look="room", words=("room",), parts=("air",), tags="place", **fixed)
    outside = ("air", "ground")
    define("outside", look="outside", words=("outside",), parts=outside, tags="place", **fixed)
    define("agent", look="agent", words=("self",), movable=False, parts=("inventory",))
    define("inventory", look="cup", movable=False, box=OPEN, parts=("orange",))
    define("door", look="door", refer="door", movable=False, tags="portal")
    drain: dict[str, Any] = {"look": "drain", "refer": "drain", "movable": False}
    define("drain", tick="drain", tags="portal", **drain)
    define("ground", "soil", box=OPEN, look="the", tick="ground", tags="ground")
    define("hole", box=OPEN, look="cup")
    define("fire pit", "ceramic", box=OPEN, look="cup")
    define("fountain", "ceramic", box=OPEN, look="cup", tick="watering")


def _define_furniture() -> None:
    for key, name, made_of in (
        ("wood table", "table", "wood"),
        ("steel table", "table", "steel"),
        ("desk", "desk", "wood"),
        ("counter", "counter", "wood"),
    ):
        words = (name, f"{made_of} {name}")
        parts = ("drawer",) if name != "table" else ()
        shape: dict[str, Any] = {"box": OPEN, "look": "table", "parts": parts}
        define(key, made_of, name=name, words=words, **shape)
    shut: dict[str, Any] = {"box": CLOSABLE, "look": "cupboard"}
    words = ("cupboard", "wood cupboard")
    define("cupboard", "wood", words=words, parts=("drawer",), **shut)
    define("closet", "wood", words=("closet", "wood closet"), **shut)
    define("bee hive", "wood", words=("bee hive", "hive", "beehive"), **shut)
    define("drawer", "wood", words=("drawer", "wood table"), box=CLOSABLE, look="drawer")
    for key, made_of, parts in (
        ("chair", "wood", ()),
        ("couch", "cloth", ("pillow",)),
        ("bed", "wood", ("mattress",)),
        ("mattress", "cloth", ()),
    ):
        words = ("sittable", f"{made_of} sittable")
        define(key, made_of, words=words, box=OPEN, look="seat", parts=parts)
    define("pillow", "cloth", words=("object",), look="pillow")


def _define_cups() -> None:
    for key, made_of, word in (
        ("metal pot", "steel", "pot"),
        ("glass cup", "glass", "cup"),
        ("plastic cup", "plastic", "cup"),
        ("wood cup", "wood", "cup"),
        ("tin cup", "tin", "cup"),
        ("paper cup", "paper", "cup"),
        ("ceramic cup", "ceramic", "cup"),
        ("bowl", "wood", "wood bowl"),
        ("jug", "plastic", "jug"),
        ("book shelf", "wood", "shelf"),
    ):
        words = ("bowl", word) if key == "bowl" else (word, key)
        define(key, made_of, words=words, box=OPEN, look="cup", refer="cup")
    jar: dict[str, Any] = {"box": CLOSABLE, "look": "cup", "refer": "cup"}
    define("glass jar", "glass", words=("jar", "glass jar"), **jar)
    pot: dict[str, Any] = {"box": OPEN, "look": "cup", "refer": "cup"}
    pot["words"] = ("pot", "flower pot")
    define("flower pot", "ceramic", tick="pot", **pot)
    define("self watering flower pot", "ceramic", tick="watering", **pot)
    define("answer box", "ceramic", box=OPEN, look="cup", tags="answer")
    define("container", words=("container",), box=CLOSABLE, look="cup")


SUBSTANCES = (
    *("air", "water", "lead", "tin", "mercury", "gallium", "caesium", "soap", "rubber", "wood"),
    *("ash", "sodium", "sodium chloride", "salt water", "soapy water", "sodium bicarbonate"),
    *("acetic acid", "sodium acetate", "rust", "sugar"),
)


def _define_substances() -> None:
    plain: dict[str, Any] = {"look": "substance", "words": ("substance",), "tags": "substance"}
    for key in SUBSTANCES:
        define(key, key, **plain)
    define("ice", "water", name="water", **plain)
    # The original gives sugar water the constants of sugar, so it is a solid.
    define("sugar water", "sugar", **plain)
    for key, made_of in (("wood block", "wood"), ("steel block", "steel"), ("iron block", "iron")):
        define(key, made_of, look="a", words=("block",), tags="substance")
    define("brick", "brick", look="a", words=("substance",), tags="substance")
    for color in PAINT_COLORS:
        define(f"{color} paint", f"{color} paint", look="bare", words=("paint",), tags="paint")
    define("soil", "soil", look="bare", words=("soil",))
    for key in ("unknown electrical substance", "unknown thermal substance"):
        name = "unknown substance"
        define(key, "metal", name=name, words=("unknown substance",), look="name")


def _define_food() -> None:
    for key in ("banana", "cherry", "lemon", "peach", "pear", "potato"):
        define(key, look="a", edible=True, tags="food")
    for key in ("avocado", "orange", "grapefruit"):
        define(key, look="an", edible=True, tags="food")
    for key, color, made_of in (
        ("apple", "red", ""),
        ("onion", "red", ""),
        ("apricot", "orange", "plant matter"),
    ):
        words = (key, f"{color} {key}")
        colored: dict[str, Any] = {"look": "colored", "refer": "colored", "color": color}
        define(key, made_of, words=words, edible=True, tags="food", **colored)
    define("garlic", look="bare", edible=True, tags="food")
    for key, made_of in (
        ("orange juice", "orange juice"),
        ("apple juice", "apple juice"),
        ("chocolate", "chocolate"),
        ("marshmallow", "marshmallow"),
        ("smores", "marshmallow"),
        ("ice cream", "ice cream"),
    ):
        define(key, made_of, look="bare", words=(key,), edible=True, tags="food")
    for key, made_of, color in (
        ("flour", "flour", "white"),
        ("dough", "flour", "white"),
        ("bread", "flour", "white"),
        ("jam", "jam", "red"),
    ):
        # Jam is shown with its colour; flour, dough and bread only answer to it.
        look = "colored bare" if key == "jam" else "kind bare"
        rest: dict[str, Any] = {"look": look, "refer": "colored", "color": color}
        define(key, made_of, words=(key,), edible=True, tags="food", **rest)
    for key in ("peanut", "cashew", "almond", "mixed nuts"):
        define(key, "nut", look="kind bare", words=(key,), edible=True, tags="food")
    for filling in ("peanut butter", "jam", "banana", *_DOUBLE):
        key = f"{filling} sandwich"
        define(key, "flour", look="kind bare", words=("sandwich",), edible=True, tags="food")
    define("fruit salad", "plant matter", look="kind bare", edible=True, tags="food")


_DOUBLE = ("peanut butter with jam", "peanut butter with banana")


def _define_documents() -> None:
    flat: dict[str, Any] = {"box": NO_BOX}
    define("picture", "paper", look="picture", refer="picture", **flat)
    define("paper", "paper", look="paper", refer="document", tags="document", **flat)
    for color in ("red", "green", "blue", "orange", "yellow", "violet"):
        key = f"{color} paper"
        define(key, "paper", look="A", refer="document", tags="document", **flat)
    define("recipe", "paper", look="recipe", refer="document", tags="document", **flat)
    define("book", "paper", look="book", refer="book", tags="document", **flat)


def _define_oddments() -> None:
    define("metal fork", "steel", look="A", words=("steel fork",))
    define("plastic fork", "plastic", look="A", words=("plastic fork",))
    define("paper clip", "steel", look="A", words=("steel paper clip",))
    define("aluminum foil", "aluminum", look="A")
    plane: dict[str, Any] = {"look": "plane", "refer": "plane", "tick": "plane"}
    define("inclined plane", "steel", box=OPEN, tags="plane", **plane)


for _define_group in (
    *(
        _define_appliances,
        _define_basins,
        _define_tools,
        _define_electrical,
        _define_animals,
        _define_plants,
    ),
    *(
        _define_places,
        _define_furniture,
        _define_cups,
        _define_substances,
        _define_food,
        _define_documents,
        _define_oddments,
    ),
):
    _define_group()
