"""The stories: collections, shops, ages, factories, trips, mixtures and people in percent."""

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

TRIP = Topic(
    name="trip",
    things=("km",),
    whole=False,
    starts=(
        Link(
            says=("{who} drives for {m} hours at {v} km per hour.",),
            does=("{v} * {m}",),
            draws={"v": "speed", "m": "hours"},
        ),
        Link(
            says=("{who} rides for {t} minutes at {v} km per hour.",),
            does=("{t} / 60", "{v} * {y}"),
            draws={"v": "speed", "t": "minutes"},
            trap="units",
        ),
        Link(says=("{who} walks {n} km.",), draws={"n": "count"}),
    ),
    links=(
        add("Then {who} goes {n} km further.", "After a rest {who} goes another {n} km."),
        Link(
            says=("Then {who} goes on for {m} hours at {v} km per hour.",),
            does=("{v} * {m}", "{x} + {y}"),
            draws={"v": "speed", "m": "hours"},
        ),
        Link(
            says=("Then {who} goes on for {t} minutes at {v} km per hour.",),
            does=("{t} / 60", "{v} * {y}", "{x} + {y}"),
            draws={"v": "speed", "t": "minutes"},
            trap="units",
        ),
        Link(
            says=("Then {who} goes on for {m} metres.",),
            does=("{m} / 1000", "{x} + {y}"),
            draws={"m": "big"},
            trap="units",
        ),
        subtract("{other} travels {n} km less than {who}.", moves=True),
        add("{who} travels {n} km less than {other}.", trap="fewer", moves=True),
        multiply("{other} travels {n} times as far as {who}.", moves=True),
        find_difference(
            "The whole way is {n} km long.", ask="How many km of it are left for {who}?"
        ),
        Link(
            says=("On the next day {who} travels back the same way at {v} km per hour.",),
            does=("{x} / {v}",),
            draws={"v": "speed"},
            asks=("How many hours does the way back take?",),
        ),
        Link(
            says=("On the next day {who} travels back the same way at {v} km per hour.",),
            does=("{x} / {v}", "{y} * 60"),
            draws={"v": "speed"},
            asks=("How many minutes does the way back take?",),
            trap="units",
        ),
        Link(
            does=("{x} * 1000",),
            asks=("How many metres does {who} travel in all?",),
            trap="units",
        ),
    ),
    asks=("How many km does {who} travel in all?",),
    extras=(
        "{who} carries a bag of {n} kg.",
        "It is {n} degrees warm.",
        "{who} sets out at {n} minutes past six.",
    ),
)

MIXTURE = Topic(
    name="mixture",
    things=("syrup", "salt", "oil", "vinegar", "alcohol"),
    whole=False,
    starts=(
        Link(
            says=("A tank holds {n} litres of a liquid. {p} % of it is {thing}.",),
            does=("{n} * {p} / 100",),
            draws={"n": "litres", "p": "percent of n"},
        ),
        Link(says=("A tank holds {n} litres of {thing}.",), draws={"n": "litres"}),
    ),
    links=(
        Link(
            says=("{n} litres of pure {thing} are added.",),
            does=("{x} + {n}",),
            draws={"n": "litres"},
        ),
        Link(
            says=("Then come {n} litres of another liquid, {p} % of which is {thing}.",),
            does=("{n} * {p} / 100", "{x} + {y}"),
            draws={"n": "litres", "p": "percent of n"},
        ),
        subtract_percent("{p} % of all that is in the tank runs out."),
        Link(
            says=("Then {m} millilitres of pure {thing} are added.",),
            does=("{m} / 1000", "{x} + {y}"),
            draws={"m": "big"},
            trap="units",
        ),
        divide(
            "What is in the tank is shared equally by {n} smaller tanks.",
            ask="How many litres of {thing} are in each smaller tank?",
        ),
        Link(
            says=("Water is added until the tank holds {v} litres in all.",),
            does=("{x} / {v}", "{y} * 100"),
            draws={"v": "vessel"},
            asks=("What percentage of the liquid is {thing}?",),
        ),
        Link(
            does=("{x} * 1000",),
            asks=("How many millilitres of {thing} are in the tank?",),
            trap="units",
        ),
    ),
    asks=("How many litres of {thing} are in the tank?",),
    extras=(
        "The tank is {n} years old.",
        "The liquid has a temperature of {n} degrees.",
        "The tank stands {n} metres from the door.",
    ),
)

PEOPLE = Topic(
    name="people",
    things=("village", "school", "club", "town", "company", "camp"),
    starts=(
        Link(says=("A {thing} has {n} people.",), draws={"n": "big"}),
        Link(
            says=("In a {thing} are {n} groups of {m} people each.",),
            does=("{n} * {m}",),
            draws={"n": "few", "m": "big"},
        ),
    ),
    links=(
        Link(
            says=("{p} % of these people can swim; the story is about those.",),
            does=("{x} * {p} / 100",),
            draws={"p": "percent"},
        ),
        subtract_percent(
            "{p} % of these people have a bicycle; the story is about the others.", trap="others"
        ),
        divide("One in {n} of these people plays an instrument; the story is about those."),
        subtract("{n} of these people move away."),
        add("{n} more people come."),
        add_percent("The number of these people grows by {p} %."),
        divide_rounding_up(
            "These people go on a journey in boats that hold {n} people each.",
            ask="How many boats are needed?",
        ),
        find_remainder(
            "These people form as many teams of {n} as possible.",
            ask="How many people are in no team?",
        ),
        Link(
            says=("Each of these people drinks {n} glasses of water a day.",),
            does=("{x} * {n}", "{y} * 7"),
            draws={"n": "few"},
            asks=("How many glasses is that in a week?",),
            trap="units",
        ),
    ),
    asks=("How many people is the story about in the end?",),
    extras=(
        "The oldest house there has {n} windows.",
        "The mayor is {n} years old.",
        "There are also {n} cats.",
    ),
)
