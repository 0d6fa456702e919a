"""The micro world: two-word names out of a small vocabulary, one short sentence per passage."""

from __future__ import annotations

import numpy as np

from ...core.errors import BadValueError
from .schema import Kind, Relation, Schema, Style
from .vocabulary import NAME_PARTS


def _make_relation(key: str, sides: str, says: str, noun: str, ask: str) -> Relation:
    subject, target = sides.split()
    return Relation(
        key=key,
        subjects=(subject,),
        target=(target,),
        says=(says,),
        noun=noun,
        ask=ask,
        keyword=key,
    )


def _make_role(key: str, sides: str, who: str = "Who") -> Relation:
    """A relation whose name is a noun that question and passage share."""
    noun = f"the {key} of {{s}}"
    return _make_relation(key, sides, f"The {key} of {{s}} is {{o}}.", noun, f"{who} is {noun}?")


_SPOT = "the place where {s}"
RELATIONS = (
    _make_relation(
        "born", "person place", "{s} was born in {o}.", f"{_SPOT} was born", "Where was {s} born?"
    ),
    _make_role("home", "person place", "Where"),
    _make_role("employer", "person org"),
    _make_role("teacher", "person person"),
    _make_role("partner", "person person"),
    _make_role("rival", "person person"),
    _make_role("author", "work person"),
    _make_role("hero", "work person"),
    _make_role("translator", "work person"),
    _make_role("publisher", "work org"),
    _make_role("sequel", "work work", "What"),
    _make_relation(
        "set", "work place", "{s} is set in {o}.", f"{_SPOT} is set", "Where is {s} set?"
    ),
)


class TwoWordNamer:
    """Names of two words, drawn without repetition from the grid of their category.

    Args:
        rng: Draws the order of the grid.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._free: dict[str, dict[str, None]] = {}
        for category, (left, right) in NAME_PARTS.items():
            grid = [f"{a} {b}" for a in left.split() for b in right.split()]
            self._free[category] = dict.fromkeys(grid[i] for i in rng.permutation(len(grid)))

    def draw_new(self, kind: Kind) -> str:
        """The next name of the grid.

        Raises:
            BadValueError: Every name is taken.
        """
        free = self._free[kind.category]
        if not free:
            raise BadValueError(
                f"the micro world: there are no names left for another {kind.name}; "
                "expected fewer distractors."
            )
        return self._take(free, next(iter(free)))

    def draw_similar(self, name: str, kind: Kind) -> str:
        """A free name with the same first word, any free one when there is none."""
        free = self._free[kind.category]
        first = name.split()[0] + " "
        near = next((other for other in free if other.startswith(first)), None)
        return self.draw_new(kind) if near is None else self._take(free, near)

    @staticmethod
    def _take(free: dict[str, None], name: str) -> str:
        del free[name]
        return name


MICRO = Schema(
    name="micro",
    kinds=(
        Kind(name="person", category="person", amount=1000),
        Kind(name="work", category="work", amount=500),
        Kind(name="place", category="place", amount=200),
        Kind(name="org", category="org", amount=150),
    ),
    relations=RELATIONS,
    listings=(),
    namer=TwoWordNamer,
    style=Style(sentences=1, intro=False, alias_share=0.0),
)
