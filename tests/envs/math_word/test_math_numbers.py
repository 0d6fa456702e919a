"""Numbers, sums and answers: read and compared exactly."""

from __future__ import annotations

import builtins
import pickle
import threading
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import MissingExtraError, UnknownNameError
from turngym.envs.math_word import grading
from turngym.envs.math_word.arithmetic import evaluate, find_equations
from turngym.envs.math_word.grading import NumberGrader, make_grader
from turngym.envs.math_word.quantities import Quantity, read_quantity, write_number

NUMBERS = st.fractions(max_denominator=1000, min_value=-(10**9), max_value=10**9)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", "12"), ("-12", "-12"), ("−12", "-12"), ("+5", "5"), ("1,234", "1234"),
        ("1,234,567.5", "2469135/2"), ("0.25", "1/4"), (".5", "1/2"), ("7/2", "7/2"),
        ("3 1/2", "7/2"), ("-3 1/2", "-7/2"), ("2e3", "2000"), ("2.5e-1", "1/4"), ("$3.50", "7/2"),
        ("-$4", "-4"), ("12 apples", "12"), ("40 km/h", "40"), ("x = 5", "5"), ("12.", "12"),
        ("\\frac{1}{2}", "1/2"), ("-\\dfrac{3}{4}", "-3/4"), ("$\\boxed{12}$", "12"),
        ("\\(7\\)", "7"), ("12 \\text{ cm}", "12"), ("10{,}000", "10000"), ("\\$5", "5"),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(text: str, value: str) -> None:
    assert read_quantity(text) == Quantity(Fraction(value))


@pytest.mark.parametrize(
    "text",
    ["", " ", "km", "12 of 30", "12 30", "1,23", "1/0", "--5", "5 -", "1.2.3", "\\sqrt{2}", "x+1",
     "twelve", "1" * 201, "3 + 4", "<answer>", "5 6/7/8", "٣٤x2"],
)  # fmt: skip
def test_anything_else_is_no_number(text: str) -> None:
    assert read_quantity(text) is None


@given(NUMBERS)
def test_what_is_shown_is_read_again(value: Fraction) -> None:
    assert read_quantity(write_number(value)) == Quantity(value)
    assert evaluate(write_number(value)) == value


@pytest.mark.parametrize(
    ("given", "answer", "right"),
    [
        ("50%", "50", True), ("50%", "1/2", True), ("50", "50%", True), ("0.5", "50 percent", True),
        ("50%", "50%", True), ("5%", "50%", False), ("0.50", "1/2", True), ("0.33", "1/3", False),
        ("1,000", "1000.0", True), ("7", "8", False), ("seven", "7", False), ("", "7", False),
    ],
)  # fmt: skip
def test_answers_are_compared_exactly(given: str, answer: str, right: bool) -> None:
    assert NumberGrader().is_right(given, answer) is right


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 + 4", "7"), ("7 - 2 * 3", "1"), ("(7 - 2) * 3", "15"), ("510 * 10 / 100", "51"),
        ("20 × 3 ÷ 4", "15"), ("-3 + 4", "1"), ("1,200 / 8", "150"), ("1 / 3 + 1/6", "1/2"),
        ("2 * (3 + (4 - 1))", "12"), ("$3 * 4", "12"),
    ],
)  # fmt: skip
def test_sums_are_worked_out(text: str, value: str) -> None:
    assert evaluate(text) == Fraction(value)


@pytest.mark.parametrize(
    "text", ["", "3 +", "+ 3 4", "3 / 0", "3 / (2 - 2)", "(3", "3)", "2 ** 3", "a", "1" * 121,
             "(" * 100]
)  # fmt: skip
def test_a_sum_that_is_none_has_no_value(text: str) -> None:
    assert evaluate(text) is None


@given(st.recursive(st.integers(0, 99), lambda s: st.tuples(s, st.sampled_from("+-*"), s)))
def test_sums_agree_with_python(tree: Any) -> None:
    def write_sum(node: Any) -> str:
        return str(node) if isinstance(node, (int, str)) else f"({' '.join(map(write_sum, node))})"

    text = write_sum(tree)
    if len(text) <= 120:
        assert evaluate(text) == eval(text, {"__builtins__": {}})


def test_equations_in_a_text() -> None:
    text = "First 3 + 4 = 7. 7 * 2 = 15, wait, 7 * 2 = 14; x = 3 and so 14 / 4 = 3.5."
    assert find_equations(text) == [
        (True, Fraction(7)),
        (False, Fraction(15)),
        (True, Fraction(14)),
        (True, Fraction(7, 2)),
    ]
    assert find_equations("= = 3 = x ** = 4") == []


def test_long_texts_cost_little() -> None:
    for text in ("1" * 50_000, "1=" * 20_000, "(" * 20_000 + "=1"):
        assert all(holds for holds, _ in find_equations(text))


def test_latex_answers_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "math_verify":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    make_grader.cache_clear()
    with pytest.raises(MissingExtraError, match=r"math-verify.*turngym\[math\]"):
        make_grader("math-verify")
    with pytest.raises(UnknownNameError, match="Did you mean 'numbers'"):
        make_grader("number")


def test_math_verify_reads_latex() -> None:
    pytest.importorskip("math_verify", reason="the extra turngym[math] is not installed")
    make_grader.cache_clear()
    grader = make_grader("math-verify")
    assert grader.is_right("\\sqrt{8}", "2\\sqrt{2}")
    assert grader.is_right("2x + 2", "$2(x+1)$")
    assert grader.is_right("\\frac{\\sqrt{4}}{4}", "1/2")
    assert not grader.is_right("\\sqrt{7}", "2\\sqrt{2}")
    assert not grader.is_right("", "\\sqrt{2}")
    assert not grader.is_right("0.3333", "1/3")  # plain numbers stay exact
    assert grader.can_grade("\\sqrt{2}")
    assert not grader.can_grade(" ")
    assert pickle.loads(pickle.dumps(grader)) is grader
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(grader.is_right("\\sqrt{4}", "2")))
    thread.start()
    thread.join()
    assert found == [True]
    assert grading.GRADERS == ("numbers", "math-verify")
