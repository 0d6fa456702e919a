"""What word problems are made of: links that each tell something and change one quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_BLOCK = 64
PERCENTS = (10, 20, 25, 30, 40, 50, 60, 75, 80, 90)
MINUTES = (12, 15, 30, 36, 45, 90, 150)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large the numbers of a world are.

    Attributes:
        count: Range of numbers of things, of added and of taken amounts.
        few: Range of factors and divisors.
        big: Range of large round numbers, in tens.
        cap: Largest value on the way.
        names: How many names there are.
        things: How many things each topic knows.
    """

    count: tuple[int, int]
    few: tuple[int, int]
    big: tuple[int, int]
    cap: int
    names: int
    things: int


FULL = Scale(count=(3, 60), few=(2, 12), big=(6, 60), cap=100_000, names=40, things=10)
MICRO = Scale(count=(2, 9), few=(2, 3), big=(1, 3), cap=20, names=4, things=2)


@dataclass(frozen=True, kw_only=True)
class Link:
    """One piece of a story.

    In the texts ``{who}`` is the present person, ``{other}`` the next one, ``{thing}`` what the
    story is about, and any other field a number from ``draws``.

    Attributes:
        says: Wordings; empty when the question says it all.
        does: Sums in order: ``{x}`` is the quantity so far, ``{y}`` the result of the sum before.
            Its last result is the new quantity.
        draws: Numbers by name: the kinds of :data:`KINDS`, drawn in this order.
        asks: The question, for a link that ends a problem; the topic's own otherwise.
        trap: The trap that it sets, empty if none.
        moves: Whether the story goes on with ``{other}``.
        micro: Whether the micro world has it.
    """

    says: tuple[str, ...] = ()
    does: tuple[str, ...] = ()
    draws: Mapping[str, str] = field(default_factory=dict)
    asks: tuple[str, ...] = ()
    trap: str = ""
    moves: bool = False
    micro: bool = False


@dataclass(frozen=True)
class LinkMaker:
    """Makes the links that do the same sums with numbers of the same kinds.

    Attributes:
        does: See :class:`Link`.
        draws: See :class:`Link`.
        trap: The trap that these sums set by themselves, empty if none.
    """

    does: tuple[str, ...]
    draws: Mapping[str, str]
    trap: str = ""

    def __call__(
        self,
        *says: str,
        ask: str = "",
        trap: str = "",
        moves: bool = False,
        micro: bool = False,
    ) -> Link:
        """Return a link with these wordings, and with a question if it ends a problem."""
        return Link(
            says=says,
            does=self.does,
            draws=self.draws,
            asks=(ask,) if ask else (),
            trap=trap or self.trap,
            moves=moves,
            micro=micro,
        )


add = LinkMaker(("{x} + {n}",), {"n": "count"})
subtract = LinkMaker(("{x} - {n}",), {"n": "part"})
multiply = LinkMaker(("{x} * {n}",), {"n": "few"})
divide = LinkMaker(("{x} / {n}",), {"n": "divisor"})
add_product = LinkMaker(("{n} * {m}", "{x} + {y}"), {"n": "few", "m": "count"})
add_percent = LinkMaker(("{x} * {p} / 100", "{x} + {y}"), {"p": "percent"})
subtract_percent = LinkMaker(("{x} * {p} / 100", "{x} - {y}"), {"p": "percent"})
find_difference = LinkMaker(("{n} - {x}",), {"n": "over"})
find_remainder = LinkMaker(
    ("{n} * {q}", "{x} - {y}"), {"n": "group", "q": "groups"}, trap="remainder"
)
divide_rounding_up = LinkMaker(
    ("{x} - {r}", "{y} / {n}", "{y} + 1"), {"n": "group", "r": "rest"}, trap="remainder"
)


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A kind of story.

    Attributes:
        name: Short name.
        things: What ``{thing}`` may be.
        starts: Links that open a story; their sums have no ``{x}``, and without a sum the number
            ``n`` is the quantity.
        links: Links that go on with one, or end it.
        asks: The question after a link without one of its own.
        extras: Sentences with a number ``{n}`` that has nothing to do with the question.
        whole: Whether every quantity is a whole number.
        cap: Largest quantity on the way, where the story has a limit of its own.
        micro: Whether the micro world has it.
    """

    name: str
    things: tuple[str, ...]
    starts: tuple[Link, ...]
    links: tuple[Link, ...]
    asks: tuple[str, ...]
    extras: tuple[str, ...]
    whole: bool = True
    cap: int | None = None
    micro: bool = False


class Dice:
    """Random picks from numbers drawn in blocks: one call per number would take most of the time.

    Args:
        rng: Where the numbers come from.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._block: list[float] = []

    def __call__(self) -> float:
        """A number from 0, below 1."""
        if not self._block:
            self._block = self._rng.random(_BLOCK).tolist()
        return self._block.pop()

    def within(self, low: int, high: int) -> int:
        """A whole number between two bounds, both included."""
        return low + int(self() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self() * len(options))]

    def some(self, options: Sequence[T], n: int) -> list[T]:
        """``n`` different ones of the options, in random order."""
        left = list(options)
        return [left.pop(int(self() * len(left))) for _ in range(min(n, len(left)))]


