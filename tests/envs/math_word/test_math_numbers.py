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
from turngym.envs.math_word.arithmetic import evaluate
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
    ("text", "value"),
    [
        ("5 thousand", "5000"), ("5 million dollars", "5000000"), ("2 dozen eggs", "24"),
        ("1.5 billion", "1500000000"), ("5 hundred thousand", "500000"), ("$3 million", "3000000"),
        ("3 1/2 hundreds", "350"), ("-2 dozen", "-24"),
    ],
)  # fmt: skip
def test_number_words_multiply(text: str, value: str) -> None:
    assert read_quantity(text) == Quantity(Fraction(value))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("5cm", True), ("5 cm", True), ("3m", True), ("9.8 m/s²", True), ("40km/h", True),
        ("60 miles per hour", True), ("3 dollars/hour", True), ("12 p.m.", True), ("90°", True),
        ("20 °C", True), ("20° C", True), ("90 degrees", True), ("5 sq. ft.", True), ("3 L", True),
        ("12 square metres", True), ("3 person-days", True), ("8 times", True), ("25%", True),
        ("5 apples a day", False), ("25% of them", False), ("$3.50 each", False),
    ],
)  # fmt: skip
def test_units_are_passed_over(text: str, whole: bool) -> None:
    found = read_quantity(text)
    assert found is not None
    assert found.whole is whole


@pytest.mark.parametrize(
    "text",
    ["2x-y", "12i", "3n", "2 x", "2 x-y", "2 xy", "2 pi", "5thousand", "5k", "$5m", "$5 m",
     "5 half", "5 and a half", "3 thirds", "5 or six", "2 sin x", "5 km/", "3 m-n", "5 words/line",
     "5-inch", "2/x", "5 a", "2 theta"],
)  # fmt: skip
def test_letters_that_are_no_unit_make_it_no_number(text: str) -> None:
    assert read_quantity(text) is None
    assert not NumberGrader().can_grade(text)
    assert not NumberGrader().is_right(text[0], text)


@given(st.integers(0, 999), st.text("abcdefijknopqrtuvwxyz", min_size=1, max_size=2))
def test_variables_behind_a_number_are_never_dropped(number: int, letters: str) -> None:
    for text in (f"{number}{letters[0]}", f"{number}{letters}-y", f"{number} {letters} - y"):
        assert read_quantity(text) is None, text


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
        ("5 thousand", "5000", True), ("5 thousand", "5", False), ("5", "5 million", False),
        ("2", "2x-y", False), ("12", "12i", False), ("3", "3n", False), ("3n", "3", False),
    ],
)  # fmt: skip
def test_answers_are_compared_exactly(given: str, answer: str, right: bool) -> None:
    assert NumberGrader().is_right(given, answer) is right


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 + 4", "7"), ("7 - 2 * 3", "1"), ("(7 - 2) * 3", "15"), ("510 * 10 / 100", "51"),
        ("20 × 3 ÷ 4", "15"), ("-3 + 4", "1"), ("1,200 / 8", "150"), ("1 / 3 + 1/6", "1/2"),
        ("2 * (3 + (4 - 1))", "12"), ("$3 * 4", "12"), ("80% * 15", "12"), ("-50%", "-1/2"),
        ("(10 + 10)%", "1/5"), ("10 - 3 1/2", "13/2"), (".5 + 1", "3/2"),
    ],
)  # fmt: skip
def test_sums_are_worked_out(text: str, value: str) -> None:
    assert evaluate(text) == Fraction(value)


@pytest.mark.parametrize(
    "text", ["", "3 +", "+ 3 4", "3 / 0", "3 / (2 - 2)", "(3", "3)", "2 ** 3", "a", "1" * 121,
             "(" * 100, "7 % 3", "1,5", "% 3", "1 2/0"]
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
    assert grader.is_right("40", "40 km/h")
    assert grader.is_right("12 boys", "12")
    assert grader.is_right("5 thousand", "5000")
    assert grader.is_right("2x - y", "2x-y")
    for number, expression in (("2", "2x-y"), ("12", "12i"), ("3", "3n"), ("2", "2 pi")):
        assert not grader.is_right(number, expression)
    assert grader.can_grade("\\sqrt{2}")
    assert not grader.can_grade(" ")
    assert pickle.loads(pickle.dumps(grader)) is grader
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(grader.is_right("\\sqrt{4}", "2")))
    thread.start()
    thread.join()
    assert found == [True]
    assert grading.GRADERS == ("numbers", "math-verify")
