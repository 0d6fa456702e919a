"""ScienceWorld-v0: tasks, rewards, ends of episodes, bad settings, the laws of the contract."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from turngym.envs import check_text_env, fork
from turngym.envs.core.env import TextEnv
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.science_world.engine.step import digest_house
from turngym.envs.science_world.env import ScienceWorld
from turngym.envs.science_world.expert import Looker, ScienceExpert
from turngym.envs.science_world.tasks.source import (
    MICRO_TASKS,
    Variation,
    choose_tasks,
    make_variations,
)


def make(**given: Any) -> ScienceWorld:
    env = gym.make("ScienceWorld-v0", **given)
    assert isinstance(env, ScienceWorld)
    return env


def play(env: ScienceWorld, *actions: str) -> tuple[str, float, bool, bool, Any]:
    taken: Any = None
    for action in actions:
        taken = env.step(action)
    return taken


def test_the_full_world_keeps_every_law() -> None:
    tasks = ["find-non-living-thing", "lifespan-longest-lived"]
    report = check_text_env("ScienceWorld-v0", tasks_checked=2, tasks=tasks, max_turns=12)
    assert set(report.skipped) <= {"the answer is hidden"}


def test_sizes_and_splits_are_the_originals() -> None:
    source = make().source
    assert source.sizes() == {"train": 3592, "dev": 1796, "test": 1819}
    task = source.task("test", 0)
    assert (task.id, task.payload) == ("boil/21", Variation("1-1", 21))
    assert source.index_of("test", "boil/21") == 0
    for wrong in ("boil/20", "boil/021", "boil", "boil/x", "boil/" + "2" * 5000, "broil/21", ""):
        assert source.index_of("test", wrong) is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("1-1", ("1-1",)),
        ("boil", ("1-1",)),
        ("Electricity", ("3-1", "3-2", "3-3", "3-4")),
        (["7-1", "boil", "7-1"], ("7-1", "1-1")),
    ],
)
def test_tasks_are_chosen_by_id_name_and_topic(wanted: Any, found: tuple[str, ...]) -> None:
    assert choose_tasks(wanted, "full") == found
    env = make(tasks=wanted)
    assert env.source.sizes() == make_variations(found, "full").sizes()


def test_the_first_observation_tells_task_and_place() -> None:
    env = make()
    observation, info = env.reset(options={"task": "boil/0"})
    assert observation.startswith("Your task is to boil water. ")
    assert "This room is called the hallway. In it, you see: \n\tthe agent\n" in observation
    assert observation.endswith("\n> ")
    assert (info["task_id"], info["split"]) == ("boil/0", "train")
    observation, *_ = env.step("inventory\n")
    assert observation == "\nIn your inventory, you see:\n\tan orange\n\n> "
    assert env.look().startswith("This room is called the hallway. In it, you see: \n\tthe agent")
    assert env.inventory() == "In your inventory, you see:\n\tan orange\n"


def test_the_wrong_focus_fails_and_costs_all() -> None:
    env = make()
    env.reset(options={"task": "boil/0"})
    play(env, "teleport to kitchen")
    observation, _, terminated, truncated, info = play(env, "focus on stove")
    assert "You focus on the stove." in observation
    assert (terminated, truncated, info["status"]) == (True, False, "failed")
    assert info["metrics"]["score"] == -100.0
    assert info["metrics"]["return"] == pytest.approx(-1.0)


def test_salt_water_step_by_step() -> None:
    env = make()
    env.reset(options={"task": "chemistry-mix/0"})
    texts = (
        "teleport to kitchen",
        "read recipe",
        "open glass jar",
        "open cupboard",
        "move metal pot to sink",
        "activate sink",
        "move sodium chloride to metal pot",
        "pick up metal pot",
        "mix metal pot",
    )
    rewards = [env.step(text)[1] for text in texts]
    observation, reward, terminated, _, info = env.step("focus on salt water")
    assert "You focus on the salt water." in observation
    assert terminated
    assert info["status"] == "solved"
    assert sum(rewards) + reward == pytest.approx(1.0)
    assert info["metrics"]["moves"] == 10.0


def test_unreadable_inputs_cost_a_turn_and_nothing_else() -> None:
    env = make()
    env.reset(options={"task": "boil/0"})
    before = digest_house(env.episode.state.house)
    observation, reward, *_, info = env.step("boil the water, please")
    assert observation == "\nNo known action matches that input.\n\n> "
    assert (reward, info["valid_action"], info["turn"]) == (0.0, False, 1)
    assert digest_house(env.episode.state.house) == before


def test_endless_waiting_is_truncated() -> None:
    env = make(max_turns=5)
    env.reset(options={"task": "boil/0"})
    *_, terminated, truncated, info = play(env, *["wait"] * 5)
    assert (terminated, truncated) == (False, True)
    assert info["metrics"]["moves"] == 55.0


@pytest.mark.parametrize("task", ["grow-plant/0", "test-conductivity/4", "freeze/3", "boil/14"])
def test_the_expert_solves(task: str) -> None:
    env = make()
    observation, info = env.reset(options={"task": task})
    expert, total = env.expert(), 0.0
    while info["status"] == "running":
        observation, reward, _, _, info = env.step(expert(env, observation, info))
        total += reward
    assert info["status"] == "solved"
    assert total == pytest.approx(1.0)


LOOK = "look around"


def play_out(env: ScienceWorld, player: Any, task: str) -> tuple[list[str], str]:
    observation, info = env.reset(options={"task": task})
    actions = []
    while info["status"] == "running":
        actions.append(player(env, observation, info))
        observation, _, _, _, info = env.step(actions[-1])
    return actions, info["status"]


def test_the_looker_looks_wherever_it_names_a_thing_and_solves() -> None:
    env = make()
    for task in ("lifespan-longest-lived/4", "chemistry-mix/2", "find-plant/9", "melt/1"):
        actions, status = play_out(env, env.baselines()["looker"](0), task)
        assert status == "solved"
        bare, _ = play_out(env, env.expert(), task)
        assert [action for action in actions if action != LOOK] == bare
        moved = [i for i, action in enumerate(actions) if action.startswith("teleport to")]
        assert all(actions[i + 1] == LOOK for i in moved if not actions[i + 1].startswith("open "))
        assert moved or task == "chemistry-mix/2"
        assert actions[0] != LOOK  # the first observation has the place


def test_haste_is_drawn_per_episode_and_does_not_look() -> None:
    env = make(size="micro")
    task = "lifespan-longest-lived/33"
    assert play_out(env, Looker(haste=1.0), task) == play_out(env, env.expert(), task)
    player = Looker(haste=0.5, seed=1)
    looked = [LOOK in play_out(env, player, task)[0] for _ in range(60)]
    assert 15 < sum(looked) < 45
    with pytest.raises(BadValueError, match="haste"):
        Looker(haste=1.5)
    with pytest.raises(BadValueError, match="without shown"):
        ScienceExpert(haste=0.5)


def test_forks_of_a_running_episode_go_their_own_ways() -> None:
    env = make()
    env.reset(options={"task": "boil/0"})
    env.step("teleport to kitchen")
    twin = fork(env)
    assert isinstance(twin, TextEnv)
    assert twin.step("activate stove")[0] == env.step("activate stove")[0]
    twin.step("deactivate stove")
    assert "turned on" in env.step("look at stove")[0]


def test_simplifications_are_the_originals() -> None:
    env = make(simplifications="")
    env.reset(options={"task": "boil/0"})
    assert "teleport to kitchen" not in env.legal_actions()
    assert "go to kitchen" not in env.legal_actions()
    both = make(simplifications=["openDoors", "teleportAction"])
    both.reset(options={"task": "boil/0"})
    assert {"go to kitchen", "teleport to kitchen"} <= set(both.legal_actions())
    assert {"go to kitchen", "teleport to kitchen"} <= set(both.valid_actions())


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"size": "small"}, UnknownNameError, "micro"),
        ({"tasks": "boyl"}, UnknownNameError, "'boil'"),
        ({"tasks": "boil", "size": "micro"}, UnknownNameError, "task of the micro house"),
        ({"simplifications": "openDors"}, UnknownNameError, "openDoors"),
        ({"simplifications": "noElectricalAction"}, UnknownNameError, "electricity"),
        ({"max_turns": 0}, BadValueError, "max_turns"),
        ({"variation": 3}, UnknownNameError, "setting"),
    ],
)
def test_bad_settings(given: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make(**given)


@pytest.mark.parametrize("task", ["boil/21", "boil/99", "nothing/0", -1, 10**6])
def test_tasks_that_train_does_not_have(task: Any) -> None:
    with pytest.raises((UnknownNameError, BadValueError)):
        make().reset(options={"split": "train", "task": task})


def test_the_micro_world_is_small() -> None:
    env = make(size="micro")
    assert {env.source.task("dev", i).payload.task for i in range(93)} <= set(MICRO_TASKS)
    observation, _ = env.reset(options={"split": "dev", "task": 0})
    assert len(env.instructions + observation) < 600
    assert sorted(env.episode.state.house.places) == ["bathroom", "kitchen", "outside"]


def test_a_bad_probability_of_mistakes() -> None:
    with pytest.raises(BadValueError, match="expected a number from 0 to 1"):
        make().expert(mistakes=2.0)
