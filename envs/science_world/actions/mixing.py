"""Mixing the contents of a container: what becomes of which."""

from __future__ import annotations

from typing import NamedTuple

from ..house.state import TERMINALS, HouseState, get_terminal
from ..text.names import write_full_name, write_terminal_name
from .facts import get_name, is_bare


class Rule(NamedTuple):
    """Ingredients (name, or name and state), the product's kind and what is said."""

    ingredients: tuple[tuple[str, str], ...]
    product: str
    says: str


def _rule(ingredients: str, product: str, says: str) -> Rule:
    """Make a rule; ``+`` joins its ingredients, a colon precedes a state that matters."""
    parts = [part.strip().partition(":") for part in ingredients.split("+")]
    return Rule(tuple((name, state) for name, _, state in parts), product, says)


def _plain(ingredients: str, words: str, product: str) -> Rule:
    return _rule(ingredients, product, f"{words} mix to produce {product}.")


WATER = "water:liquid"
RULES: tuple[Rule, ...] = (
    _plain(f"{WATER} + sodium chloride:solid", "Sodium chloride and water", "salt water"),
    _plain(f"{WATER} + soap", "Soap and water", "soapy water"),
    _plain(f"{WATER} + sugar", "Sugar and water", "sugar water"),
    _plain(f"{WATER} + flour", "Flour and water", "dough"),
    _plain("chocolate + marshmallow", "Chocolate and marshmallow", "smores"),
    _plain(f"{WATER} + iron block", "Iron block and water", "rust"),
    _plain(
        "sodium bicarbonate + acetic acid", "Sodium bicarbonate and acetic acid", "sodium acetate"
    ),
    # All sandwiches are announced as of peanuts.
    *(
        _rule(
            f"bread + {filling}",
            f"{named} sandwich",
            f"Bread and peanuts mix to produce a {named} sandwich.",
        )
        for filling, named in (("peanut", "peanut butter"), ("jam", "jam"), ("banana", "banana"))
    ),
    # The message names blue paint whatever the colour.
    *(
        _rule(
            f"paper + {color} paint:liquid",
            f"{color} paper",
            f"Paper and blue paint mix to produce {color} paper.",
        )
        for color in ("red", "green", "blue", "orange", "yellow", "violet")
    ),
    *(
        _rule(
            f"{one} paint:liquid + {two} paint:liquid",
            f"{product} paint",
            f"{said} paint mix to produce {shown} paint.",
        )
        for one, two, product, said, shown in (
            ("red", "blue", "violet", "Red and blue", "violet"),
            ("blue", "yellow", "green", "Blue and yellow", "green"),
            ("yellow", "red", "orange", "Yellow and red", "orange"),
            ("yellow", "orange", "yellow-orange", "Yellow and orange", "yellow-orange"),
            ("orange", "red", "red-orange", "Red and orange", "red-orange"),
            ("red", "violet", "violet-red", "Violet and red", "violet-red"),
            ("violet", "blue", "blue-violet", "Blue and violet", "blue-violet"),
            ("blue", "green", "green-blue", "Blue and green", "blue green"),
            ("green", "yellow", "yellow-green", "Green and yellow", "yellow-green"),
        )
    ),
    _plain("peanut + almond + cashew", "Peanuts, almonds, and cashews", "mixed nuts"),
    _plain("apple + orange + banana", "Apples, oranges, and bananas", "fruit salad"),
    *(
        _rule(
            f"bread + peanut + {more}",
            f"peanut butter with {more} sandwich",
            f"Bread and peanuts and jam mix to produce a peanut butter with {more} sandwich.",
        )
        for more in ("jam", "banana")
    ),
)
# The original looks for "green-yellow", so yellow-green paint is not among them.
KNOWN_PAINTS = tuple(
    f"{color} paint"
    for color in (
        *("red", "blue", "yellow", "violet", "green", "orange", "yellow-orange", "red-orange"),
        *("violet-red", "blue-violet", "green-blue", "green-yellow", "brown"),
    )
)


def _find(house: HouseState, container: int, name: str, state: str) -> int | None:
    for kid in house.kids[container]:
        material = house.material[kid]
        in_state = material is not None and house.state[kid] == state
        if house.name[kid] == name and (not state or in_state):
            return kid
        if material is not None and material.substance == name and in_state:
            return kid
    return None


def refuse_mix(house: HouseState, o: int) -> str:
    """Return why nothing can be mixed in it; empty when something can.

    The original asks for two things at least, hidden terminals included, and has no words.
    """
    few = o >= TERMINALS or len(house.kids[o]) + 2 * (not is_bare(house, o)) <= 1
    return "nothing to mix" if few else ""


def mix(house: HouseState, o: int) -> str:
    """Mix what is in a container; the products replace the ingredients."""
    if refuse_mix(house, o):
        return ""
    names = [write_full_name(house, kid) for kid in house.kids[o]]
    if house.kind[o].poles != "hidden":
        names += [write_terminal_name(house, get_terminal(o, side)) for side in (0, 1)]
    if not names:
        return "That container is empty, so there are no items to mix."
    if len(names) == 1:
        return f"There is only one thing ({names[0]})"
    return _react(house, o, len(names)) or _nothing_new(house, o)


def _nothing_new(house: HouseState, o: int) -> str:
    name = write_full_name(house, o) if o < TERMINALS else get_name(house, o)
    return f"Mixing the contents of the {name} does not appear to produce anything new."


def _react(house: HouseState, o: int, count: int) -> str:
    for rule in RULES:
        if len(rule.ingredients) == count:
            found = [_find(house, o, name, state) for name, state in rule.ingredients]
            present = [kid for kid in found if kid is not None]
            if len(present) == count:
                return _become(house, o, present, rule)
    paints = [_find(house, o, paint, "liquid") for paint in KNOWN_PAINTS]
    present = [kid for kid in paints if kid is not None]
    if count in (2, 3, 4) and len(present) == count:
        brown = Rule((), "brown paint", "The paints mix to produce brown paint.")
        return _become(house, o, present, brown)
    return ""


def _become(house: HouseState, container: int, used: list[int], rule: Rule) -> str:
    for kid in used:
        house.delete(kid)
    house.put(house.make(rule.product), container)
    return rule.says
