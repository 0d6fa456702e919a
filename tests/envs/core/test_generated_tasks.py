"""Tasks drawn from an index."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core import generated_tasks
from turngym.envs.core.generated_tasks import DrawnTasks
from turngym.envs.core.randomness import make_generator
from turngym.envs.core.tasks import parse_index


@dataclass(frozen=True)
class Number:
    text: str
    pool: int


class Numbers(DrawnTasks[Number]):
    """A number below 12, so that held-out draws meet one another often."""

    def draw(self, pool: int, random: np.random.Generator) -> Number:
        return Number(str(random.integers(12)), pool)


class Counted(Numbers):
    draws = 0

    def draw(self, pool: int, random: np.random.Generator) -> Number:
        self.draws += 1
        return super().draw(pool, random)


@given(split=st.sampled_from(["train", "dev"]), index=st.integers(0, 500), size=st.integers(1, 500))
def test_a_number_is_found_under_its_id_alone(split: str, index: int, size: int) -> None:
    assert parse_index(split, f"{split}/{index}", None) == index
    assert parse_index(split, f"{split}/{index}", size) == (index if index < size else None)
    for other in (f"test/{index}", f"{split}/0{index}", f"{split}/+{index}", f"{split}/", split):
        assert parse_index(split, other, None) is None


def test_draws_depend_on_the_index_alone() -> None:
    forwards, backwards = Numbers(3, 5), Numbers(3, 5)
    there = [forwards.task("train", i).payload for i in range(9)]
    assert there == [backwards.task("train", i).payload for i in reversed(range(9))][::-1]
    assert there != [Numbers(4, 5).task("train", i).payload for i in range(9)]
    assert forwards.sizes() == {"train": None, "dev": 5, "test": 5}
    assert forwards.index_of("dev", "dev/4") == 4
    assert forwards.index_of("dev", "dev/5") is None


def test_held_out_tasks_differ_where_they_can() -> None:
    for split, pool in (("dev", 1), ("test", 2)):
        tasks = [Numbers(0, 8).task(split, i) for i in range(8)]
        assert len({task.payload.text for task in tasks}) == 8
        assert {task.payload.pool for task in tasks} == {pool}
    assert len([Numbers(0, 20).task("dev", i) for i in range(20)]) == 20


def test_endless_tasks_are_drawn_once_while_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_tasks, "REMEMBERED", 4)
    numbers, plain = Counted(3, 5), Numbers(3, 5)
    for index in (0, 1, 2, 1, 0):
        assert numbers.task("train", index) == plain.task("train", index)
    assert numbers.draws == 3
    for index in range(8):  # more than are kept: the first must be drawn again, alike
        numbers.task("train", index)
    before = numbers.draws
    assert numbers.task("train", 0) == plain.task("train", 0)
    assert numbers.draws == before + 1
    again = pickle.loads(pickle.dumps(numbers))
    assert again.task("train", 0) == plain.task("train", 0)
    assert again.draws == before + 2  # the memory does not travel
    numbers.forget()
    assert numbers.task("train", 0) == plain.task("train", 0)
    assert numbers.draws == before + 2


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**300)), min_size=1, max_size=6))
def test_a_generator_of_several_integers_is_numpys_own(words: list[int]) -> None:
    numpys = np.random.Generator(np.random.PCG64(tuple(words)))
    ours = make_generator(*words)
    assert ours.bit_generator.state == numpys.bit_generator.state
    assert ours.integers(2**60) == numpys.integers(2**60)
