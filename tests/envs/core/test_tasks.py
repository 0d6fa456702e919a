"""Tasks by index, by id and by draw, and the errors of wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.guess_worlds import COUNTS, Secret, Secrets

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.tasks import (
    ENDLESS,
    Task,
    draw_task,
    find_task,
    get_default_split,
    get_split_size,
)


class Sized(Secrets):
    def __init__(self, **sizes: int | None) -> None:
        self.given = sizes

    def sizes(self):
        return self.given

    def task(self, split, index):
        return Task(f"{split}/{index}", split, index, Secret(index, 0, 9))


def test_by_index_and_by_id() -> None:
    by_index = find_task(Secrets(), "dev", 3, "W")
    assert (by_index.id, by_index.payload.number) == ("dev/3", 309)
    assert find_task(Secrets(), "dev", "dev/3", "W") == by_index
    assert find_task(Secrets(), None, "dev/3", "W") == by_index
    assert find_task(Secrets(), None, np.int64(3), "W").id == "train/3"


@pytest.mark.parametrize("index", [-1, 20, 10**9])
def test_an_index_out_of_range_says_the_range(index: int) -> None:
    with pytest.raises(BadValueError, match=r"W: task .* not in split 'dev'; expected .* 0 to 19"):
        find_task(Secrets(), "dev", index, "W")


@pytest.mark.parametrize("index", [True, 1.0, None, [1]])
def test_an_index_of_another_type_is_refused(index: object) -> None:
    with pytest.raises(BadValueError, match="expected an index or a task id"):
        find_task(Secrets(), "dev", index, "W")  # type: ignore[arg-type]


def test_an_unknown_id_shows_real_ones() -> None:
    with pytest.raises(
        UnknownNameError, match=r"W: unknown task id in split 'dev' 'dev/99'.*dev/0"
    ):
        find_task(Secrets(), "dev", "dev/99", "W")
    with pytest.raises(UnknownNameError, match=r"in any split 'nope'.*test/0"):
        find_task(Secrets(), None, "nope", "W")


def test_unknown_and_empty_splits() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'train'"):
        find_task(Secrets(), "trian", 0, "W")
    with pytest.raises(BadValueError, match="split 'dev' holds no task"):
        get_split_size(Sized(train=2, dev=0), "dev", "W")
    assert get_default_split(Sized(dev=3, train=2)) == "train"
    assert get_default_split(Sized(train=0, dev=3)) == "dev"
    assert get_default_split(Sized(train=None)) == "train"
    with pytest.raises(BadValueError, match="holds no task"):
        draw_task(Sized(train=0), None, np.random.default_rng(1), "W")


def test_draws_are_uniform_over_the_split() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_task(Secrets(), "dev", rng, "W").index for _ in range(4000)]
    counts = np.bincount(drawn, minlength=COUNTS["dev"])
    assert counts.size == COUNTS["dev"]
    assert abs(counts - 200).max() < 70  # five standard deviations


def test_a_split_without_end() -> None:
    drawn = draw_task(Sized(train=None), "train", np.random.default_rng(0), "W")
    assert 1000 < drawn.index < ENDLESS
    assert find_task(Sized(train=None), "train", 10**12, "W").index == 10**12


def test_the_digest_is_of_the_content() -> None:
    one, two = Secrets().task("dev", 1), Secrets().task("dev", 1)
    assert one.digest == two.digest
    assert Task(one.id, one.split, one.index, Secret(9, 0, 9)).digest != one.digest


def test_numpy_may_count_the_tasks() -> None:
    size = get_split_size(Sized(dev=np.int64(7)), "dev", "Test-v0")  # type: ignore[arg-type]
    assert type(size) is int


@pytest.mark.parametrize("size", [-3, "all", 2.5])
def test_a_size_is_a_number_of_tasks(size: object) -> None:
    with pytest.raises(BadValueError, match=r"sizes\(\) says .* split 'dev'; expected a number"):
        get_split_size(Sized(dev=size), "dev", "Test-v0")  # type: ignore[arg-type]
