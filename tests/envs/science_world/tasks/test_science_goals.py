"""Goals: their numbers, how they are passed and failed, the score."""

from __future__ import annotations

import pytest

from turngym.envs.core.digest import digest_of
from turngym.envs.science_world.house.state import NONE, HouseState, get_terminal
from turngym.envs.science_world.tasks.build import start_episode
from turngym.envs.science_world.tasks.catalogue import TASKS, TaskKind, find_kind
from turngym.envs.science_world.tasks.checker import TaskState
from turngym.envs.science_world.tasks.goals import make_goals

ORDERED_AND_OPTIONAL = {
    **{"1-1": (3, 15), "1-2": (3, 15), "1-3": (3, 5), "1-4": (3, 18), "2-1": (3, 8)},
    **{"2-2": (3, 25), "2-3": (3, 25), "3-1": (2, 5), "3-2": (3, 5), "3-3": (2, 7)},
    **{"3-4": (2, 7), "4-1": (2, 4), "4-2": (2, 4), "4-3": (2, 4), "4-4": (2, 4)},
    **{"5-1": (4, 17), "5-2": (1, 28), "6-1": (1, 6), "6-2": (1, 5), "6-3": (2, 10)},
    **{"7-1": (1, 2), "7-2": (1, 2), "7-3": (2, 2), "8-1": (4, 5), "8-2": (4, 5)},
    **{"9-1": (1, 10), "9-2": (1, 10), "9-3": (1, 10), "10-1": (1, 50), "10-2": (1, 50)},
}


def started(task: str, variation: int = 0) -> tuple[HouseState, TaskState]:
    house = start_episode(find_kind(task), variation)
    assert isinstance(house.goals, TaskState)
    return house, house.goals


def the(house: HouseState, name: str) -> int:
    return next(house.find_named(name, house.universe))


@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: kind.id)
def test_numbers_of_goals(kind: TaskKind) -> None:
    first = make_goals(kind.id, kind.params(0), 0)
    assert (len(first.ordered), len(first.optional)) == ORDERED_AND_OPTIONAL[kind.id]


def test_three_ingredients_make_a_seventh_optional_goal_and_three_stages_three_goals() -> None:
    nuts = make_goals("6-1", find_kind("6-1").params(2), 2)
    assert len(nuts.optional) == 7
    stages = [len(make_goals("8-1", find_kind("8-1").params(v), v).ordered) for v in range(14)]
    assert sorted(set(stages)) == [3, 4]


def test_state_goals_are_passed_by_the_same_object_only() -> None:
    house, goals = started("boil", 14)
    cream, other = the(house, "ice cream"), house.make("ice cream")
    house.put(other, house.get_agent_place())
    house.focus = cream
    goals.check(house)
    assert (goals.progress.ordered, goals.completed) == (1, False)
    house.focus = other
    house.state[other] = "liquid"
    goals.check(house)
    assert goals.progress.ordered == 1
    house.focus = cream
    house.state[cream] = "liquid"
    goals.check(house)
    house.state[cream] = "gas"
    goals.check(house)
    assert (goals.completed, goals.score, goals.points) == (True, 1.0, 100)


def test_several_goals_are_passed_in_one_check_when_the_focus_burns() -> None:
    house, goals = started("boil", 12)
    marshmallow = the(house, "marshmallow")
    house.focus = marshmallow
    house.state[marshmallow], house.burning[marshmallow] = "liquid", True
    goals.check(house)
    assert goals.completed


def test_wrong_focus_fails_until_the_task_is_reset() -> None:
    house, goals = started("find-animal")
    house.focus = the(house, "orange")
    goals.check(house)
    assert (goals.failed, goals.score, goals.points) == (True, -1.0, -100)
    house.focus = the(house, "dove")
    goals.check(house)
    assert (goals.failed, goals.progress.ordered) == (True, 1)
    goals.reset()
    assert (goals.failed, goals.progress.ordered, goals.points) == (False, 0, 0)


