"""Household-v0: tasks, rewards, verdicts, settings, forks, the identity of states, both players."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.household import DATA

from turngym.envs import check_text_env, fork
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.household.engine.game import TASK_TYPES
from turngym.envs.household.env import TYPE_NAMES, Household, choose_types
from turngym.envs.household.expert import Expert, Searcher

GAMES = str(DATA / "games")


def make(**given: Any) -> Household:
    env = gym.make("Household-v0", **given)
    assert isinstance(env, Household)
    return env


def start(env: Household, split: str = "train", task: int = 0, seed: int = 0) -> str:
    return env.reset(seed=seed, options={"split": split, "task": task})[0]


def solve(env: Household, player: Any, split: str, task: int) -> Any:
    observation, info = env.reset(seed=0, options={"split": split, "task": task})
    while info["status"] == "running":
        observation, *_, info = env.step(player(env, observation, info))
    return info


def test_the_full_rooms_keep_every_law() -> None:
    report = check_text_env("Household-v0", tasks_checked=2, max_steps=12)
    assert not report.skipped


def test_lists_history_and_original_games_keep_every_law() -> None:
    check_text_env(
        "Household-v0",
        tasks_checked=2,
        max_steps=12,
        admissible=True,
        history=2,
        edition="file",
        games=GAMES,
    )


@pytest.mark.parametrize("size", ["full", "micro"])
def test_every_kind_of_task_is_drawn_and_won(size: str) -> None:
    env = make(size=size)
    kinds = set()
    for split in ("train", "dev", "test"):
        for task in range(25):
            info = solve(env, env.expert(), split, task)
            assert (info["status"], info["metrics"]["score"]) == ("solved", 1.0)
            assert info["metrics"]["turns"] == info["metrics"]["needed"]
            kinds.add(info["metrics"]["kind"])
    assert kinds == {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}


def test_each_type_of_task_has_a_score_of_its_own() -> None:
    env = make()
    for task in range(12):
        info = solve(env, env.expert(mistakes=0.5, seed=task), "train", task)
        metrics = info["metrics"]
        name = tuple(TYPE_NAMES)[int(metrics["kind"]) - 1]
        own = {key: value for key, value in metrics.items() if key.startswith("score_")}
        assert own == {f"score_{name}": metrics["score"]}
    two = make(tasks="two")
    assert not any(
        key.startswith("score_") for key in solve(two, two.expert(), "train", 0)["metrics"]
    )


def test_the_searcher_wins_the_original_s_games_by_what_was_shown() -> None:
    env = make(games=GAMES)
    for split, size in env.source.sizes().items():
        for task in range(size or 0):
            info = solve(env, Searcher(), split, task)
            assert info["status"] == "solved"
            assert info["turn"] >= info["metrics"]["needed"]


def test_the_searcher_does_not_know_what_was_not_shown() -> None:
    env = make()
    start(env)
    twin = fork(env)
    assert isinstance(twin, Household)
    house = twin.episode.state.house
    house.contents = tuple(0 for _ in house.contents)
    house.opened = house.game.room.openable
    assert Searcher()(twin, "", {}) == Searcher()(env, "", {})
    assert Expert()(twin, "", {}) != Expert()(env, "", {})


def test_the_baseline_is_found_by_its_name() -> None:
    env = make(size="micro")
    player = env.baselines()["searcher"](3)
    assert solve(env, player, "dev", 0)["status"] == "solved"


def test_mistakes_are_admissible_commands_and_the_task_is_won_all_the_same() -> None:
    env = make(size="micro", max_steps=60)
    won = [solve(env, Searcher(mistakes=0.3, seed=task), "train", task) for task in range(15)]
    assert all(info["metrics"]["invalid_actions"] == 0 for info in won)
    assert sum(info["status"] == "solved" for info in won) >= 14
    assert sum(info["turn"] for info in won) > sum(info["metrics"]["needed"] for info in won)


def play(env: Household, player: Any, task: int) -> tuple[str, list[str]]:
    """Return how an episode of dev ends, and its commands."""
    info = solve(env, player, "dev", task)
    assert info["metrics"]["invalid_actions"] == 0
    return info["status"], [step.action for step in env.episode.steps]


def test_haste_puts_things_down_as_they_are_again_and_again() -> None:
    for kind in ("simple", "light", "clean", "two"):
        env = make(size="micro", tasks=kind)
        for task in range(10):
            status, done = play(env, Searcher(haste=1.0), task)
            assert status == ("solved" if kind == "simple" else "truncated")
            assert not any(text.split()[0] in ("clean", "use") for text in done)
            if kind != "simple":
                *_, first, second, third = done
                assert first == third != second
                assert {first.split()[0], second.split()[0]} == {"put", "take"}


def test_haste_is_drawn_per_episode_and_may_come_with_all_knowledge() -> None:
    env = make(size="micro", tasks=["clean", "heat", "cool"])
    ends = []
    for _ in range(2):
        player = Searcher(haste=0.5, seed=1)
        ends.append([play(env, player, task)[0] for task in range(40)])
    assert ends[0] == ends[1]
    assert 10 < ends[0].count("solved") < 30
    oracle = Expert(haste=1.0)
    assert {play(env, oracle, task)[0] for task in range(10)} == {"truncated"}
    assert play(env, Expert(shown=True), 3) == play(env, Searcher(), 3)
    with pytest.raises(BadValueError, match="haste"):
        Searcher(haste=1.5)


def test_the_first_observation_is_the_original_s() -> None:
    env = make(games=GAMES, edition="file")
    observation = start(env, "valid_seen", 0)
    assert observation.startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle")
    assert observation.endswith("\n\nYour task is to: put some book on sidetable.\n\n> ")
    assert "put THING in/on PLACE" in env.instructions
    assert env.step("go to bed 1\n")[0].startswith("\nYou arrive at loc ")
    assert env.episode.task.dataset == "alfworld"


def test_invalid_commands_cost_a_step_and_change_nothing() -> None:
    env = make()
    start(env)
    before = env.state_digest()
    observation, reward, _, _, info = env.step("make coffee")
    assert observation == "\nNothing happens.\n\n> "
    assert (reward, info["valid_action"], info["verdict"], info["turn"]) == (0.0, False, -1, 1)
    assert env.state_digest() == before


def test_verdicts_follow_the_way_that_is_left() -> None:
    env = make(tasks="simple")
    start(env)
    expert = env.expert()
    assert env.step("look")[4]["verdict"] == 0
    first = expert(env, "", {})
    assert env.step(first)[4]["verdict"] == 1
    while not (action := expert(env, "", {})).startswith("take"):
        assert env.step(action)[4]["verdict"] == 1
    assert env.step(action)[4]["verdict"] == 1
    obj, _, place = action.removeprefix("take ").partition(" from ")
    assert env.step(f"move {obj} to {place}")[4]["verdict"] == -1


def test_walking_in_circles_leads_back_to_the_state() -> None:
    env = make(games=GAMES)
    start(env, "valid_seen", 0)
    env.step("go to bed 1")
    circle = env.state_digest()
    texts = ["look", "inventory", "examine bed 1", "hm", "go to drawer 1", "go to bed 1"]
    for text in texts:
        env.step(text)
    assert env.state_digest() == circle
    taken = next(text for text in env.legal_actions() if text.startswith("take"))
    obj = taken.removeprefix("take ").removesuffix(" from bed 1")
    env.step(taken)
    assert env.state_digest() != circle
    held = env.state_digest()
    for text in ("go to drawer 1", "open drawer 1", "close drawer 1", "go to bed 1"):
        env.step(text)
    assert env.state_digest() == held
    env.step(f"move {obj} to bed 1")
    assert env.state_digest() == circle


@pytest.mark.parametrize("given", [{"size": "micro"}, {"games": GAMES}])
def test_states_of_equal_digests_answer_alike_for_ever(given: dict[str, Any]) -> None:
    """Random walks that meet in a state go on with the same lists and the same answers."""
    env = make(max_steps=400, **given)
    split = next(iter(env.source.sizes()))
    start(env, split, 1)
    rng = np.random.default_rng(5)
    known: dict[str, Any] = {}
    met = 0
    for _ in range(350):
        digest = env.state_digest()
        if digest in known:
            twin, other = fork(known[digest]), fork(env)
            assert isinstance(twin, Household)
            assert isinstance(other, Household)
            twin.max_turns = other.max_turns = 10**6
            for _ in range(4):
                commands = other.legal_actions()
                assert twin.legal_actions() == commands
                command = commands[int(rng.integers(len(commands)))]
                answers = [one.step(command)[:4] for one in (twin, other)]
                assert answers[0] == answers[1]
                met += 1
                if answers[0][2]:
                    break
        known[digest] = fork(env)
        commands = [
            c for c in env.legal_actions() if not c.startswith("go to") or rng.random() < 0.3
        ]
        command = commands[int(rng.integers(len(commands)))]
        ahead = fork(env)
        if not ahead.step(command)[2]:
            env.step(command)
    assert met > 100


def test_forks_of_a_running_episode_go_their_own_ways() -> None:
    env = make()
    start(env)
    expert = env.expert()
    env.step(expert(env, "", {}))
    twin = fork(env)
    assert isinstance(twin, Household)
    before = env.state_digest()
    twin.step(expert(twin, "", {}))
    assert env.state_digest() == before != twin.state_digest()
    assert pickle.loads(pickle.dumps(env)).state_digest() == before


def test_admissible_commands_and_history_are_shown_on_request() -> None:
    env = make(size="micro", admissible=True, history=2)
    first = start(env)
    assert "\n\nAdmissible commands: go to " in first
    goal = env.episode.task.payload.text
    env.step("inventory")
    env.step("look")
    observation = env.step("dance")[0]
    assert observation.startswith(f"\n{goal}\n> look\nnothing\n> dance\nno\n\nAdmissible")
    listed = observation.partition("Admissible commands: ")[2].removesuffix("\n\n> ").split(", ")
    assert listed == env.legal_actions()
    assert fork(env).step("look")[0] == env.step("look")[0]


def test_an_observation_with_the_longest_history_is_in_its_space() -> None:
    env = make(history=100, admissible=True, max_steps=101)
    start(env)
    for command in ["look", *["help"] * 100]:
        observation = env.step(command)[0]
    assert observation.count("> help") == 100
    assert env.observation_space.contains(observation)


def test_steps_may_cost() -> None:
    env = make(size="micro", step_reward=-0.05)
    info = solve(env, env.expert(), "train", 0)
    expected = 1.0 - 0.05 * info["turn"]
    assert info["metrics"]["return"] == pytest.approx(expected)
    assert set(info["reward_terms"]) == {"step", "outcome"}
    assert env.reward_range == (-0.05 * 25, 1.0)


def test_tasks_are_chosen_by_short_and_long_names() -> None:
    assert choose_types(None) == TASK_TYPES
    assert choose_types(["two", "pick_and_place_simple"]) == (TASK_TYPES[0], TASK_TYPES[5])
    for name, kind in TYPE_NAMES.items():
        env = make(size="micro", tasks=name)
        for task in range(3):
            assert env.source.task("train", task).payload.goal.kind == kind


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"size": "small"}, UnknownNameError, "micro"),
        ({"tasks": "cook"}, UnknownNameError, "cool"),
        ({"tasks": []}, BadValueError, "empty"),
        ({"edition": "1"}, UnknownNameError, "edition"),
        ({"edition": "file", "size": "micro"}, BadValueError, "short words"),
        ({"max_steps": 0}, BadValueError, "max_steps"),
        ({"history": -1}, BadValueError, "history"),
        ({"admissible": "yes"}, BadValueError, "admissible"),
        ({"step_reward": 0.1}, BadValueError, "step_reward"),
        ({"world_seed": -1}, BadValueError, "world_seed"),
        ({"games": "/nowhere"}, BadValueError, "where no game is"),
        ({"games": GAMES, "size": "full"}, BadValueError, "Give one of them"),
        ({"games": GAMES, "world_seed": 1}, BadValueError, "Give one of them"),
        ({"max_turns": 3}, UnknownNameError, "setting"),
    ],
)
def test_bad_settings(given: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make(**given)