@dataclass(frozen=True, slots=True)
class Draw:
    """What a number may depend on.

    Attributes:
        dice: Where it comes from.
        scale: How large numbers are.
        x: The quantity so far; None before there is one.
        drawn: The numbers of the link that were drawn before it.
    """

    dice: Dice
    scale: Scale
    x: Fraction | None
    drawn: Mapping[str, int]

    def within(self, bounds: tuple[int, int], step: int = 1) -> int:
        """A number between two bounds, both included, times ``step``."""
        return self.dice.within(*bounds) * step

    def one_of(self, options: Sequence[int]) -> int | None:
        """One of the options; None when there is none."""
        return self.dice.pick(options) if options else None

    @property
    def whole(self) -> int:
        """The quantity so far where it is a whole number, else 0."""
        return self.x.numerator if self.x is not None and self.x.denominator == 1 else 0


def _draw_part(draw: Draw) -> int | None:
    top = min(draw.scale.count[1], (int(draw.x) if draw.x is not None else 0) - 1)
    return draw.within((2, top)) if top >= 2 else None


def _draw_divisor(draw: Draw) -> int | None:
    low, high = draw.scale.few
    x = draw.whole
    return draw.one_of([n for n in range(low, min(high, x - 1) + 1) if x % n == 0])


def _draw_group_size(draw: Draw) -> int | None:
    low, high = draw.scale.few
    x = draw.whole
    return draw.one_of([n for n in range(low + 1, min(high, x - 1) + 1) if x % n])


def _draw_percent(draw: Draw) -> int | None:
    x = draw.x
    fits = [p for p in PERCENTS if x is None or (x * p / 100).denominator == 1]
    return draw.one_of(fits)


def _draw_percent_of_n(draw: Draw) -> int | None:
    return draw.one_of([p for p in PERCENTS if draw.drawn["n"] * p % 100 == 0])


def _draw_larger(draw: Draw) -> int | None:
    least = int(draw.x or 0) + 1
    step = 10 if least > draw.scale.cap // 4 or draw.scale.cap > 100 else 1
    first = -(-least // step) * step
    return draw.within((0, 4), step) + first


KINDS: Mapping[str, Callable[[Draw], int | None]] = {
    "count": lambda d: d.within(d.scale.count),
    "few": lambda d: d.within(d.scale.few),
    "big": lambda d: d.within(d.scale.big, 10),
    "part": _draw_part,  # less than there is
    "divisor": _draw_divisor,  # divides what there is
    "group": _draw_group_size,  # does not
    "rest": lambda d: d.whole % d.drawn["n"],
    "groups": lambda d: d.whole // d.drawn["n"],
    "percent": _draw_percent,  # of what there is, a whole number
    "percent of n": _draw_percent_of_n,
    "over": _draw_larger,  # more than there is
    "minutes": lambda d: d.one_of(MINUTES),
    "cents": lambda d: d.within((1, 19), 25),
    "speed": lambda d: d.within((2, 24), 5),
    "hours": lambda d: d.within((2, 9)),
    "litres": lambda d: d.within((1, 8), 5),
    "vessel": lambda d: d.within((15, 40), 10),
}
"""How numbers are drawn, by kind; None when nothing fits."""
