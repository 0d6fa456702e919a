"""Checks of settings: what is no number, or out of bounds, is refused with what was expected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import pytest

from turngym.envs import all_ids, find_environment
from turngym.envs.core.errors import (
    BadValueError,
    DataError,
    MissingExtraError,
    UnknownNameError,
)
from turngym.envs.core.registration import default_settings
from turngym.envs.core.settings import (
    check_bool,
    check_choices,
    check_integer,
    check_integers,
    check_kinds,
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


ODD: tuple[Any, ...] = (
    *(0, -1, True, False, 2.5, math.nan, math.inf, 1j, "", "nope", b"x", object(), np.int64(2)),
    *([], {}, [1], [""], ["", 3], [None], {"a": 1}, (1, 2, 3), [[1]]),
)


OURS = [env_id for env_id in all_ids(hidden=True) if find_environment(env_id).builtin]


@pytest.mark.parametrize("env_id", OURS)
def test_odd_settings_are_told_or_played(env_id: str) -> None:
    """Raw errors came from deep inside, and an empty text or 0 could stand for the default."""
    small = find_environment(env_id).smallest
    for name, default in default_settings(env_id).items():
        for value in ODD:
            if name == "size" and value is default:
                continue
            with suppress(BadValueError, UnknownNameError, DataError, MissingExtraError):
                gym.make(env_id, **{**small, name: value}).reset(seed=1)


@pytest.mark.parametrize(
    ("env_id", "settings", "reason"),
    [
        ("PaperCrawler-v0", {"preset": ""}, "unknown preset ''"),
        ("PaperCrawler-v0", {"size": 0}, "size is 0; expected a text or None"),
        ("PaperCrawler-v0", {"answers": []}, r"answers is \[\]; expected a text or None"),
        ("PaperCrawler-v0", {"selector": 2.5}, "selector is 2.5; expected 'lm:FOLDER', or an obj"),
        ("PaperCrawler-v0", {"selector": {}}, "selector is {}; expected 'lm:FOLDER', or an object"),
        ("SearchQA-v0", {"tools": 0}, "tools is 0; expected a text or a list of texts"),
        ("SearchQA-v0", {"outcome": ["em"]}, r"outcome is \['em'\]; expected a text"),
        ("WebQA-v0", {"snippets": ""}, "unknown snippets ''"),
        ("WebQA-v0", {"allow_private": "no"}, "allow_private is 'no'; expected True or False"),
        ("MathWord-v0", {"topics": []}, "topics is empty; expected at least one name"),
        ("Retail-v0", {"tiers": 2.5}, "tiers is 2.5; expected some of"),
        ("ScienceWorld-v0", {"simplifications": 3}, "simplifications is 3; expected a text or a"),
        ("ScienceWorld-v0", {"tasks": []}, "tasks is empty; name a task, or leave it out"),
        ("Household-v0", {"tasks": False}, "tasks is False; expected a text or a list of texts"),
    ],
)
def test_a_setting_of_another_kind_is_named(
    env_id: str, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises((BadValueError, UnknownNameError), match=reason):
        gym.make(env_id, **{**find_environment(env_id).smallest, **settings})


def test_what_fits_its_declaration_is_let_pass() -> None:
    class Thing:
        def __init__(
            self,
            *,
            name: str = None,  # type: ignore[assignment]  # noqa: RUF013
            names: str | Iterable[str] = (),
            file: str | Path | None = None,
            kinds: Mapping[str, Any] | None = None,
            number: float = 0.0,
            part: object = None,
            unknown: Nowhere = None,  # type: ignore[name-defined]  # noqa: F821
        ) -> None: ...

    check_kinds(Thing, {"name": None, "names": {"a"}, "file": Path(), "kinds": {}})
    check_kinds(Thing, {"names": (name for name in "ab"), "number": "3", "part": 3, "unknown": 3})
    for name, value in {"name": 3, "names": ["a", 3], "file": b"x", "kinds": []}.items():
        with pytest.raises(BadValueError, match=rf"Thing: {name} is .*; expected a "):
            check_kinds(Thing, {name: value})


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
