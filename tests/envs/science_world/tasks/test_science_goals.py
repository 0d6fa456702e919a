"""Goals: their numbers, how they are passed and failed, the score."""

from __future__ import annotations

import pytest

from turngym.envs.digest import digest_of
from turngym.envs.science_world.tasks.catalogue import TASKS, TaskKind, find_kind
from turngym.envs.science_world.tasks.checker import TaskState
from turngym.envs.science_world.tasks.episode import start_world
from turngym.envs.science_world.tasks.goals_of import goals_of
from turngym.envs.science_world.world import NONE, World, terminal

ORDERED_AND_OPTIONAL = {
    **{"1-1": (3, 15), "1-2": (3, 15), "1-3": (3, 5), "1-4": (3, 18), "2-1": (3, 8)},
    **{"2-2": (3, 25), "2-3": (3, 25), "3-1": (2, 5), "3-2": (3, 5), "3-3": (2, 7)},
    **{"3-4": (2, 7), "4-1": (2, 4), "4-2": (2, 4), "4-3": (2, 4), "4-4": (2, 4)},
    **{"5-1": (4, 17), "5-2": (1, 28), "6-1": (1, 6), "6-2": (1, 5), "6-3": (2, 10)},
    **{"7-1": (1, 2), "7-2": (1, 2), "7-3": (2, 2), "8-1": (4, 5), "8-2": (4, 5)},
    **{"9-1": (1, 10), "9-2": (1, 10), "9-3": (1, 10), "10-1": (1, 50), "10-2": (1, 50)},
}


def started(task: str, variation: int = 0) -> tuple[World, TaskState]:
    world = start_world(find_kind(task), variation)
    assert isinstance(world.goals, TaskState)
    return world, world.goals


def the(world: World, name: str) -> int:
    return next(world.named(name, world.universe))


@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: kind.id)
def test_numbers_of_goals(kind: TaskKind) -> None:
    first = goals_of(kind.id, kind.params(0), 0)
    assert (len(first.ordered), len(first.optional)) == ORDERED_AND_OPTIONAL[kind.id]


def test_three_ingredients_make_a_seventh_optional_goal_and_three_stages_three_goals() -> None:
    nuts = goals_of("6-1", find_kind("6-1").params(2), 2)
    assert len(nuts.optional) == 7
    stages = [len(goals_of("8-1", find_kind("8-1").params(v), v).ordered) for v in range(14)]
    assert sorted(set(stages)) == [3, 4]


def test_state_goals_are_passed_by_the_same_object_only() -> None:
    world, goals = started("boil", 14)
    cream, other = the(world, "ice cream"), world.make("ice cream")
    world.put(other, world.here())
    world.focus = cream
    goals.check(world)
    assert (goals.progress.ordered, goals.completed) == (1, False)
    world.focus = other
    world.state[other] = "liquid"
    goals.check(world)
    assert goals.progress.ordered == 1
    world.focus = cream
    world.state[cream] = "liquid"
    goals.check(world)
    world.state[cream] = "gas"
    goals.check(world)
    assert (goals.completed, goals.score, goals.points) == (True, 1.0, 100)


def test_several_goals_are_passed_in_one_check_when_the_focus_burns() -> None:
    world, goals = started("boil", 12)
    marshmallow = the(world, "marshmallow")
    world.focus = marshmallow
    world.state[marshmallow], world.burning[marshmallow] = "liquid", True
    goals.check(world)
    assert goals.completed


def test_wrong_focus_fails_until_the_task_is_reset() -> None:
    world, goals = started("find-animal")
    world.focus = the(world, "orange")
    goals.check(world)
    assert (goals.failed, goals.score, goals.points) == (True, -1.0, -100)
    world.focus = the(world, "dove")
    goals.check(world)
    assert (goals.failed, goals.progress.ordered) == (True, 1)
    goals.reset()
    assert (goals.failed, goals.progress.ordered, goals.points) == (False, 0, 0)


