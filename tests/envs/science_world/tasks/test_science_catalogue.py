"""Tasks, variations, splits, names and texts."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.science_world.tasks.catalogue import TASKS, find_kind, split_ranges

COUNTS = (
    *(30, 30, 30, 30, 540, 436, 300, 20, 20, 900, 600, 300, 300, 300, 300, 126, 126),
    *(32, 36, 36, 125, 125, 125, 14, 10, 168, 1386, 162, 120, 480),
)
TEXTS = "d9ae398c6e37ed5b81e1e5f804ec896d9925212a4be885071688c38e57e344f9"
"""SHA-256 of all texts in order, with newlines between; they were compared with the original's."""


def test_there_are_as_many_variations_as_in_the_original() -> None:
    assert tuple(len(kind.variations) for kind in TASKS) == COUNTS
    assert sum(COUNTS) == 7207


def test_splits_are_those_of_the_original() -> None:
    sizes = [sum(len(kind.split(name)) for kind in TASKS) for name in ("train", "dev", "test")]
    assert sizes == [3592, 1796, 1819]
    starts = {kind.id: (kind.split("dev").start, kind.split("test").start) for kind in TASKS}
    assert starts["1-1"] == (14, 21)
    assert starts["8-2"] == (4, 6)
    assert starts["9-2"] == (692, 1038)


def test_splits_of_small_tasks() -> None:
    lengths = [tuple(len(part) for part in split_ranges(count)) for count in range(6)]
    assert lengths == [(0, 0, 0), (1, 0, 1), (1, 0, 1), (1, 1, 1), (2, 1, 1), (2, 1, 2)]


def test_no_variation_is_in_two_splits() -> None:
    for kind in TASKS:
        train, dev, test = (set(kind.split(name)) for name in ("train", "dev", "test"))
        assert train.isdisjoint(dev | test)
        assert dev.isdisjoint(test)


def test_all_texts_are_those_of_the_original() -> None:
    texts = [kind.text(v) for kind in TASKS for v in range(len(kind.variations))]
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest() == TEXTS


@pytest.mark.parametrize(
    ("name", "variation", "start"),
    [
        ("boil", 0, "Your task is to boil water. For compounds without a boiling point"),
        ("9-2", 0, "Your task is to determine which of the two inclined planes (paper, cloth)"),
        ("9-3", 80, "Your task is to determine which of the two inclined planes (unknown material"),
        ("10-2", 240, "Your task is to determine whether short plant height is a dominant or"),
        ("2-3", 0, "Your task is to measure the melting point of solid unknown substance C,"),
    ],
)
def test_some_texts(name: str, variation: int, start: str) -> None:
    assert find_kind(name).text(variation).startswith(start)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("1-1", "boil"),
        ("Boil", "boil"),
        ("task-1-boil", "boil"),
        ("Matter Changes of State (Boiling)", "boil"),
        ("task-2a-test-conductivity", "test-conductivity"),
        ("measure-melting-point-(known-substance)", "measure-melting-point-known-substance"),
        ("task-10-mendellian-genetics-(known-plant)", "mendelian-genetics-known-plant"),
        ("Biology Identify life stages (plant)", "identify-life-stages-1"),
    ],
)
def test_names_of_tasks(name: str, wanted: str) -> None:
    assert find_kind(name).name == wanted


def test_every_task_answers_to_its_names() -> None:
    for kind in TASKS:
        for name in (kind.id, kind.name, f"{kind.topic} {kind.title}", f"task-7-{kind.name}"):
            assert find_kind(name) is kind


@pytest.mark.parametrize("name", ["", "boyl", "1-5", 3])
def test_unknown_tasks_are_refused(name: Any) -> None:
    with pytest.raises(UnknownNameError, match="unknown task"):
        find_kind(name)


def test_unknown_variations_and_splits_are_refused() -> None:
    kind = find_kind("boil")
    odd: tuple[Any, ...] = (-1, 30, True, "0")
    for variation in odd:
        with pytest.raises(BadValueError, match="variation"):
            kind.params(variation)
    with pytest.raises(UnknownNameError, match="split"):
        kind.split("validation")
