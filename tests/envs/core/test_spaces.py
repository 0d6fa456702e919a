"""The text space: what it holds, how it samples, that gymnasium can batch it."""

from __future__ import annotations

import copy
import pickle

import pytest
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError
from turngym.envs.core.spaces import Utf8Text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_holds_every_text(text: str) -> None:
    assert text in Utf8Text(50)


@pytest.mark.parametrize("value", ["four", 3, None, b"abc", "a\ud800"])
def test_refuses(value: object) -> None:
    assert value not in Utf8Text(3)


def test_samples_are_seeded_and_inside() -> None:
    one, two = Utf8Text(20, seed=3), Utf8Text(20, seed=3)
    drawn = [one.sample() for _ in range(50)]
    assert drawn == [two.sample() for _ in range(50)]
    assert all(text in one for text in drawn)
    assert len(set(drawn)) > 40
    with pytest.raises(BadValueError, match="mask"):
        one.sample(mask="x")


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "9"])
def test_a_bad_bound_is_refused(size: object) -> None:
    with pytest.raises(BadValueError, match="max_chars"):
        Utf8Text(size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "twin_of", [copy.deepcopy, Utf8Text.fork, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_copies_sample_on_their_own(twin_of: object) -> None:
    space = Utf8Text(30, seed=1)
    space.sample()
    twin = twin_of(space)  # type: ignore[operator]
    assert twin == space
    assert hash(twin) == hash(space)
    ahead = [twin.sample() for _ in range(5)]
    assert [space.sample() for _ in range(5)] == ahead


def test_equality_is_the_bound() -> None:
    assert Utf8Text(5) == Utf8Text(5, seed=1) != Utf8Text(6)
    assert repr(Utf8Text(5)) == "Utf8Text(max_chars=5)"


def test_json_and_batches() -> None:
    space = Utf8Text(9)
    assert space.from_jsonable(space.to_jsonable(["a", "ß"])) == ["a", "ß"]
    batched = batch_space(space, 3)
    assert ("a", "b", "c") in batched
    assert batched.sample() in batched
    assert not space.is_np_flattenable
