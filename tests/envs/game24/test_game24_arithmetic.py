"""Game24: the solver by hand and by law, and the reading of steps and expressions."""

from __future__ import annotations

import ast
import operator
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.game24 import arithmetic
from turngym.envs.game24.arithmetic import (
    Move,
    apply_move,
    find_solution,
    is_plain,
    is_reachable,
    list_moves,
    make_numbers,
    write_expression,
)
from turngym.envs.game24.reading import (
    Answer,
    Step,
    UnreadableAction,
    parse_expression,
    read_action,
)

PYTHON = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
PUZZLES = st.lists(st.integers(1, 13), min_size=4, max_size=4)


def by_python(node: ast.expr) -> Fraction:
    if isinstance(node, ast.BinOp):
        left, right = by_python(node.left), by_python(node.right)
        if isinstance(node.op, ast.Div):
            return left / right
        return PYTHON[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return -by_python(node.operand)
    assert isinstance(node, ast.Constant)
    return Fraction(str(node.value))


def test_moves_of_two_numbers_by_hand() -> None:
    assert [str(m) for m in list_moves(make_numbers((2, 3)))] == [
        "3 + 2 = 5",
        "3 - 2 = 1",
        "2 - 3 = -1",
        "3 * 2 = 6",
        "3 / 2 = 3/2",
        "2 / 3 = 2/3",
    ]
    assert [str(m) for m in list_moves(make_numbers((5, 5)))] == [
        "5 + 5 = 10",
        "5 - 5 = 0",
        "5 * 5 = 25",
        "5 / 5 = 1",
    ]
    assert [str(m) for m in list_moves(make_numbers((0, 4)))][-1] == "0 / 4 = 0"


@pytest.mark.parametrize(
    ("numbers", "solvable"),
    [
        ((1, 1, 1, 1), False),
        ((1, 1, 4, 6), True),
        ((3, 3, 8, 8), True),  # 8 / (3 - 8/3), only by a fraction
        ((1, 5, 5, 5), True),  # 5 * (5 - 1/5)
        ((13, 13, 13, 13), False),
        ((3, 3, 7, 7), True),  # 7 * (3 + 3/7)
    ],
)
def test_known_puzzles(numbers: tuple[int, ...], solvable: bool) -> None:
    assert is_reachable(make_numbers(numbers)) is solvable
    assert bool(find_solution(make_numbers(numbers))) is solvable


def test_a_solution_with_fractions_by_hand() -> None:
    eights = make_numbers((3, 3, 8, 8))
    assert [str(m) for m in find_solution(eights)] == [
        "8 / 3 = 8/3",
        "3 - 8/3 = 1/3",
        "8 / 1/3 = 24",
    ]
    assert write_expression(eights, find_solution(eights)) == "8 / (3 - (8 / 3))"


def test_solvable_sets_of_numbers_up_to_five() -> None:
    """Against a search that knows no sets and no order: every tree over every order."""

    def tree(values: list[Fraction]) -> set[Fraction]:
        if len(values) == 1:
            return {values[0]}
        found: set[Fraction] = set()
        for i in range(len(values)):
            for j in range(len(values)):
                if i != j:
                    rest = [v for k, v in enumerate(values) if k not in (i, j)]
                    a, b = values[i], values[j]
                    for c in {a + b, a - b, a * b, *({a / b} if b else ())}:
                        found |= tree([*rest, c])
        return found

    for numbers in [*combinations_with_replacement(range(1, 4), 4), (3, 3, 5, 5), (5, 5, 5, 5)]:
        assert is_reachable(make_numbers(numbers)) is (24 in tree([Fraction(n) for n in numbers]))


@settings(max_examples=60, deadline=None)
@given(PUZZLES)
def test_a_solution_is_steps_to_24_and_an_expression_of_24(four: list[int]) -> None:
    numbers = make_numbers(four)
    steps, left = find_solution(numbers), numbers
    for step in steps:
        assert step in list(list_moves(left))
        left = apply_move(left, step)
    if not steps:
        assert not is_reachable(numbers)
        return
    assert left == (24,)
    if arithmetic.is_plainly_reachable(numbers):
        assert all(is_plain(step) for step in steps)
    read = parse_expression(write_expression(numbers, steps))
    assert (read.value, read.numbers) == (24, numbers)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fractions(-9, 9, max_denominator=6), min_size=2, max_size=4))
