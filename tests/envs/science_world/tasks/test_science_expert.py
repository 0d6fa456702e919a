"""The expert: it solves tasks, with and without simplifications, and errs on request."""

from __future__ import annotations

import pytest

from turngym.envs.errors import BadValueError, EpisodeError
from turngym.envs.science_world.engine import step
from turngym.envs.science_world.house import build_house
from turngym.envs.science_world.tasks.catalogue import TASKS, TaskKind, find_kind
from turngym.envs.science_world.tasks.checker import TaskState
from turngym.envs.science_world.tasks.episode import simplifications, start_world
from turngym.envs.science_world.tasks.expert import ScienceExpert
from turngym.envs.science_world.tasks.java_random import JavaRandom
from turngym.envs.science_world.world import World

MOST_STEPS = 60


def started(kind: TaskKind, variation: int, simple: str = "") -> tuple[World, TaskState]:
    world = start_world(kind, variation, simplifications(simple, kind))
    step(world, "look around")
    assert isinstance(world.goals, TaskState)
    return world, world.goals


def played(kind: TaskKind, variation: int, simple: str = "") -> int:
    world, goals = started(kind, variation, simple)
    expert = ScienceExpert()
    for _ in range(MOST_STEPS):
        if goals.completed or goals.failed:
            break
        step(world, expert.act(world))
    return goals.points


@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: kind.id)
@pytest.mark.parametrize("simple", ["", "easy"])
def test_solves_a_variation_of_every_split(kind: TaskKind, simple: str) -> None:
    for split in ("train", "dev", "test"):
        variations = kind.split(split)
        assert played(kind, variations[len(variations) // 2], simple) == 100


@pytest.mark.parametrize(
    ("task", "variations"),
    [
        ("1-1", (2, 8, 13, 20, 24, 28)),  # sink broken, juice, marshmallow, lead, mercury, caesium
        ("1-3", (8, 13, 20, 25)),
        ("3-2", (0, 1, 18, 19)),
        ("3-3", (850,)),
        ("5-2", (2, 16)),
        ("6-1", tuple(range(0, 32, 5))),
    ],
)
def test_solves_the_hard_ones(task: str, variations: tuple[int, ...]) -> None:
    kind = find_kind(task)
    assert [played(kind, v) for v in variations] == [100] * len(variations)


def test_same_state_same_action() -> None:
    world, _ = started(find_kind("chemistry-mix"), 7)
    branch = world.fork()
    for _ in range(6):
        action = ScienceExpert().act(world)
        assert ScienceExpert().act(branch) == action
        step(world, action)
        step(branch, action)


def test_mistakes_are_drawn_from_the_seed_and_cost_something() -> None:
    def actions(seed: int) -> list[str]:
        world, _ = started(find_kind("boil"), 0)
        expert = ScienceExpert(mistakes=0.5, seed=seed)
        taken: list[str] = []
        for _ in range(12):
            taken.append(expert.act(world))
            step(world, taken[-1])
        return taken

    assert actions(3) == actions(3)
    assert actions(3) != actions(4)


def test_it_goes_on_after_a_lost_focus() -> None:
    world, goals = started(find_kind("freeze"), 0)
    expert = ScienceExpert()
    while goals.progress.ordered < 1:
        step(world, expert.act(world))
    step(world, "focus on agent")
    for _ in range(MOST_STEPS):
        if goals.completed:
            break
        step(world, expert.act(world))
    assert goals.points == 100


def test_it_resets_a_failed_task() -> None:
    world, goals = started(find_kind("find-animal"), 0)
    step(world, "focus on orange")
    assert goals.failed
    assert ScienceExpert().act(world) == "reset task"


@pytest.mark.parametrize("mistakes", [-0.1, 1.5])
def test_mistakes_must_be_a_probability(mistakes: float) -> None:
    with pytest.raises(BadValueError, match="expected 0 to 1"):
        ScienceExpert(mistakes=mistakes)


def test_a_world_without_a_task_is_refused() -> None:
    with pytest.raises(EpisodeError, match="no task"):
        ScienceExpert().act(build_house(JavaRandom(0)))
