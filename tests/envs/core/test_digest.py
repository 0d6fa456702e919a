"""Digests: stable values, different for different data, the same in every process."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.digest import digest_of
from turngym.envs.core.errors import BadValueError
from turngym.envs.core.randomness import EpisodeRandom

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: int
    y: float


@dataclass
class Other:
    x: int
    y: float


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def digest(self) -> str:
        return self.name


@given(PLAIN)
def test_json_round_trips_keep_the_digest(value: object) -> None:
    assert digest_of(json.loads(json.dumps(value))) == digest_of(value)


@given(PLAIN, PLAIN)
def test_different_data_have_different_digests(one: object, two: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (digest_of(one) == digest_of(two)) == same


DIFFERENT = [
    None, True, False, 0, 1, 1.0, "1", b"1", "", b"", [], [[]], {}, [1, 2], [12], [1, [2]],
    {"a": 1}, {"a": "1"}, {1: "a"}, {1, 2}, {1}, Colour.RED, Colour.BLUE, Point(1, 2.0),
    Other(1, 2.0), Point(1, 2.5), np.zeros(2), np.zeros((2, 1)), np.zeros(2, dtype=np.int8),
    np.array(["a"], dtype=object), Path("a"), "a", ["ab", "c"], ["a", "bc"], Named("a"), Named("b"),
    np.random.default_rng(1), np.random.default_rng(2), "\ud800", float("nan"), float("inf"), -0.0,
]  # fmt: skip


def test_kinds_do_not_collide() -> None:
    assert len({digest_of(value) for value in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([1, 2], (1, 2)),
        ([1, 2], deque([1, 2])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({3, 1, 2}, {2, 3, 1}),
        (np.int64(5), 5),
        (np.bool_(True), True),
        (np.float64(0.5), 0.5),
        (np.arange(6).reshape(2, 3).T, np.ascontiguousarray(np.arange(6).reshape(2, 3).T)),
        (np.array([1, 2], dtype=">i4"), np.array([1, 2], dtype="<i4")),
    ],
)
def test_the_same_in_another_form(one: object, two: object) -> None:
    assert digest_of(one) == digest_of(two)


def test_a_known_value_never_changes() -> None:
    assert digest_of({"a": [1, 2.5, "x", None, True]}) == "91019c9884fd9d388b7349d325db8057"


def test_names_that_were_seen_before_are_still_told_apart() -> None:
    """Digests of names are kept; a member of an enumeration equals its string, and is another."""

    class Word(enum.StrEnum):
        A = "a"

    plain, member = digest_of({"a": 1}), digest_of({Word.A: 1})
    assert plain != member
    assert (digest_of({Word.A: 1}), digest_of({"a": 1})) == (member, plain)
    assert len({digest_of({key: 0}) for key in (1, True, 1.0, "1")}) == 4


def test_keys_that_are_alike_have_no_order() -> None:
    """A number that is none equals nothing, so that several are keys of one dictionary."""
    one, two = float("nan"), float("nan")
    assert digest_of({one: 1, two: 2}) == digest_of({one: 2, two: 1})


def test_lists_nest_as_deep_as_calls() -> None:
    value: Any = 1
    for _ in range(600):
        value = [value]
    assert digest_of(value) == "6dec7e746a0fa7f2a808929e2b286645"


def test_a_stand_in_has_the_digest_of_what_it_stands_for() -> None:
    """As a proxy of a library does, whose class is that of the object behind it."""

    class Proxy:
        __class__ = property(lambda _: bool)  # pyright: ignore[reportIncompatibleMethodOverride]

    assert digest_of(Proxy()) == digest_of(True)


@pytest.mark.parametrize("value", [object(), len, Point, [1, {"a": object()}]])
def test_objects_without_a_stable_form_are_refused(value: object) -> None:
    with pytest.raises(BadValueError, match="has no stable form"):
        digest_of(value)


def test_streams_tell_their_position() -> None:
    fresh, drawn = EpisodeRandom(5), EpisodeRandom(5)
    assert digest_of(fresh) == digest_of(EpisodeRandom(5)) != digest_of(EpisodeRandom(6))
    drawn.generator.integers(10, dtype=np.int32)  # leaves half of a 64-bit number for later
    half = digest_of(drawn)
    assert half == digest_of(drawn.fork()) != digest_of(fresh)
    drawn.generator.integers(10, dtype=np.int32)
    assert digest_of(drawn) != half


def test_forked_streams_draw_the_same_and_apart() -> None:
    stream = EpisodeRandom(5)
    unused = stream.fork()
    first = stream.generator.random()
    assert unused.generator.random() == first
    twin = stream.fork().fork()
    twin.generator.random()
    second = stream.fork()
    assert second.generator.random() == stream.generator.random()


def test_the_same_in_another_process() -> None:
    code = (
        "from turngym.envs.core.digest import digest_of;"
        "print(digest_of([{'b', 'a', 'c'}, {'x': {1, 2}}, frozenset({'q'})]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert found == {digest_of([{"b", "a", "c"}, {"x": {1, 2}}, frozenset({"q"})])}
