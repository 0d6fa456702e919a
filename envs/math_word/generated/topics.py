"""The stories of whole things: collections, shops, ages, factories."""

from __future__ import annotations

from .links import Link, Topic

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
        Link(
            says=("{who} finds {n} more.", "{who} gets {n} more {thing}."),
            does=("{x} + {n}",),
            draws={"n": "count"},
            micro=True,
        ),
        Link(
            says=("{who} loses {n} of the {thing}.", "{who} gives {n} {thing} away."),
            does=("{x} - {n}",),
            draws={"n": "part"},
            micro=True,
        ),
        Link(
            says=("{who} sorts the {thing} into {n} equal piles and keeps one pile.",),
            does=("{x} / {n}",),
            draws={"n": "divisor"},
        ),
        Link(
            says=(
                "A friend brings {n} bags with {m} {thing} each for {who}.",
                "Then {who} buys {n} packets of {m} {thing}.",
            ),
            does=("{n} * {m}", "{x} + {y}"),
            draws={"n": "few", "m": "count"},
        ),
        Link(
            says=("{other} has {n} {thing} fewer than {who}.",),
            does=("{x} - {n}",),
            draws={"n": "part"},
            moves=True,
        ),
        Link(
            says=("{other} has {n} times as many {thing} as {who}.",),
            does=("{x} * {n}",),
            draws={"n": "few"},
            moves=True,
        ),
        Link(
            says=("{who} has {n} {thing} fewer than {other}.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
            trap="fewer",
            moves=True,
            micro=True,
        ),
        Link(
            says=("{who} has {n} {thing} more than {other}.",),
            does=("{x} - {n}",),
            draws={"n": "part"},
            trap="fewer",
            moves=True,
        ),
        Link(
            says=("{who} has {n} times as many {thing} as {other}.",),
            does=("{x} / {n}",),
            draws={"n": "divisor"},
            trap="fewer",
            moves=True,
        ),
        Link(
            says=("{other} has {n} {thing}.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
            asks=("How many {thing} do {who} and {other} have together?",),
        ),
        Link(
            says=("{who} fills as many bags of {n} {thing} as possible.",),
            does=("{n} * {q}", "{x} - {y}"),
            draws={"n": "group", "q": "groups"},
            asks=("How many {thing} are left over?",),
            trap="remainder",
        ),
        Link(
            says=("{who} puts all {thing} into bags that hold {n} each.",),
            does=("{x} - {r}", "{y} / {n}", "{y} + 1"),
            draws={"n": "group", "r": "rest"},
            asks=("How many bags does {who} need?",),
            trap="remainder",
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
        Link(
            says=("{who} also buys a bag for {n} dollars.", "Delivery costs {n} dollars more."),
            does=("{x} + {n}",),
            draws={"n": "count"},
            micro=True,
        ),
        Link(
            says=("{who} also takes {n} spoons for {m} dollars each.",),
            does=("{n} * {m}", "{x} + {y}"),
            draws={"n": "few", "m": "count"},
        ),
        Link(
            says=("A coupon takes {n} dollars off the bill.",),
            does=("{x} - {n}",),
            draws={"n": "part"},
            micro=True,
        ),
        Link(
            says=("Today the shop takes {p} % off the whole bill.",),
            does=("{x} * {p} / 100", "{x} - {y}"),
            draws={"p": "percent"},
        ),
        Link(
            says=("A tax of {p} % is added to the bill.",),
            does=("{x} * {p} / 100", "{x} + {y}"),
            draws={"p": "percent"},
        ),
        Link(
            says=("{who} also buys a pencil for {c} cents.",),
            does=("{c} / 100", "{x} + {y}"),
            draws={"c": "cents"},
            trap="units",
        ),
        Link(
            says=("The bill of {who} is {n} dollars lower than the bill of {other}.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
            trap="fewer",
            moves=True,
        ),
        Link(
            says=("The bill of {other} is {n} times as high as the bill of {who}.",),
            does=("{x} * {n}",),
            draws={"n": "few"},
            moves=True,
        ),
        Link(
            says=("{who} pays with {n} dollars.",),
            does=("{n} - {x}",),
            draws={"n": "over"},
            asks=("How many dollars of change does {who} get back?",),
            micro=True,
        ),
        Link(
            says=("{n} friends share the bill equally.",),
            does=("{x} / {n}",),
            draws={"n": "divisor"},
            asks=("How many dollars does each of them pay?",),
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
        Link(
            says=("{other} is {n} years younger than {who}.",),
            does=("{x} - {n}",),
            draws={"n": "part"},
            moves=True,
            micro=True,
        ),
        Link(
            says=("{other} is {n} years older than {who}.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
            moves=True,
            micro=True,
        ),
        Link(
            says=("{who} is {n} years younger than {other}.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
            trap="fewer",
            moves=True,
            micro=True,
        ),
        Link(
            says=("{who} is {n} years older than {other}.",),
            does=("{x} - {n}",),
            draws={"n": "part"},
            trap="fewer",
            moves=True,
        ),
        Link(
            says=("{other} is {n} times as old as {who}.",),
            does=("{x} * {n}",),
            draws={"n": "few"},
            moves=True,
        ),
        Link(
            says=("{who} is {n} times as old as {other}.",),
            does=("{x} / {n}",),
            draws={"n": "divisor"},
            trap="fewer",
            moves=True,
        ),
        Link(
            says=("{other} is {n} years old.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
            asks=("How many years old are {who} and {other} together?",),
        ),
        Link(
            does=("{x} + {n}",),
            draws={"n": "count"},
            asks=("How old will {who} be in {n} years?",),
            micro=True,
        ),
        Link(
            does=("{x} - {n}",),
            draws={"n": "part"},
            asks=("How old was {who} {n} years ago?",),
        ),
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
        Link(
            says=("{p} % of the {thing} are broken and are thrown away.",),
            does=("{x} * {p} / 100", "{x} - {y}"),
            draws={"p": "percent"},
        ),
        Link(
            says=("{n} of the {thing} break.", "{n} {thing} are sold."),
            does=("{x} - {n}",),
            draws={"n": "part"},
        ),
        Link(
            says=("{n} {thing} from yesterday are added.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
        ),
        Link(
            says=("{n} dozen {thing} are bought in addition.",),
            does=("{n} * 12", "{x} + {y}"),
            draws={"n": "few"},
            trap="units",
        ),
        Link(
            says=("In a week the factory has {n} times as many {thing}.",),
            does=("{x} * {n}",),
            draws={"n": "few"},
        ),
        Link(
            says=("The {thing} are shared equally among {n} shops.",),
            does=("{x} / {n}",),
            draws={"n": "divisor"},
            asks=("How many {thing} does each shop get?",),
        ),
        Link(
            says=("The {thing} are packed into boxes of {n}; only full boxes are sent.",),
            does=("{x} - {r}", "{y} / {n}"),
            draws={"n": "group", "r": "rest"},
            asks=("How many boxes are sent?",),
            trap="remainder",
        ),
        Link(
            says=("The {thing} are packed into boxes of {n} until no more box can be filled.",),
            does=("{n} * {q}", "{x} - {y}"),
            draws={"n": "group", "q": "groups"},
            asks=("How many {thing} are left over?",),
            trap="remainder",
        ),
        Link(
            says=("All {thing} are carried off by trucks that hold {n} each.",),
            does=("{x} - {r}", "{y} / {n}", "{y} + 1"),
            draws={"n": "group", "r": "rest"},
            asks=("How many trucks are needed?",),
            trap="remainder",
        ),
    ),
    asks=("How many {thing} are there then?",),
    extras=(
        "The factory employs {n} people.",
        "A worker has been there for {n} years.",
        "The hall is {n} metres long.",
    ),
)
