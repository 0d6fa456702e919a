"""Checks of settings: what is no number, or out of bounds, is refused with what was expected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import pytest

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.settings import (
    check_bool,
    check_choices,
    check_integer,
    check_integers,
    check_number,
    check_settings,
)


def test_what_is_within_bounds_is_returned() -> None:
    assert check_integer("n", 3, "Here", min=3) == 3
    assert check_integer("n", 3, "Here", min=1, max=3) == 3
    assert check_number("x", 0.5, "Here", min=0, max=1) == 0.5
    assert check_number("x", np.float32(0.5), "Here", above=0) == 0.5


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("Spawn-v0", "forced"),
        ("Spawn-v0", "deep"),
        ("Keys-v0", "revisits"),
        ("Judge-v0", "judged"),
        ("Household-v0", "admissible"),
        ("Retail-v0", "policy"),
        ("MathWord-v0", "skip_unreadable"),
    ],
)
def test_a_word_is_neither_true_nor_false(env_id: str, name: str) -> None:
    """`--env.forced no` played with forced boxes: the text is not empty."""
    for value in ("no", "False", 2):
        with pytest.raises(BadValueError, match=f"{name} is {value!r}; expected True or False"):
            gym.make(env_id, size="micro", **{name: value})
    assert check_bool("x", np.bool_(True), "Here") is True


@pytest.mark.parametrize("value", [True, "3", 3.0, None, 0])
def test_what_is_no_integer_of_the_range_is_refused(value: Any) -> None:
    with pytest.raises(BadValueError, match=r"Here: n is .*; expected an integer of at least 1"):
        check_integer("n", value, "Here", min=1)
    with pytest.raises(BadValueError, match="expected an integer from 1 to 2,000"):
        check_integer("n", value, "Here", min=1, max=2000)


@pytest.mark.parametrize("value", [True, "3", None, math.nan, math.inf, -1])
def test_what_is_no_number_of_the_range_is_refused(value: Any) -> None:
    with pytest.raises(BadValueError, match=r"Here: x is .*; expected a number of at least 0"):
        check_number("x", value, "Here", min=0)
    with pytest.raises(BadValueError, match="expected a number above 0"):
        check_number("x", value, "Here", above=0)
    with pytest.raises(BadValueError, match="expected a number from 0 to 1"):
        check_number("x", value, "Here", min=0, max=1)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    class Thing:
        def __init__(self, *, length: int = 0) -> None:
            self.length = length

    check_settings(Thing, ["length"])
    with pytest.raises(UnknownNameError, match=r"unknown setting 'lenght'.*'length'"):
        check_settings(Thing, ["lenght"])


@dataclass(frozen=True, kw_only=True)
class Declared:
    how: Literal["slow", "fast"] = "slow"
    n: int = 1
    limit: int | None = None
    share: int | float = 0.5
    on: bool = False


@dataclass(frozen=True, kw_only=True)
class More(Declared):
    size: Literal[1, 2] = 1
    steps: int = 3


def test_fields_are_checked_against_what_they_are_declared_as() -> None:
    for good in (Declared(), More(), More(how="fast", n=-2, limit=4, share=1, on=True, size=2)):
        check_choices(good)
        check_integers(good)
    for bad, words in (
        (More(how="fats"), "More.how is 'fats'; expected 'slow' or 'fast'"),  # type: ignore[arg-type]
        (More(size=3), "More.size is 3; expected 1 or 2"),  # type: ignore[arg-type]
    ):
        with pytest.raises(BadValueError, match=words):
            check_choices(bad)
    wrong: Any
    for wrong in (1.5, 2.0, True, "3", np.int64(3)):
        with pytest.raises(BadValueError, match=r"More.steps is .*; expected an integer\."):
            check_integers(More(steps=wrong))
        with pytest.raises(BadValueError, match=r"limit is .*; expected an integer, or None\."):
            check_integers(Declared(limit=wrong))
    with pytest.raises(BadValueError, match=r"n is None; expected an integer\."):
        check_integers(Declared(n=None))  # type: ignore[arg-type]
