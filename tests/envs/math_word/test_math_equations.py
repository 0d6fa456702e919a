"""Statements of written steps: which hold, and that a true one is never called false."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.math_word.arithmetic import evaluate
from turngym.envs.math_word.equations import find_equations
from turngym.envs.math_word.quantities import write_number


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
    for text in ("1" * 50_000, "1=" * 20_000, "(" * 20_000 + "=1", "1+1=2 " * 5_000):
        assert all(holds for holds, _ in find_equations(text))


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("80% of 15 = 12", "12"), ("15 * 80% = 12", "12"), ("80 percent of 15 = 12", "12"),
        ("12 = 80% of 15", "12"), ("20% of $50 = $10", "10"), ("3/4 = 75%", "3/4"),
        ("30 / 40 * 100 = 75%", "75"), ("3/4 * 100% = 75", "75"), ("100% - 20% = 80", "80"),
        ("7 = 3 + 4", "7"), ("The total is 7 = 3 + 4.", "7"), ("3 + 4 = 2 + 5", "7"),
        ("2 x 3 = 6", "6"), ("2x3 = 6", "6"), ("(2 + 1) x 3 = 9", "9"), ("2 X $3 = $6", "6"),
        ("1/2 of 20 = 10", "10"), ("2/3 of (4 + 5) = 6", "6"), ("- 3 + 4 = 7", "7"),
        ("so:\n- 3 + 4 = 7", "7"), ("* 3 + 4 = 7", "7"), ("Total: -3 + 4 = 1", "1"),
        ("10 \u2013 3 = 7", "7"), (".5 + .5 = 1", "1"), ("5 / 2 = 2 1/2", "5/2"),
        ("Step 1: 3 + 4 = 7", "7"), ("-$4 + $6 = $2", "2"), ("3 + 4 = 7!", "7"),
    ],
)  # fmt: skip
def test_forms_of_a_true_statement(text: str, stated: str) -> None:
    assert find_equations(text) == [(True, Fraction(stated))]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("200 - 20% = 160", "160"), ("200 + 20% = 240", "240"), ("160 = 200 - 20%", "160"),
        ("$80 - 15% = $68", "68"), ("(200 - 20%) * 2 = 320", "320"), ("50 * 4 - 20% = 160", "160"),
        ("200 - 20 percent = 160", "160"), ("200 - 10% - 10% = 162", "162"),
        ("3 * (50 + 10%) = 165", "165"), ("50% + 20% = 70%", "7/10"), ("100 - 20% = 80", "80"),
        ("75 + 5% = 80%", "80"), ("200 - 20% of 50 = 190", "190"),
    ],
)  # fmt: skip
def test_a_percentage_is_one_of_the_amount_before_it(text: str, stated: str) -> None:
    assert find_equations(text) == [(True, Fraction(stated))]


@pytest.mark.parametrize(
    "text",
    ["200 - 20% = 180", "200 - 20% = 40", "20% - 200 = 160", "50% + 20% = 60%", "200 - 20% = 161",
     "100% - 20% - 50% = 40%", "200 - 20% of 50 = 160", "200 * 20% = 160"],
)  # fmt: skip
def test_percentages_are_not_read_at_will(text: str) -> None:
    assert [holds for holds, _ in find_equations(text)] == [False]


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("10 / 3 = 3.33", "10/3"), ("10/3=3.3", "10/3"), ("20 / 3 = 6.67", "20/3"),
        ("3.33 = 10 / 3", "10/3"), ("10 / 3 = 3.33...", "10/3"), ("1 / 3 = 33%", "1/3"),
        ("2 / 3 = 66.7%", "2/3"), ("2 / 3 * 100 = 66.67%", "200/3"), ("1 / 8 = 0.13", "1/8"),
        ("$10.55 * 1.08 = $11.39", "11.394"), ("49.99 - 15% = 42.49", "42.4915"),
        ("-10 / 3 = -3.33", "-10/3"), ("10 / 3 = 3.33 metres each", "10/3"),
    ],
)  # fmt: skip
def test_a_result_may_be_rounded_to_its_decimals(text: str, exact: str) -> None:
    assert find_equations(text) == [(True, Fraction(exact))]


@pytest.mark.parametrize(
    "text",
    ["10 / 3 = 3.34", "10 / 3 = 3.32", "10 / 3 = 3", "7 / 2 = 4", "200 / 3 = 67", "20 / 3 = 6.66",
     "2 / 3 = 66%", "6.96 + 0.03 = 7.0", "1 / 250 = 0.0", "100 / 3 = 33%", "10 / 3 = 3.4",
     "3.33 * 3 = 10 / 1"],
)  # fmt: skip
def test_other_roundings_are_false(text: str) -> None:
    assert [holds for holds, _ in find_equations(text)] == [False]


def test_a_rounded_result_goes_on() -> None:
    """What follows is worked out from the number that is written."""
    assert find_equations("10 / 3 = 3.33 * 3 = 9.99") == [
        (True, Fraction(10, 3)),
        (True, Fraction("9.99")),
    ]


def test_statements_in_a_row() -> None:
    for text, results in (
        ("3 * 4 = 12 = 6 * 2", [12, 12]),
        ("3 + 4 = 7 - 2 = 5", [7, 5]),
        ("2 + 3 = 5 + 1 = 6", [5, 6]),
        ("3 + 4 = 7, 7 * 2 = 14", [7, 14]),
        ("- 3 + 4 = 7\n- 7 * 2 = 14", [7, 14]),
    ):
        assert find_equations(text) == [(True, result) for result in results]
    assert find_equations("3 + 4 = 7 - 2 = 6") == [(True, 7), (False, 6)]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("3 + 4 = 8", 8), ("80% of 15 = 1200", 1200), ("7 = 3 + 5", 7), ("2 x 3 = 7", 7),
        ("- 3 + 4 = 8", 8), ("so 3 + 4 = 8 apples", 8), ("Step 1: 3 + 4 = 8", 8),
        ("[1] 3 + 4 = 8", 8), ("3 + 4 = 8km", 8), ("x = 3 + 4 = 8", 8), ("3 + 4 = 8!", 8),
        ("3 + 4 = 8 - no wait", 8), ("<step> 3 + 4 = 8 </step>", 8), ("3 + 4 = 8 (sure)", 8),
    ],
)  # fmt: skip
def test_false_statements_are_still_found(text: str, stated: int) -> None:
    assert find_equations(text) == [(False, stated)]


@pytest.mark.parametrize(
    "text",
    ["7 = 7", "7 = 8", "499% = 499", "half of 20 = 10", "half of 20 - 4 = 6", "x - 3 + 5 = 4",
     "20% of the 15 + 2 = 5", "2^3 + 1 = 9", "8 / 1 = 2^3", "4 + 5 = 3²", "11 = 3 + 2y",
     "2 + 5 = 3y + 1", "10 : 2 + 1 = 6", "17 / 5 = 3 remainder 2", "17 / 5 = 3, remainder 2",
     "17 / 5 = 3 R 2", "20 / 3 = 6.66...", "3 / 2 = 1,5", "2000 + 3000 = 5 thousand",
     "5 / 2 = 2 and a half", "3 * 5 = 75% of the 20", "3 apples - 2 + 1 = 2",
     "1 + " * 40 + "1 = 41"],
)  # fmt: skip
def test_what_is_no_sum_or_more_than_one_is_not_judged(text: str) -> None:
    assert find_equations(text) == []


_FORMS = st.sampled_from(
    ["{sum} = {result}", "{result} = {sum}", "{sum} = {result} = {sum}", "- {sum} = {result}",
     "({sum}) = {result}", "{sum} = ${result}", "{sum} = {result} apples"]
)  # fmt: skip
_BEFORE = st.sampled_from(["", "So ", "First, ", "Step 2: ", "I see.\n", "He has 3 pens. ", "x = "])
_AFTER = st.sampled_from(["", ".", " in all.", ", so we go on", "; done", "\nNext"])
_NUMBERS = st.integers(0, 1000)


@given(_NUMBERS, st.sampled_from(["+", "-", "*", "×", "x", "X", "/", "÷", "of", "% of", "% *"]),
       st.integers(1, 1000), _FORMS, _BEFORE, _AFTER)  # fmt: skip
def test_a_true_sum_is_never_called_false(
    first: int, sign: str, second: int, form: str, before: str, after: str
) -> None:
    plain = {"×": "*", "x": "*", "X": "*", "÷": "/", "of": "*", "% of": "/ 100 *", "% *": "/ 100 *"}
    value = evaluate(f"{first} {plain.get(sign, sign)} {second}")
    assert value is not None
    sum_ = f"{first} {sign} {second}".replace(" %", "%")
    said = form.format(sum=sum_, result=write_number(value))
    if form.startswith("-"):  # an item of a list
        before = before.removesuffix("x = ")
    found = find_equations(f"{before}{said}{after}")
    assert found
    assert all(holds for holds, _ in found)


@given(_NUMBERS, st.sampled_from(["+", "-", "*", "x"]), _NUMBERS, st.integers(1, 99), _BEFORE)
def test_a_false_sum_is_always_found(
    first: int, sign: str, second: int, off: int, before: str
) -> None:
    value = evaluate(f"{first} {sign.replace('x', '*')} {second}")
    assert value is not None
    said = f"{before}{first} {sign} {second} = {value + off}."
    assert find_equations(said) == [(False, value + off)]


@given(st.integers(1, 999), st.integers(1, 999))
def test_a_share_may_be_written_in_percent(part: int, all_: int) -> None:
    share = Fraction(part, all_)
    if (share * 100000).denominator == 1:
        for said in (f"{part} / {all_} = {write_number(share * 100)}%",
                     f"{part} / {all_} * 100 = {write_number(share * 100)} percent"):  # fmt: skip
            assert [holds for holds, _ in find_equations(said)] == [True]
