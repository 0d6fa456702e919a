"""Kinds without a life or a switch: places, furniture, cups, substances, food, documents."""

from __future__ import annotations

from typing import Any

from .kinds import CLOSABLE, NO_BOX, OPEN, define
from .materials import PAINT_COLORS


def _places() -> None:
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


def _furniture() -> None:
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


def _cups() -> None:
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


def _substances() -> None:
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


def _food() -> None:
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


def _documents() -> None:
    flat: dict[str, Any] = {"box": NO_BOX}
    define("picture", "paper", look="picture", refer="picture", **flat)
    define("paper", "paper", look="paper", refer="document", tags="document", **flat)
    for color in ("red", "green", "blue", "orange", "yellow", "violet"):
        key = f"{color} paper"
        define(key, "paper", look="A", refer="document", tags="document", **flat)
    define("recipe", "paper", look="recipe", refer="document", tags="document", **flat)
    define("book", "paper", look="book", refer="book", tags="document", **flat)


def _oddments() -> None:
    define("metal fork", "steel", look="A", words=("steel fork",))
    define("plastic fork", "plastic", look="A", words=("plastic fork",))
    define("paper clip", "steel", look="A", words=("steel paper clip",))
    define("aluminum foil", "aluminum", look="A")
    plane: dict[str, Any] = {"look": "plane", "refer": "plane", "tick": "plane"}
    define("inclined plane", "steel", box=OPEN, tags="plane", **plane)


_places()
_furniture()
_cups()
_substances()
_food()
_documents()
_oddments()
