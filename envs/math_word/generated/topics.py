"""The stories of whole things: collections, shops, ages, factories."""

from __future__ import annotations

from .links import (
    Link,
    Topic,
    add,
    add_percent,
    add_product,
    divide,
    divide_rounding_up,
    find_difference,
    find_remainder,
    multiply,
    subtract,
    subtract_percent,
)

_THINGS = (
    "marbles", "stamps", "shells", "cards", "buttons", "coins", "stickers", "beads", "pebbles",
    "badges",
)  # fmt: skip
_GOODS = (
    "pens", "books", "cups", "plates", "lamps", "chairs", "brushes", "candles", "towels", "baskets",
)  # fmt: skip
_PIECES = (
    "bolts", "bricks", "bottles", "tiles", "springs", "bulbs", "nails", "wheels", "hinges", "jars",
)  # fmt: skip

COLLECTION = Topic(
    name="collection",
    things=_THINGS,
    micro=True,
    starts=(
        Link(says=("{who} has {n} {thing}.",), draws={"n": "count"}, micro=True),
        Link(
            says=(
                "{who} has {n} boxes with {m} {thing} each.",
                "{who} owns {n} jars, and in every jar are {m} {thing}.",
            ),
            does=("{n} * {m}",),
            draws={"n": "few", "m": "count"},
        ),
    ),
    links=(
        add("{who} finds {n} more.", "{who} gets {n} more {thing}.", micro=True),
        subtract("{who} loses {n} of the {thing}.", "{who} gives {n} {thing} away.", micro=True),
        divide("{who} sorts the {thing} into {n} equal piles and keeps one pile."),
        add_product(
            "A friend brings {n} bags with {m} {thing} each for {who}.",
            "Then {who} buys {n} packets of {m} {thing}.",
        ),
        subtract("{other} has {n} {thing} fewer than {who}.", moves=True),
        multiply("{other} has {n} times as many {thing} as {who}.", moves=True),
        add("{who} has {n} {thing} fewer than {other}.", trap="fewer", moves=True, micro=True),
        subtract("{who} has {n} {thing} more than {other}.", trap="fewer", moves=True),
        divide("{who} has {n} times as many {thing} as {other}.", trap="fewer", moves=True),
        add("{other} has {n} {thing}.", ask="How many {thing} do {who} and {other} have together?"),
        find_remainder(
            "{who} fills as many bags of {n} {thing} as possible.",
            ask="How many {thing} are left over?",
        ),
        divide_rounding_up(
            "{who} puts all {thing} into bags that hold {n} each.",
            ask="How many bags does {who} need?",
        ),
    ),
    asks=("How many {thing} does {who} have?",),
    extras=(
        "{who} has a sister of {n}.",
        "The oldest of the {thing} was found {n} years ago.",
        "The shelf in the room has {n} boards.",
    ),
)

SHOP = Topic(
    name="shop",
    things=_GOODS,
    micro=True,
    whole=False,
    starts=(
        Link(
            says=("{who} buys a lamp for {n} dollars.",),
            draws={"n": "count"},
            micro=True,
        ),
        Link(
            says=("{who} buys {n} {thing} for {m} dollars each.",),
            does=("{n} * {m}",),
            draws={"n": "few", "m": "count"},
            micro=True,
        ),
    ),
    links=(
        add(
            "{who} also buys a bag for {n} dollars.", "Delivery costs {n} dollars more.", micro=True
        ),
        add_product("{who} also takes {n} spoons for {m} dollars each."),
        subtract("A coupon takes {n} dollars off the bill.", micro=True),
        subtract_percent("Today the shop takes {p} % off the whole bill."),
        add_percent("A tax of {p} % is added to the bill."),
        Link(
            says=("{who} also buys a pencil for {c} cents.",),
            does=("{c} / 100", "{x} + {y}"),
            draws={"c": "cents"},
            trap="units",
        ),
        add(
            "The bill of {who} is {n} dollars lower than the bill of {other}.",
            trap="fewer",
            moves=True,
        ),
        multiply("The bill of {other} is {n} times as high as the bill of {who}.", moves=True),
        find_difference(
            "{who} pays with {n} dollars.",
            ask="How many dollars of change does {who} get back?",
            micro=True,
        ),
        divide(
            "{n} friends share the bill equally.", ask="How many dollars does each of them pay?"
        ),
        Link(
            does=("{x} * 100",),
            asks=("How many cents does {who} pay?",),
            trap="units",
        ),
    ),
    asks=("How many dollars does {who} pay?",),
    extras=(
        "The shop opened {n} years ago.",
        "There are {n} people in the queue.",
        "The shop is {n} minutes away from home.",
    ),
)

