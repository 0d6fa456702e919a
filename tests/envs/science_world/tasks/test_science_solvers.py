"""The solvers: they solve tasks, with and without simplifications, and go on after mistakes."""

from __future__ import annotations

import pytest

from turngym.envs.core.errors import EpisodeError
from turngym.envs.science_world.engine.parser import parse
from turngym.envs.science_world.engine.step import step
from turngym.envs.science_world.house.build import build_house
from turngym.envs.science_world.house.java_random import JavaRandom
from turngym.envs.science_world.house.state import HouseState
from turngym.envs.science_world.tasks.build import parse_simplifications, start_episode
from turngym.envs.science_world.tasks.catalogue import TASKS, TaskKind, find_kind
from turngym.envs.science_world.tasks.checker import TaskState
from turngym.envs.science_world.tasks.solvers.actor import Intent
from turngym.envs.science_world.tasks.solvers.solve import next_intent
from turngym.envs.science_world.tasks.solvers.words import answer, write

MAX_STEPS = 60


def started(kind: TaskKind, variation: int, simple: str = "") -> tuple[HouseState, TaskState]:
    house = start_episode(kind, variation, parse_simplifications(simple, kind))
    step(house, "look around")
    assert isinstance(house.goals, TaskState)
    return house, house.goals


def act(house: HouseState) -> str:
    """What the solver does, in words."""
    intent = next_intent(house)
    return write(house, intent) if house.pending is None else answer(house, intent)


def finish(house: HouseState, goals: TaskState) -> int:
    """Points after the solver has played on."""
    for _ in range(MAX_STEPS):
        if goals.completed or goals.failed:
            break
        step(house, act(house))
    return goals.points


def played(kind: TaskKind, variation: int, simple: str = "") -> int:
    return finish(*started(kind, variation, simple))


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
    house, _ = started(find_kind("chemistry-mix"), 7)
    branch = house.fork()
    for _ in range(6):
        action = act(house)
        assert act(branch) == action
        step(house, action)
        step(branch, action)


@pytest.mark.parametrize("task", ["freeze", "grow-plant", "3-2", "2-1", "3-4"])
def test_it_goes_on_after_a_lost_focus(task: str) -> None:
    house, goals = started(find_kind(task), 0)
    while goals.progress.ordered < 1:
        step(house, act(house))
    while goals.goals.ordered[goals.progress.ordered - 1].defocus:
        step(house, act(house))
    step(house, "focus on agent")
    assert finish(house, goals) == 100


@pytest.mark.parametrize("task", ["boil", "melt", "6-1", "6-3", "3-2", "5-2", "3-3"])
def test_it_goes_on_after_a_walk_and_other_needless_deeds(task: str) -> None:
    house, goals = started(find_kind(task), 1)
    random = JavaRandom(1)
    for _ in range(60):
        if goals.completed:
            break
        if random.next_int(4) == 0 and house.pending is None:
            places = ["hallway", "kitchen", "workshop", "greenhouse", "outside", "bathroom"]
            step(house, f"go to {random.pick(places)}")
        step(house, act(house))
    assert finish(house, goals) == 100


def test_it_resets_a_failed_task_and_one_whose_object_is_gone() -> None:
    house, goals = started(find_kind("find-animal"), 0)
    step(house, "focus on orange")
    assert goals.failed
    assert next_intent(house).verb == "reset task"
    house, goals = started(find_kind("find-non-living-thing"), 0)
    step(house, "focus on orange in inventory")
    step(house, "eat orange in inventory")
    assert next_intent(house).verb == "reset task"
    step(house, "reset task")
    assert finish(house, goals) == 100


def test_the_answer_to_a_question_is_the_number_of_what_was_meant() -> None:
    house, _ = started(find_kind("find-animal"), 0)
    step(house, "go to outside")
    while house.pending is None:
        step(house, "open door")
    wanted = house.pending[1]
    assert answer(house, Intent("open", wanted.objects)) == "1"
    assert answer(house, Intent("focus", wanted.objects)) == ""


def test_words_name_one_thing_where_they_can() -> None:
    house, _ = started(find_kind("boil"), 0)
    hallway = house.places["hallway"]
    for portal in house.portals[hallway]:
        text = write(house, Intent("open", (portal,)))
        assert text.startswith("open door to ")
        matches = parse(house, text)
        assert [match.objects for match in matches] == [(portal,)]


def test_a_world_without_a_task_is_refused() -> None:
    with pytest.raises(EpisodeError, match="no task"):
        next_intent(build_house(JavaRandom(0)))
