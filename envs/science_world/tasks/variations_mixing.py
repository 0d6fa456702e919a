"""Variations of the tasks on chemistry and paint (6-x)."""

from __future__ import annotations

from .params import Mix, Paint

_RECIPES = (
    (
        ("salt water", ("sodium chloride", "water")),
        ("soapy water", ("soap", "water")),
        ("mixed nuts", ("peanut", "almond", "cashew")),
        ("sodium acetate", ("acetic acid", "sodium bicarbonate")),
        ("banana sandwich", ("banana", "bread")),
        ("blue paper", ("paper", "blue paint")),
        ("peanut butter sandwich", ("peanut", "bread")),
        ("peanut butter with jam sandwich", ("peanut", "jam", "bread")),
    ),
    (
        ("smores", ("chocolate", "marshmallow")),
        ("dough", ("flour", "water")),
        ("fruit salad", ("apple", "orange", "banana")),
        ("jam sandwich", ("jam", "bread")),
    ),
    (
        ("sugar water", ("sugar", "water")),
        ("peanut butter with banana sandwich", ("peanut", "banana", "bread")),
        ("rust", ("iron block", "water")),
        ("red paper", ("paper", "red paint")),
    ),
)
_COLORS = (
    ("green", ("blue", "yellow"), "green-blue", ("green", "blue")),
    ("green", ("blue", "yellow"), "yellow-green", ("green", "yellow")),
    ("orange", ("red", "yellow"), "red-orange", ("orange", "red")),
    ("orange", ("red", "yellow"), "yellow-orange", ("orange", "yellow")),
    ("violet", ("red", "blue"), "violet-red", ("violet", "red")),
    ("violet", ("red", "blue"), "blue-violet", ("violet", "blue")),
)
EXTRA_PLACES = ("paint cupboard", "paint closet", "desk")


def mixtures() -> list[Mix]:
    """6-1: the recipes of each split, in the kitchen and then in the workshop."""
    return [
        Mix(result, ingredients, place)
        for recipes in _RECIPES
        for place in ("kitchen", "workshop")
        for result, ingredients in recipes
    ]


def paints() -> list[Paint]:
    """6-2 and 6-3: six rows of colours, two rooms, three places for the cups."""
    return [
        Paint(
            f"{secondary} paint",
            tuple(f"{color} paint" for color in of_primary),
            f"{tertiary} paint",
            tuple(f"{color} paint" for color in of_secondary),
            place,
            extra,
        )
        for secondary, of_primary, tertiary, of_secondary in _COLORS
        for place in ("art studio", "workshop")
        for extra in EXTRA_PLACES
    ]
