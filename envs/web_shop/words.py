"""The words of the generated shops: departments, kinds, attributes, options, sentences.

No noun belongs to two kinds, no option value stands inside another text of an item, and no two
attributes or values of a department resemble each other: so the reward of a generated item is
exactly what its lists say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Department:
    """One part of a shop.

    Attributes:
        shelves: Kinds on each shelf, and their usual price.
        attributes: What its items can be like.
        options: What can be chosen, with all values.
    """

    shelves: Mapping[str, Mapping[str, int]]
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Language:
    """The words of a shop of one size.

    Attributes:
        departments: By name.
        brands: Names of makers.
        series: Names of lines of goods.
        titles: Forms of a title, from brand, series, kind and the first attributes.
        descriptions: Forms of a description, from brand, kind, use and one attribute.
        features: Forms of a feature, from brand, kind and one attribute.
        uses: What goods are for.
    """

    departments: Mapping[str, Department]
    brands: tuple[str, ...]
    series: tuple[str, ...]
    titles: tuple[str, ...]
    descriptions: tuple[str, ...]
    features: tuple[str, ...]
    uses: tuple[str, ...]


_COLOURS = ("ivory", "charcoal", "walnut brown", "forest green", "navy blue", "crimson", "pearl")
_INCHES = ("12 inch", "18 inch", "24 inch", "30 inch", "36 inch")
_LETTERS = ("x-small", "small", "medium", "large", "x-large", "xx-large")
_OUNCES = ("2 ounce", "4 ounce", "8 ounce", "16 ounce", "32 ounce")
_PACKS = ("pack of 1", "pack of 3", "pack of 6", "pack of 12", "pack of 24")

HOME = Department(
    shelves={
        "Lighting": {"floor lamp": 60, "wall sconce": 40, "string lantern": 25, "chandelier": 150},
        "Seating": {"armchair": 180, "bar stool": 75, "storage ottoman": 65, "garden bench": 130},
        "Kitchen": {"chef knife": 35, "mixing bowl": 20, "coffee grinder": 45, "baking tray": 18},
    },
    attributes=(
        "easy assembly",
        "space saving",
        "solid wood",
        "non slip",
        "heavy duty",
        "easy clean",
        "rust resistant",
        "energy efficient",
        "mid century",
        "hand crafted",
        "eco friendly",
        "scratch proof",
    ),
    options={"color": _COLOURS, "size": _INCHES},
)
CLOTHING = Department(
    shelves={
        "Footwear": {"running sneakers": 70, "ankle boots": 90, "sandals": 35, "slippers": 22},
        "Tops": {"crewneck sweater": 45, "denim jacket": 65, "parka": 120, "linen blouse": 32},
        "Accessories": {"leather belt": 24, "knit beanie": 15, "purse": 48, "wrist watch": 110},
    },
    attributes=(
        "machine washable",
        "quick drying",
        "moisture wicking",
        "wind resistant",
        "everyday wear",
        "relaxed fit",
        "organic cotton",
        "faux fur",
        "fade resistant",
        "breathable",
        "reinforced seams",
        "hand stitched",
    ),
    options={"color": _COLOURS, "size": _LETTERS},
)
BEAUTY = Department(
    shelves={
        "Hair Care": {"shampoo": 14, "conditioner": 16, "styling pomade": 19, "curl mousse": 13},
        "Skin Care": {"face moisturizer": 28, "eye serum": 34, "lip balm": 8, "body scrub": 17},
        "Bath": {"bath bombs": 21, "shower gel": 11, "reed diffuser": 30, "soy candle": 23},
    },
    attributes=(
        "cruelty free",
        "paraben free",
        "sulfate free",
        "long lasting",
        "dermatologist tested",
        "plant based",
        "anti aging",
        "deep cleansing",
        "fast absorbing",
        "clinically proven",
        "travel friendly",
        "hypoallergenic",
    ),
    options={
        "scent": ("lavender", "rose petal", "citrus mint", "vanilla bean", "sandalwood", "jasmine"),
        "size": _OUNCES,
    },
)
ELECTRONICS = Department(
    shelves={
        "Audio": {"headphones": 95, "bookshelf speaker": 140, "microphone": 65, "radio": 38},
        "Power": {"phone charger": 18, "laptop battery": 42, "surge protector": 26, "cord": 12},
        "Viewing": {"computer monitor": 210, "projector": 260, "camera": 130, "tripod": 33},
    },
    attributes=(
        "noise cancelling",
        "fast charging",
        "high resolution",
        "water resistant",
        "hands free",
        "plug and play",
        "long range",
        "ultra slim",
        "shock proof",
        "voice control",
        "night mode",
        "low latency",
    ),
    options={
        "color": ("matte black", "silver", "arctic white", "midnight blue", "coral pink"),
        "style": ("standard kit", "bundle with case", "twin set", "family bundle"),
    },
)
GROCERY = Department(
    shelves={
        "Snacks": {"granola bars": 12, "trail mix": 15, "potato chips": 9, "rice crackers": 7},
        "Drinks": {"matcha powder": 24, "espresso beans": 19, "seltzer": 11, "protein shake": 32},
        "Pantry": {"pasta sauce": 10, "almond butter": 16, "maple syrup": 21, "lentil soup": 13},
    },
    attributes=(
        "gluten free",
        "non gmo",
        "low sodium",
        "sugar free",
        "keto friendly",
        "high fiber",
        "certified organic",
        "low carb",
        "dairy free",
        "kosher approved",
        "cold processed",
        "ready to eat",
    ),
    options={
        "flavor": ("honey", "sea salt", "dark chocolate", "chili lime", "peach mango", "cinnamon"),
        "size": _PACKS,
    },
)
FULL = Language(
    departments={
        "Home & Kitchen": HOME,
        "Clothing": CLOTHING,
        "Beauty": BEAUTY,
        "Electronics": ELECTRONICS,
        "Grocery": GROCERY,
    },
    brands=tuple(
        start + end
        for start in ("Nor", "Hal", "Vel", "Bru", "Tam", "Osk", "Fen", "Lor")
        for end in ("vik", "den", "mora", "sted", "quist")
    ),
    series=("Aster", "Delta", "Fjord", "Juno", "Kite", "Lumen", "Orbit", "Prima", "Solace", "Vita"),
    titles=(
        "{brand} {series} {kind}, {first}, {second}",
        "{brand} {kind} {series}, {first}",
        "{first} {kind} by {brand}, {series} line, {second}",
        "{brand} {series} {kind} for {use}, {first}",
    ),
    descriptions=(
        "{brand} made this for {use}. What buyers name most: {extra}.",
        "From the {series} line of {brand}, made for {use}: {extra}.",
        "For {use}, people come back to {brand} and its {kind}. Key point: {extra}.",
    ),
    features=(
        "{attribute}: checked on every piece that leaves the house",
        "{attribute}, as buyers of {brand} expect",
        "{attribute}, year after year",
        "{attribute} by design",
    ),
    uses=("busy mornings", "weekend guests", "daily routine", "holiday gifts", "long evenings"),
)
MICRO = Language(
    departments={
        "Home": Department(
            shelves={"Rooms": {"lamp": 20, "mug": 8, "soap": 5}},
            attributes=("soft", "warm", "strong", "safe", "clean", "calm"),
            options={"color": ("red", "blue", "black"), "size": ("small", "big")},
        ),
        "Wear": Department(
            shelves={"Shop": {"shirt": 15, "bag": 25, "hat": 10}},
            attributes=("soft", "warm", "strong", "safe", "dry", "plain"),
            options={"color": ("red", "blue", "black"), "size": ("small", "big")},
        ),
    },
    brands=("Nor", "Vel", "Tam", "Fen"),
    series=("one", "two", "six"),
    titles=("{brand} {kind} {series} {first}",),
    descriptions=("{kind} that is {extra}.",),
    features=("it is {attribute}",),
    uses=("home",),
)
LANGUAGES: Mapping[str, Language] = {"full": FULL, "micro": MICRO}
