"""The full world: people, places, organisations, works and events in articles of many wordings."""

from __future__ import annotations

import numpy as np

from .relations.people import PEOPLE
from .relations.places import ORGS, PLACES
from .relations.works import EVENTS, WORKS
from .schema import Kind, Listing, Schema, Style
from .vocabulary import (
    ADJECTIVES,
    CODAS,
    EVENT_WORDS,
    NEAR_PLACES,
    NOUNS,
    ONSETS,
    ORG_WORDS,
    PLACE_ENDS,
    VOWELS,
    WORK_FORMS,
)


class SyllableNamer:
    """Names that a generator draws; none comes twice, except as a wanted namesake.

    Args:
        rng: Draws everything.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._dice: list[float] = []
        self._taken: set[str] = set()
        self._given = self._many(360, 2)
        self._family = self._many(1600, 2)

    def draw_new(self, kind: Kind) -> str:
        """A name for one ``kind`` that nothing has yet."""
        while True:
            name = self._draw(kind)
            if self._take(name):
                return name

    def draw_similar(self, name: str, kind: Kind) -> str:
        """A new name that shares a part with ``name``."""
        for _ in range(50):
            candidate = self._like(name, kind)
            if self._take(candidate):
                return candidate
        return self.draw_new(kind)

    def _take(self, name: str) -> bool:
        if name in self._taken:
            return False
        self._taken.add(name)
        return True

    def _draw(self, kind: Kind) -> str:
        match kind.category:
            case "person":
                return f"{self._pick(self._given)} {self._pick(self._family)}"
            case "place":
                return self._word(1) + self._pick(PLACE_ENDS)
            case "org":
                return f"{self._word(2)} {self._pick(ORG_WORDS[kind.name].split())}"
            case "event":
                return f"{self._word(2)} {self._pick(EVENT_WORDS[kind.name].split())}"
            case _:
                form = self._pick(WORK_FORMS)
                a, n, m = self._pick(ADJECTIVES), self._pick(NOUNS), self._pick(NOUNS)
                return form.format(a=a, n=n, m=m)

    def _like(self, name: str, kind: Kind) -> str:
        first, _, rest = name.partition(" ")
        match kind.category:
            case "person":
                if self._roll() < 0.5:
                    return f"{first} {self._pick(self._family)}"
                return f"{self._pick(self._given)} {rest}"
            case "place":
                return f"{self._pick(NEAR_PLACES)} {name}"
            case "org":
                return f"{first} {self._pick(ORG_WORDS[kind.name].split())}"
            case "event":
                return f"{first} {self._pick(EVENT_WORDS[kind.name].split())}"
            case _:
                return f"{name.rsplit(' ', 1)[0]} {self._pick(NOUNS)}"

    def _many(self, count: int, syllables: int) -> list[str]:
        words: dict[str, None] = {}
        while len(words) < count:
            words[self._word(syllables)] = None
        return list(words)

    def _word(self, syllables: int) -> str:
        parts = [self._pick(ONSETS) + self._pick(VOWELS) for _ in range(syllables)]
        return ("".join(parts) + self._pick(CODAS)).capitalize()

    def _pick(self, options: list[str] | tuple[str, ...]) -> str:
        return options[int(self._roll() * len(options))]

    def _roll(self) -> float:
        if not self._dice:
            self._dice = self._rng.random(4096).tolist()
        return self._dice.pop()


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


def _list_works(relation: str, verb: str, plural: str) -> Listing:
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
        _list_works("novel_author", "wrote", "novels"),
        _list_works("film_director", "directed", "films"),
        _list_works("painter", "painted", "paintings"),
        _list_works("composer", "composed", "operas"),
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
    namer=SyllableNamer,
    style=Style(
        sentences=5,
        intro=True,
        alias_share=0.2,
        namesake_share=0.4,
        namesakes=("person", "place", "work"),
    ),
)
