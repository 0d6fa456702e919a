"""Generated houses: splits by rooms, the original's statistics, what makes a task."""

from __future__ import annotations

from collections import Counter

import pytest
from helpers.household import sample_games

from turngym.envs.household.engine.game import COOL, LIGHT, SIMPLE, TASK_TYPES, TWO, walk_bits
from turngym.envs.household.engine.state import start_game
from turngym.envs.household.houses.build import is_playable
from turngym.envs.household.houses.source import HELD_OUT, load_house_tasks
from turngym.envs.household.houses.statistics import (
    ROOM_KINDS,
    count_statistics,
    load_statistics,
    make_statistics,
)


def test_test_has_rooms_of_its_own_and_dev_those_of_train() -> None:
    source = load_house_tasks("full", 0, TASK_TYPES)
    assert source.sizes() == {"train": None, "dev": HELD_OUT, "test": HELD_OUT}
    rooms = {
        split: {source.task(split, task).payload.room for task in range(150)}
        for split in source.sizes()
    }
    assert rooms["dev"] & rooms["train"]
    assert not rooms["test"] & (rooms["train"] | rooms["dev"])
    assert len(rooms["train"]) > 60
    assert len(rooms["test"]) > 25


def test_tasks_are_a_function_of_seed_split_and_index() -> None:
    source = load_house_tasks("full", 3, TASK_TYPES)
    again = type(source)("full", 3, TASK_TYPES)
    assert again.task("test", 7).digest == source.task("test", 7).digest
    assert source.task("test", 8).digest != source.task("test", 7).digest
    other = load_house_tasks("full", 4, TASK_TYPES)
    assert other.task("test", 7).digest != source.task("test", 7).digest
    assert source.index_of("dev", "dev/7") == 7
    assert source.index_of("dev", "test/7") is None


def test_rooms_and_things_are_as_many_as_the_original_s() -> None:
    source = load_house_tasks("full", 0, TASK_TYPES)
    games = [source.task("train", task).payload for task in range(400)]
    statistics = load_statistics()
    whole = sum(row.weight for row in statistics.rooms.values())
    expected = {"receptacles": 0.0, "objects": 0.0}
    for row in statistics.rooms.values():
        for name, table in (("receptacles", row.receptacles), ("objects", row.objects)):
            for counts in table.values():
                total = sum(int(count) * times for count, times in counts.items())
                expected[name] += total / whole
    receptacles = sum(len(game.room.names) for game in games) / len(games)
    objects = sum(len(game.things.names) for game in games) / len(games)
    assert receptacles == pytest.approx(expected["receptacles"], rel=0.12)
    assert objects == pytest.approx(expected["objects"], rel=0.12)
    kinds = Counter(game.goal.kind for game in games)
    assert set(kinds) == set(TASK_TYPES)
    assert min(kinds.values()) > 20


@pytest.mark.parametrize("size", ["full", "micro"])
def test_every_task_can_be_won_and_is_not_won_at_first(size: str) -> None:
    source = load_house_tasks(size, 1, TASK_TYPES)
    for task in range(60):
        game = source.task("dev", task).payload
        assert is_playable(game)
        if game.goal.kind in (SIMPLE, TWO):
            assert not any(game.contents[place] & game.wanted for place in game.targets)
        if game.goal.kind == LIGHT:
            assert game.lamps
        if size == "micro":  # the original has things where they cannot be put back
            for fits, mask in zip(game.fits, game.contents, strict=True):
                assert not mask & game.things.pickupable & ~fits
        lying = Counter(obj for mask in game.contents for obj in walk_bits(mask))
        assert set(lying.values()) == {1}
        assert start_game(game).opened == 0


def test_chosen_types_alone_are_drawn() -> None:
    source = load_house_tasks("full", 0, (COOL,))
    assert {source.task("test", task).payload.goal.kind for task in range(20)} == {COOL}


def test_statistics_are_counted_from_games() -> None:
    counted = make_statistics(count_statistics(sample_games()))
    assert set(counted.rooms) == set(ROOM_KINDS.values())
    kitchen = counted.rooms["kitchen"]
    assert kitchen.weight == 6
    assert kitchen.receptacles["microwave"] == {"1": 6}
    assert kitchen.openable["fridge"] == 1.0
    assert sum(kitchen.objects["apple"].values()) == 6
    assert counted.noted == 1.0
    shipped = load_statistics()
    for name, types in counted.able.items():
        assert set(types) <= set(shipped.able[name])