def test_a_terminal_is_a_wrong_focus_where_a_wrong_focus_fails() -> None:
    for task, failed in (("find-animal", True), ("find-non-living-thing", False), ("9-1", True)):
        world, goals = started(task)
        world.focus = terminal(the(world, "battery"), 0)
        goals.check(world)
        assert goals.failed is failed


def test_the_focus_is_cleared_where_the_task_goes_on_with_another_thing() -> None:
    world, goals = started("lifespan-longest-lived-then-shortest-lived")
    params = find_kind("7-3").params(0)
    world.focus = the(world, params.long)
    goals.check(world)
    assert (world.focus, goals.progress.ordered, goals.failed) == (NONE, 1, False)
    world.focus = the(world, params.short)
    goals.check(world)
    assert goals.points == 100


def test_the_box_is_judged_by_the_temperature_of_the_moment() -> None:
    world, goals = started("use-thermometer", 0)
    params = find_kind("2-1").params(0)
    world.focus = the(world, "thermometer")
    goals.check(world)
    thing = the(world, params.object)
    world.focus = thing
    goals.check(world)
    world.heat[thing] = params.threshold + 1.0
    branch, twin = world.fork(), None
    branch.put(thing, the(branch, params.below))
    twin = branch.goals
    assert isinstance(twin, TaskState)
    twin.check(branch)
    assert (twin.failed, goals.failed) == (True, False)
    world.put(thing, the(world, params.above))
    goals.check(world)
    assert goals.completed


def test_stays_count_questions_twice_as_fast_with_a_focus() -> None:
    world, goals = started("identify-life-stages-1", 0)
    world.put(world.agent, world.places["outside"])
    for _ in range(3):
        goals.check(world)
    # A goal that is met in the first check makes it ask once more.
    assert goals.progress.memory[2:] == [4, 4, 4]
    world.focus = the(world, "wood")
    goals.check(world)
    assert goals.progress.memory[2:] == [6, 6, 6]
    world.put(world.agent, world.places["kitchen"])
    goals.check(world)
    assert goals.progress.memory[2:] == [0, 0, 0]


def test_goals_wait_for_the_goals_they_need() -> None:
    world, goals = started("boil", 0)
    wood, pit = the(world, "wood"), the(world, "fire pit")
    world.put(world.agent, world.places["outside"])
    world.burning[wood] = True
    goals.check(world)
    burns = next(i for i, g in enumerate(goals.goals.optional) if g.text == "ignite wood")
    assert not goals.progress.optional[burns]
    world.put(wood, pit)
    goals.check(world)
    assert goals.progress.optional[burns]
    assert "wood1" in goals.progress.keys


def test_deeds_count_from_the_moment_a_goal_is_first_looked_at() -> None:
    world, goals = started("inclined-plane-determine-angle", 0)
    params = find_kind("9-1").params(0)
    watch = next(world.named("stopwatch", world.places["workshop"]))
    world.put(world.agent, world.places["workshop"])
    block = next(world.named(params.block, world.places["workshop"]))
    goals.note(world, "look at", watch)
    goals.check(world)
    world.put(block, next(world.named("inclined plane", world.places["workshop"])))
    world.on[watch] = True
    goals.check(world)
    world.on[watch] = False
    goals.check(world)
    before = sum(goals.progress.optional)
    goals.note(world, "look at", watch)
    goals.check(world)
    assert sum(goals.progress.optional) == before + 1


def test_score_of_optional_goals() -> None:
    world, goals = started("lifespan-longest-lived", 0)
    world.put(world.agent, world.places["outside"])
    goals.check(world)
    assert goals.points == 50
    world.focus = the(world, find_kind("7-1").params(0).long)
    goals.check(world)
    assert goals.points == 100


def test_forks_are_apart_and_have_equal_digests() -> None:
    world, goals = started("grow-plant", 5)
    goals.check(world)
    twin = goals.fork()
    assert digest_of(twin) == digest_of(goals)
    world.put(world.agent, world.places["greenhouse"])
    twin.check(world)
    assert digest_of(twin) != digest_of(goals)
    assert goals.points < twin.points
