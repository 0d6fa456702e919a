"""The stories of rates and shares: trips, mixtures, people in percent."""

from __future__ import annotations

from .links import (
    Link,
    Topic,
    add,
    add_percent,
    divide,
    divide_rounding_up,
    find_difference,
    find_remainder,
    multiply,
    subtract,
    subtract_percent,
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
