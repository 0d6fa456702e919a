"""The stories of rates and shares: trips, mixtures, people in percent."""

from __future__ import annotations

from .links import Link, Topic

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
        Link(
            says=("Then {who} goes {n} km further.", "After a rest {who} goes another {n} km."),
            does=("{x} + {n}",),
            draws={"n": "count"},
        ),
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
        Link(
            says=("{other} travels {n} km less than {who}.",),
            does=("{x} - {n}",),
            draws={"n": "part"},
            moves=True,
        ),
        Link(
            says=("{who} travels {n} km less than {other}.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
            trap="fewer",
            moves=True,
        ),
        Link(
            says=("{other} travels {n} times as far as {who}.",),
            does=("{x} * {n}",),
            draws={"n": "few"},
            moves=True,
        ),
        Link(
            says=("The whole way is {n} km long.",),
            does=("{n} - {x}",),
            draws={"n": "over"},
            asks=("How many km of it are left for {who}?",),
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
        Link(
            says=("{p} % of all that is in the tank runs out.",),
            does=("{x} * {p} / 100", "{x} - {y}"),
            draws={"p": "percent"},
        ),
        Link(
            says=("Then {m} millilitres of pure {thing} are added.",),
            does=("{m} / 1000", "{x} + {y}"),
            draws={"m": "big"},
            trap="units",
        ),
        Link(
            says=("What is in the tank is shared equally by {n} smaller tanks.",),
            does=("{x} / {n}",),
            draws={"n": "divisor"},
            asks=("How many litres of {thing} are in each smaller tank?",),
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
        Link(
            says=("{p} % of these people have a bicycle; the story is about the others.",),
            does=("{x} * {p} / 100", "{x} - {y}"),
            draws={"p": "percent"},
            trap="others",
        ),
        Link(
            says=("One in {n} of these people plays an instrument; the story is about those.",),
            does=("{x} / {n}",),
            draws={"n": "divisor"},
        ),
        Link(
            says=("{n} of these people move away.",),
            does=("{x} - {n}",),
            draws={"n": "part"},
        ),
        Link(
            says=("{n} more people come.",),
            does=("{x} + {n}",),
            draws={"n": "count"},
        ),
        Link(
            says=("The number of these people grows by {p} %.",),
            does=("{x} * {p} / 100", "{x} + {y}"),
            draws={"p": "percent"},
        ),
        Link(
            says=("These people go on a journey in boats that hold {n} people each.",),
            does=("{x} - {r}", "{y} / {n}", "{y} + 1"),
            draws={"n": "group", "r": "rest"},
            asks=("How many boats are needed?",),
            trap="remainder",
        ),
        Link(
            says=("These people form as many teams of {n} as possible.",),
            does=("{n} * {q}", "{x} - {y}"),
            draws={"n": "group", "q": "groups"},
            asks=("How many people are in no team?",),
            trap="remainder",
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
