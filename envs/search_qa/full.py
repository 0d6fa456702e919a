"""The full world: people, places, organisations, works and events in articles of many wordings."""

from __future__ import annotations

from .full_people import PEOPLE
from .full_places import ORGS, PLACES
from .full_works import EVENTS, WORKS
from .names import Invented
from .schema import Kind, Listing, Schema, Style

_AMOUNTS = {
    "person": {
        "novelist": 500,
        "painter": 450,
        "composer": 450,
        "film director": 450,
        "chemist": 350,
        "physicist": 350,
        "historian": 350,
        "architect": 350,
        "engineer": 350,
        "botanist": 300,
        "philosopher": 300,
        "explorer": 300,
        "sculptor": 250,
        "astronomer": 250,
    },
    "place": {"town": 600, "city": 350, "village": 250, "region": 120, "river": 150},
    "org": {
        "university": 200,
        "publisher": 200,
        "company": 350,
        "museum": 200,
        "newspaper": 150,
        "orchestra": 120,
    },
    "work": {"novel": 1200, "film": 800, "painting": 800, "opera": 500},
    "event": {"battle": 200, "festival": 300, "expedition": 250, "conference": 250},
}


def _works_of(relation: str, verb: str, plural: str) -> Listing:
    return Listing(
        relation=relation,
        says=(
            f"{{s}} {verb} {{o}}.",
            f"The {plural} of {{s}} are {{o}}.",
            f"{{poss}} {plural}, in no order, are {{o}}.",
        ),
        ask=f"How many {plural} by {{s}} are known?",
        keyword=f"{plural} {verb}",
    )


FULL = Schema(
    name="full",
    kinds=tuple(
        Kind(name=name, category=category, amount=amount)
        for category, kinds in _AMOUNTS.items()
        for name, amount in kinds.items()
    ),
    relations=(*PEOPLE, *PLACES, *ORGS, *WORKS, *EVENTS),
    listings=(
        _works_of("novel_author", "wrote", "novels"),
        _works_of("film_director", "directed", "films"),
        _works_of("painter", "painted", "paintings"),
        _works_of("composer", "composed", "operas"),
        Listing(
            relation="mentor",
            says=("{s} taught {o}.", "The pupils of {s} were {o}.", "{poss} pupils were {o}."),
            ask="How many pupils of {s} are known?",
            keyword="pupils taught",
        ),
        Listing(
            relation="owner",
            says=("{s} owns {o}.", "The holdings of {s} are {o}.", "{poss} holdings are {o}."),
            ask="How many institutions does {s} own?",
            keyword="owns holdings",
        ),
        Listing(
            relation="organiser",
            says=("{s} organised {o}.", "The events run by {s} were {o}."),
            ask="How many events did {s} organise?",
            keyword="organised events",
        ),
    ),
    namer=Invented,
    style=Style(
        sentences=5,
        intro=True,
        alias_share=0.2,
        namesake_share=0.4,
        namesakes=("person", "place", "work"),
    ),
)
