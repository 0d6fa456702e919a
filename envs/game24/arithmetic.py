"""Exact arithmetic on a handful of numbers: operations, and what they can still reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

TARGET = Fraction(24)
OPERATORS = "+-*/"
Numbers = tuple[Fraction, ...]
"""Numbers in ascending order."""
_CACHE_SIZE = 1 << 17
"""Sets of numbers that the solver remembers; all puzzles together lead to fewer."""


class Move(NamedTuple):
    """One operation on two numbers, and its exact result."""

    left: Fraction
    operator: str
    right: Fraction
    result: Fraction

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right} = {self.result}"


def make_numbers(values: Iterable[int | Fraction]) -> Numbers:
    """The values as exact numbers in ascending order."""
    return tuple(sorted(Fraction(value) for value in values))


def write_numbers(numbers: Iterable[Fraction]) -> str:
    """Numbers as text: ``4 8/3 12``."""
    return " ".join(map(str, numbers))


def apply(left: Fraction, operator: str, right: Fraction) -> Fraction | None:
    """The result of an operation; None for a division by zero."""
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    return left / right if right else None


def remove_numbers(numbers: Numbers, *taken: Fraction) -> Numbers | None:
    """What is left when ``taken`` are taken away; None when one of them is not there."""
    left = list(numbers)
    for number in taken:
        if number not in left:
            return None
        left.remove(number)
    return tuple(left)


def apply_move(numbers: Numbers, move: Move) -> Numbers:
    """The numbers after a move on two of them."""
    rest = remove_numbers(numbers, move.left, move.right)
    assert rest is not None  # a move is made of two of the numbers
    return tuple(sorted((*rest, move.result)))


def list_moves(numbers: Numbers) -> Iterator[Move]:
    """Every operation on two of the numbers, each once, in a fixed order.

    The larger number stands first in sums and products.
    """
    seen: set[tuple[Fraction, Fraction]] = set()
    for i, low in enumerate(numbers):
        for high in numbers[i + 1 :]:
            if (low, high) not in seen:
                seen.add((low, high))
                yield from _list_pair_moves(low, high)


def _list_pair_moves(low: Fraction, high: Fraction) -> Iterator[Move]:
    yield Move(high, "+", low, high + low)
    yield Move(high, "-", low, high - low)
    if high != low:
        yield Move(low, "-", high, low - high)
    yield Move(high, "*", low, high * low)
    if low:
        yield Move(high, "/", low, high / low)
    if high and high != low:
        yield Move(low, "/", high, low / high)


@lru_cache(maxsize=_CACHE_SIZE)
def is_reachable(numbers: Numbers) -> bool:
    """Whether operations on all the numbers can end in 24."""
    if len(numbers) == 1:
        return numbers[0] == TARGET
    if len(numbers) == 2:
        return any(move.result == TARGET for move in list_moves(numbers))
    return any(is_reachable(apply_move(numbers, move)) for move in list_moves(numbers))


@lru_cache(maxsize=_CACHE_SIZE)
def is_plainly_reachable(numbers: Numbers, most: int = 99) -> bool:
    """Whether 24 is reached by +, - and * over whole numbers from 0 to ``most``."""
    if len(numbers) == 1:
        return numbers[0] == TARGET
    return any(
        is_plain(m, most) and is_plainly_reachable(apply_move(numbers, m), most)
        for m in list_moves(numbers)
    )


def is_plain(move: Move, most: int = 99) -> bool:
    """No division, and a result from 0 to ``most``."""
    return move.operator != "/" and 0 <= move.result <= most


def find_solution(numbers: Numbers) -> list[Move]:
    """Moves that lead to 24, plain ones where they do; empty when there are none."""
    if len(numbers) == 1 or not is_reachable(numbers):
        return []
    plain = is_plainly_reachable(numbers)
    for move in list_moves(numbers):
        rest = apply_move(numbers, move)
        if (is_plain(move) and is_plainly_reachable(rest)) if plain else is_reachable(rest):
            return [move, *find_solution(rest)]
    raise AssertionError("a reachable set of numbers has a move that keeps it so")


def write_expression(numbers: Numbers, steps: Iterable[Move]) -> str:
    """The last of the steps, with all that led to it, as an expression of ``numbers``.

    With all steps of a solution that is the whole of it: ``(6 - 4) * (8 + 4)``.
    """
    terms = [(number, _write_number(number)) for number in numbers]
    for move in steps:
        texts = []
        for value in (move.left, move.right):
            at = next(i for i, (number, _) in enumerate(terms) if number == value)
            texts.append(terms.pop(at)[1])
        terms.append((move.result, f"({texts[0]} {move.operator} {texts[1]})"))
    whole = terms[-1][1]
    return whole[1:-1]


def _write_number(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"({number})"
