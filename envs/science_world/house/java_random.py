"""The random numbers of the original engine: Java's 48-bit generator and Scala's shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeVar

T = TypeVar("T")

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK = (1 << 48) - 1


class JavaRandom:
    """``java.util.Random``: the same seed gives the same numbers, bit for bit.

    Args:
        seed: Any integer; its lowest 48 bits count.
    """

    __slots__ = ("state",)

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ _MULTIPLIER) & _MASK

    def bits(self, count: int) -> int:
        """Return the next ``count`` (1 to 32) random bits as a number that is not negative."""
        self.state = state = (self.state * _MULTIPLIER + _INCREMENT) & _MASK
        return state >> (48 - count)

    def next_int(self, bound: int) -> int:
        """Return a number uniform over 0 to ``bound`` - 1; ``bound`` is at least 1."""
        if bound & -bound == bound:
            return (bound * self.bits(31)) >> 31
        while True:
            drawn = self.bits(31)
            rest = drawn % bound
            # The last, incomplete run of ``bound`` numbers below 2**31 is drawn again.
            if drawn - rest + bound <= 1 << 31:
                return rest

    def next_boolean(self) -> bool:
        """Return true or false with equal chances."""
        return self.bits(1) == 1

    def next_float(self) -> float:
        """Return a number uniform in [0, 1) with 24 bits."""
        return self.bits(24) / (1 << 24)

    def next_double(self) -> float:
        """Return a number uniform in [0, 1) with 53 bits."""
        high = self.bits(26)
        return ((high << 27) + self.bits(27)) / (1 << 53)

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Return a shuffled copy, as ``scala.util.Random.shuffle`` makes it."""
        result = list(items)
        for size in range(len(result), 1, -1):
            other = self.next_int(size)
            result[size - 1], result[other] = result[other], result[size - 1]
        return result

    def pick(self, items: Sequence[T]) -> T:
        """Return one item, by one :meth:`next_int`."""
        return items[self.next_int(len(items))]

    def skip(self, count: int) -> None:
        """Go on as after ``count`` calls of :meth:`bits`, in a time that does not grow with it."""
        factor, addend = _jump(count)
        self.state = (self.state * factor + addend) & _MASK

    def fork(self) -> JavaRandom:
        """Return an independent copy that will draw the same numbers."""
        twin: JavaRandom = object.__new__(JavaRandom)
        twin.state = self.state
        return twin

    def __deepcopy__(self, memo: dict[int, object]) -> JavaRandom:
        return self.fork()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JavaRandom) and self.state == other.state

    __hash__ = None  # type: ignore[assignment]

    def digest(self) -> str:
        """Return text that names the stream's position."""
        return f"java:{self.state}"


@cache
def _jump(count: int) -> tuple[int, int]:
    """Return the factor and addend of ``count`` steps at once, by repeated squaring."""
    factor, addend = 1, 0
    step_factor, step_addend = _MULTIPLIER, _INCREMENT
    while count:
        if count & 1:
            factor = (factor * step_factor) & _MASK
            addend = (addend * step_factor + step_addend) & _MASK
        step_addend = (step_addend * step_factor + step_addend) & _MASK
        step_factor = (step_factor * step_factor) & _MASK
        count >>= 1
    return factor, addend