def test_a_terminal_is_a_wrong_focus_where_a_wrong_focus_fails() -> None:
    for task, failed in (("find-animal", True), ("find-non-living-thing", False), ("9-1", True)):
        house, goals = started(task)
        house.focus = get_terminal(the(house, "battery"), 0)
        goals.check(house)
        assert goals.failed is failed


def test_the_focus_is_cleared_where_the_task_goes_on_with_another_thing() -> None:
    house, goals = started("lifespan-longest-lived-then-shortest-lived")
    params = find_kind("7-3").params(0)
    house.focus = the(house, params.long)
    goals.check(house)
    assert (house.focus, goals.progress.ordered, goals.failed) == (NONE, 1, False)
    house.focus = the(house, params.short)
    goals.check(house)
    assert goals.points == 100


def test_the_box_is_judged_by_the_temperature_of_the_moment() -> None:
    house, goals = started("use-thermometer", 0)
    params = find_kind("2-1").params(0)
    house.focus = the(house, "thermometer")
    goals.check(house)
    thing = the(house, params.object)
    house.focus = thing
    goals.check(house)
    house.heat[thing] = params.threshold + 1.0
    branch, twin = house.fork(), None
    branch.put(thing, the(branch, params.below))
    twin = branch.goals
    assert isinstance(twin, TaskState)
    twin.check(branch)
    assert (twin.failed, goals.failed) == (True, False)
    house.put(thing, the(house, params.above))
    goals.check(house)
    assert goals.completed


def test_stays_count_questions_twice_as_fast_with_a_focus() -> None:
    house, goals = started("identify-life-stages-1", 0)
    house.put(house.agent, house.places["outside"])
    for _ in range(3):
        goals.check(house)
    # A goal that is met in the first check makes it ask once more.
    assert goals.progress.memory[2:] == [4, 4, 4]
    house.focus = the(house, "wood")
    goals.check(house)
    assert goals.progress.memory[2:] == [6, 6, 6]
    house.put(house.agent, house.places["kitchen"])
    goals.check(house)
    assert goals.progress.memory[2:] == [0, 0, 0]


def test_goals_wait_for_the_goals_they_need() -> None:
    house, goals = started("boil", 0)
    wood, pit = the(house, "wood"), the(house, "fire pit")
    house.put(house.agent, house.places["outside"])
    house.burning[wood] = True
    goals.check(house)
    burns = next(i for i, g in enumerate(goals.goals.optional) if g.text == "ignite wood")
    assert not goals.progress.optional[burns]
    house.put(wood, pit)
    goals.check(house)
    assert goals.progress.optional[burns]
    assert "wood1" in goals.progress.keys


def test_deeds_count_from_the_moment_a_goal_is_first_looked_at() -> None:
    house, goals = started("inclined-plane-determine-angle", 0)
    params = find_kind("9-1").params(0)
    watch = next(house.find_named("stopwatch", house.places["workshop"]))
    house.put(house.agent, house.places["workshop"])
    block = next(house.find_named(params.block, house.places["workshop"]))
    goals.note(house, "look at", watch)
    goals.check(house)
    house.put(block, next(house.find_named("inclined plane", house.places["workshop"])))
    house.on[watch] = True
    goals.check(house)
    house.on[watch] = False
    goals.check(house)
    before = sum(goals.progress.optional)
    goals.note(house, "look at", watch)
    goals.check(house)
    assert sum(goals.progress.optional) == before + 1


def test_score_of_optional_goals() -> None:
    house, goals = started("lifespan-longest-lived", 0)
    house.put(house.agent, house.places["outside"])
    goals.check(house)
    assert goals.points == 50
    house.focus = the(house, find_kind("7-1").params(0).long)
    goals.check(house)
    assert goals.points == 100


def test_forks_are_apart_and_have_equal_digests() -> None:
    house, goals = started("grow-plant", 5)
    goals.check(house)
    twin = goals.fork()
    assert digest_of(twin) == digest_of(goals)
    house.put(house.agent, house.places["greenhouse"])
    twin.check(house)
    assert digest_of(twin) != digest_of(goals)
    assert goals.points < twin.points
