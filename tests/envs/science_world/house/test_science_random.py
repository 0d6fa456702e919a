"""Java's generator: golden numbers, the shuffle, jumps and copies."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.digest import digest_of
from turngym.envs.science_world.house.java_random import JavaRandom

SEEDS = st.integers(min_value=-(2**47), max_value=2**48)


@pytest.mark.parametrize(
    ("seed", "bound", "expected"), [(0, 100, [60, 48, 29, 47, 15]), (42, 10, [0, 3, 8, 4, 0])]
)
def test_next_int_gives_the_numbers_of_java(seed: int, bound: int, expected: list[int]) -> None:
    random = JavaRandom(seed)
    assert [random.next_int(bound) for _ in expected] == expected


def test_floats_and_booleans_give_the_numbers_of_java() -> None:
    assert JavaRandom(42).next_double() == 0.7275636800328681
    assert JavaRandom(42).next_float() == pytest.approx(0.7275637, abs=1e-7)
    assert JavaRandom(42).next_boolean() is True
    assert JavaRandom(0).bits(32) == 2**32 - 1155484576
    assert JavaRandom(42).bits(32) == 2**32 - 1170105035


def test_powers_of_two_take_the_high_bits() -> None:
    random, plain = JavaRandom(7), JavaRandom(7)
    assert random.next_int(8) == plain.bits(31) >> 28


def test_shuffle_is_that_of_scala() -> None:
    letters = ["apple", "avocado", "banana", "cherry", "lemon", "orange", "peach", "pea"]
    drawn = JavaRandom(0).shuffled(letters)
    assert sorted(drawn) == sorted(letters)
    walk, random = list(letters), JavaRandom(0)
    for size in range(8, 1, -1):
        other = random.next_int(size)
        walk[size - 1], walk[other] = walk[other], walk[size - 1]
    assert drawn == walk
    assert letters[0] == "apple"


@given(seed=SEEDS, steps=st.integers(0, 300))
def test_a_skip_equals_that_many_draws(seed: int, steps: int) -> None:
    walked, jumped = JavaRandom(seed), JavaRandom(seed)
    for _ in range(steps):
        walked.bits(31)
    jumped.skip(steps)
    assert walked == jumped


@given(seed=SEEDS, bound=st.integers(1, 2**31 - 1))
def test_numbers_stay_below_the_bound(seed: int, bound: int) -> None:
    assert 0 <= JavaRandom(seed).next_int(bound) < bound


@given(seed=SEEDS)
def test_copies_go_on_alike_and_apart(seed: int) -> None:
    random = JavaRandom(seed)
    twin, deep = random.fork(), copy.deepcopy(random)
    assert digest_of(twin) == digest_of(random) == digest_of(deep)
    first = random.next_int(1000)
    assert (twin.next_int(1000), deep.next_int(1000)) == (first, first)
    random.bits(1)
    assert digest_of(twin) != digest_of(random)