def test_every_move_is_read_back(values: list[Fraction]) -> None:
    for move in list_moves(tuple(sorted(values))):
        read = read_action(f"Perhaps this works:\n{move}\n")
        assert isinstance(read, Step)
        assert Move(read.left, read.operator, read.right, read.result) == move


EXPRESSIONS = st.recursive(
    st.integers(0, 40).map(str) | st.sampled_from(["2.5", "0.125"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS)
def test_expressions_are_worth_what_python_says(text: str) -> None:
    if len(text) > 190 or text.count("(") > 20:
        return
    try:
        worth = by_python(ast.parse(text.replace("--", "- -"), mode="eval").body)
    except ZeroDivisionError:
        worth = None
    assert parse_expression(text).value == worth


@pytest.mark.parametrize(
    ("text", "value", "numbers"),
    [
        ("answer: (6 - 4) * (4 + 8)", 24, (4, 4, 6, 8)),
        ("Answer: (6 \u2212 4) \u00d7 (4+8) = 24", 24, (4, 4, 6, 8)),
        ("So:\n\n(6-4)*(4+8)", 24, (4, 4, 6, 8)),
        ("8 / (3 - 8 / 3) = 24", 24, (3, 3, 8, 8)),
        ("1 + 2 / (3 - 3)", None, (1, 2, 3, 3)),
        ("answer: 24", 24, (24,)),
    ],
)
def test_answers_by_hand(text: str, value: int | None, numbers: tuple[int, ...]) -> None:
    read = read_action(text)
    assert isinstance(read, Answer)
    assert (read.value, read.numbers) == (value, numbers)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("4 + 8 = 12", (4, "+", 8, 12)),
        ("4+8=12 (left: 4 6 12)", (4, "+", 8, 12)),
        ("8/3 * 3 = 8", (Fraction(8, 3), "*", 3, 8)),
        ("8 / 1/3 = 24", (8, "/", Fraction(1, 3), 24)),
        ("8/3 = 8/3", (8, "/", 3, Fraction(8, 3))),
        ("2 - -3 = 5", (2, "-", -3, 5)),
        ("3 \u00f7 2 = 1.5", (3, "/", 2, Fraction(3, 2))),
    ],
)
def test_steps_by_hand(text: str, parts: tuple[object, ...]) -> None:
    read = read_action(text)
    assert isinstance(read, Step)
    assert (read.left, read.operator, read.right, read.result) == parts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("4 + 8", "needs its result"),
        ("4 plus 8 = 12", "'plus 8"),
        ("answer: (1 + 2", "bracket is not closed"),
        ("answer: 1 + 2)", "stands where an operator"),
        ("answer: 1 2 3 4", "stands where an operator"),
        ("answer: 1 + * 2", "stands where a number"),
        ("answer: 1 +", "ends where a number"),
        ("answer: 1 / 0 + (", "ends where a number"),
        ("answer:", "ends where a number"),
        ("answer: __import__('os')", "__import__"),
        ("1 / 2/0 = 3", "divides by zero, so it is no number"),
        ("1 + 2 = 3 (left: a)", "no number"),
        ("answer: " + "9" * 30, "more than 9 digits"),
        ("answer: " + "(" * 30, "more than 20 brackets in one another"),
        ("answer: " + "(" * 500, "more than 200 characters"),
        ("\u0663 + 4 = 7", "no number, operator"),
    ],
)
def test_what_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(UnreadableAction, match=why.replace("(", r"\(")):
        read_action(text)


@settings(max_examples=200, deadline=None)
@given(st.text("0123456789+-*/()=. \nleft:answer\u00d7", max_size=60) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read = read_action(text)
    except UnreadableAction:
        return
    assert isinstance(read, (Step, Answer))