AGES = Topic(
    name="ages",
    things=("years",),
    micro=True,
    cap=110,
    starts=(Link(says=("{who} is {n} years old.",), draws={"n": "count"}, micro=True),),
    links=(
        subtract("{other} is {n} years younger than {who}.", moves=True, micro=True),
        add("{other} is {n} years older than {who}.", moves=True, micro=True),
        add("{who} is {n} years younger than {other}.", trap="fewer", moves=True, micro=True),
        subtract("{who} is {n} years older than {other}.", trap="fewer", moves=True),
        multiply("{other} is {n} times as old as {who}.", moves=True),
        divide("{who} is {n} times as old as {other}.", trap="fewer", moves=True),
        add("{other} is {n} years old.", ask="How many years old are {who} and {other} together?"),
        add(ask="How old will {who} be in {n} years?", micro=True),
        subtract(ask="How old was {who} {n} years ago?"),
        Link(
            says=("Today is the birthday of {who}.",),
            does=("{x} * 12",),
            asks=("How many months old is {who}?",),
            trap="units",
        ),
    ),
    asks=("How old is {who}?",),
    extras=(
        "They live in house number {n}.",
        "{who} goes to bed at {n} minutes past eight.",
        "The family has had a dog for {n} months.",
    ),
)

FACTORY = Topic(
    name="factory",
    things=_PIECES,
    starts=(
        Link(
            says=("A machine makes {n} {thing} per hour. It runs for {m} hours.",),
            does=("{n} * {m}",),
            draws={"n": "count", "m": "hours"},
        ),
        Link(
            says=("A machine makes {n} {thing} per minute. It runs for {m} hours.",),
            does=("{m} * 60", "{n} * {y}"),
            draws={"n": "few", "m": "hours"},
            trap="units",
        ),
        Link(says=("A factory has {n} {thing} in store.",), draws={"n": "big"}),
    ),
    links=(
        Link(
            says=("A second machine makes {n} {thing} per hour. It runs for {m} hours.",),
            does=("{n} * {m}", "{x} + {y}"),
            draws={"n": "count", "m": "hours"},
        ),
        subtract_percent("{p} % of the {thing} are broken and are thrown away."),
        subtract("{n} of the {thing} break.", "{n} {thing} are sold."),
        add("{n} {thing} from yesterday are added."),
        Link(
            says=("{n} dozen {thing} are bought in addition.",),
            does=("{n} * 12", "{x} + {y}"),
            draws={"n": "few"},
            trap="units",
        ),
        multiply("In a week the factory has {n} times as many {thing}."),
        divide(
            "The {thing} are shared equally among {n} shops.",
            ask="How many {thing} does each shop get?",
        ),
        Link(
            says=("The {thing} are packed into boxes of {n}; only full boxes are sent.",),
            does=("{x} - {r}", "{y} / {n}"),
            draws={"n": "group", "r": "rest"},
            asks=("How many boxes are sent?",),
            trap="remainder",
        ),
        find_remainder(
            "The {thing} are packed into boxes of {n} until no more box can be filled.",
            ask="How many {thing} are left over?",
        ),
        divide_rounding_up(
            "All {thing} are carried off by trucks that hold {n} each.",
            ask="How many trucks are needed?",
        ),
    ),
    asks=("How many {thing} are there then?",),
    extras=(
        "The factory employs {n} people.",
        "A worker has been there for {n} years.",
        "The hall is {n} metres long.",
    ),
)
