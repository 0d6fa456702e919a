"""The diagnostic environments: what earns, what is told, and what the sessions of Spawn-v0 do."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs import all_ids, check_text_env
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.diagnostic.common import ListedTasks, read_letter

IDS = tuple(
    f"{name}-v0"
    for name in (
        *("Bandit", "Fork", "Password", "Recall", "Spawn"),
        *("Lottery", "Corridor", "Keys", "Aliases", "Noise", "Fog", "Judge", "Rare"),
    )
)

SLOW = {"the same in another process": "checked with the default settings"}


def world(name: str, **settings: Any) -> Any:
    return gym.make(f"{name}-v0", **settings).unwrapped


def played(env: Any, actions: str, task: int = 0, split: str = "train") -> tuple[float, str]:
    """Return and status after these letters."""
    env.reset(seed=0, options={"split": split, "task": task})
    total = 0.0
    for letter in actions:
        total += env.step(letter)[1]
    return total, env.episode.status


def first_task(env: Any, wanted: Any) -> tuple[str, int]:
    """Split and index of the task with this content."""
    for split, size in env.source.sizes().items():
        for i in range(size):
            if env.source.task(split, i).payload == wanted:
                return split, i
    raise AssertionError(wanted)


def test_they_are_hidden_until_asked_for() -> None:
    assert set(IDS) <= set(all_ids(hidden=True))
    assert not set(IDS) & set(all_ids())


@pytest.mark.parametrize("env_id", IDS)
def test_the_full_size_keeps_every_law(env_id: str) -> None:
    report = check_text_env(env_id, size="full", tasks_checked=9, exempt=SLOW)
    assert set(report.skipped) <= {"the answer is hidden", *SLOW}


@pytest.mark.parametrize("env_id", IDS)
def test_sizes_and_settings_are_checked(env_id: str) -> None:
    with pytest.raises(UnknownNameError, match="micro"):
        gym.make(env_id, size="mico")
    assert gym.make(env_id, size="full").unwrapped.instructions  # pyright: ignore
    assert not gym.make(env_id).unwrapped.instructions  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "setting"), [("Password", "doors"), ("Recall", "delay"), ("Fork", "walk")]
)
def test_lengths_are_checked(name: str, setting: str) -> None:
    assert world(name, **{setting: 1}).max_turns <= 2
    for wrong in (0, 99, True, 1.5):
        with pytest.raises(BadValueError, match=setting):
            world(name, **{setting: wrong})


def test_an_action_is_its_last_letter() -> None:
    assert read_letter("b", "abc") == "b"
    assert read_letter(" hm, 3 a c \n", "abc") == "c"
    for nothing in ("", " ", "d", "a.", "ab?"):
        assert read_letter(nothing, "abc") is None


@given(st.integers(5, 60), st.integers(0, 9))
def test_listed_tasks_are_a_partition(count: int, seed: int) -> None:
    source = ListedTasks(list(range(count)), seed)
    seen = [
        source.task(split, i).payload for split, n in source.sizes().items() for i in range(n or 0)
    ]
    assert sorted(seen) == list(range(count))
    assert source.index_of("train", "train/0") == 0
    for other in ("dev/0", "train/00", "train/-1", f"train/{count}", "train/x"):
        assert source.index_of("train", other) is None


def test_the_first_sign_of_the_bandit_says_which_arm_pays() -> None:
    env = world("Bandit")
    for task in range(12):
        observation, _ = env.reset(seed=1, options={"split": "dev", "task": task})
        best = "abc"[int(observation[0]) - 1]
        for arm in "abc":
            total, status = played(env, arm, task, "dev")
            assert (total, status) == ((1.0, "solved") if arm == best else (0.0, "failed"))


def test_only_the_end_of_the_password_tells_how_much_was_right() -> None:
    env = world("Password")
    assert played(env, "bac") == (1.0, "solved")
    assert played(env, "bab")[0] == pytest.approx(2 / 3)
    assert played(env, "cba") == (0.0, "failed")
    env.reset(seed=0)
    verdicts = [env.step(letter)[4]["verdict"] for letter in "bbc"]
    assert verdicts == [1, -1, 1]


def test_an_unreadable_letter_of_the_password_is_a_wrong_one() -> None:
    env = world("Password")
    env.reset(seed=0)
    observation, _, _, _, info = env.step("?")
    assert not info["valid_action"]
    assert "a b c" in observation
    env.step("a")
    assert env.step("c")[1] == pytest.approx(2 / 3)


def test_recall_asks_for_the_first_letter_at_the_end() -> None:
    env = world("Recall")
    split, task = first_task(env, "b15")
    texts = [env.reset(seed=0, options={"split": split, "task": task})[0]]
    texts += [env.step("a")[0] for _ in range(2)]
    assert texts == ["b:", "\n1:", "\n5 ?"]
    assert env.step("b")[1] == 1.0
    assert played(env, "bba", task, split) == (0.0, "failed")


@given(st.text("abcd", min_size=3, max_size=3))
def test_every_room_has_one_good_door(walk: str) -> None:
    env = world("Fork")
    ends = [played(env, walk + door) for door in "abcd"]
    assert sorted(ends) == [(0.0, "failed")] * 3 + [(1.0, "solved")]
    assert ends["abcd".index(walk[-1]) - 3] == (1.0, "solved")  # the letter after the last one


def session(info: Any) -> tuple[int, int | None]:
    return info["session"], info["parent_session"]


def test_boxes_become_sessions_first_come_first_served() -> None:
    env = world("Spawn")
    split, task = first_task(env, (("a", ""), ("c", "b")))
    observation, info = env.reset(seed=0, options={"split": split, "task": task})
    assert (observation, session(info)) == ("a c:", (0, None))
    assert env.step("c")[1] == -0.02
    assert [o.key for o in env.asked()] == ["c"]
    assert env.asked()[0].observation == "t b:"
    env.step("a")
    assert [(o.key, o.layer, o.score) for o in env.waiting()] == [("c", 1, 1.0), ("a", 1, 1.0)]
    observation, _, _, _, info = env.step("s")
    assert (observation, session(info), env.session_key()) == ("t b:", (1, 0), "c")
    assert env.asked() == ()
    assert env.step("b")[1] == -0.02
    assert env.step("t")[1] == pytest.approx(1 / 3 + 0.02)
    observation, _, _, _, info = env.step("s")
    assert (observation, session(info)) == ("t:", (2, 0))
    assert env.step("t")[4]["verdict"] == 1
    observation, _, _, _, info = env.step("s")
    assert (observation, session(info), env.session_key()) == ("t:", (3, 1), "cb")
    env.step("t")
    _, _, terminated, _, info = env.step("s")
    assert terminated
    assert info["metrics"]["return"] == pytest.approx(1.0)
    assert info["metrics"]["coins"] == 1.0


def test_an_empty_box_only_costs() -> None:
    env = world("Spawn")
    split, task = first_task(env, (("a", ""),))
    env.reset(seed=0, options={"split": split, "task": task})
    env.step("b")
    assert env.asked()[0][1:] == ("-:", 0.0, 1)
    assert env.step("s")[0] == "-:"
    assert env.step("t")[1] == -0.02
    assert env.step("s")[4]["status"] == "failed"
    assert played(env, "bbbs", task, split)[0] == pytest.approx(-0.06)


def test_sessions_can_be_entered_out_of_turn() -> None:
    env = world("Spawn")
    split, task = first_task(env, (("a", "c"), ("b", "")))
    env.reset(seed=0, options={"split": split, "task": task})
    for letter in "abs":
        env.step(letter)
    assert env.session_key() == "a"  # opened by the world, nobody acted in it
    assert [o.key for o in env.waiting()] == ["a", "b"]
    observation, info = env.open_session("b")
    assert (observation, session(info)) == ("t:", (2, 0))
    assert [o.key for o in env.waiting()] == ["b", "a"]
    env.step("t")
    assert [o.key for o in env.waiting()] == ["a"]
    observation, info = env.open_session("a")  # leaves b for good
    assert (observation, session(info)) == ("t c:", (1, 0))
    with pytest.raises(UnknownNameError, match="session"):
        env.open_session("b")


@given(st.integers(0, 18), st.text("abcts", min_size=20, max_size=20))
def test_what_spawn_pays_adds_up(task: int, letters: str) -> None:
    env = world("Spawn")
    env.reset(seed=0, options={"split": "train", "task": task})
    coins, costs, keys = 0, 0, set[str]()
    for letter in letters:
        _, _, terminated, truncated, info = env.step(letter)
        coins += "coin" in info["reward_terms"]
        costs += "cost" in info["reward_terms"]
        for opening in env.asked():
            assert opening.key not in keys
            keys.add(opening.key)
        if terminated or truncated:
            break
    world_ = env.episode.state
    count = len(world_.inside) - 1
    assert env.episode.total_reward == pytest.approx(coins * (1 / count + 0.02) - costs * 0.02)
    assert coins == len(world_.taken) <= count
    assert (env.episode.status == "solved") == (coins == count and not truncated)
    assert len(world_.numbers) <= 1 + len(world_.asked)


@pytest.mark.parametrize("boxes", [2, 3, 6])
def test_spawn_has_as_many_boxes_as_asked_for(boxes: int) -> None:
    env = world("Spawn", boxes=boxes)
    assert env.letters == "abcdefgh"[:boxes] + "ts"
    report = check_text_env("Spawn-v0", boxes=boxes, tasks_checked=6, exempt=SLOW)
    assert "the expert reaches the top" in report.passed
    for wrong in (1, 9):
        with pytest.raises(BadValueError, match="boxes"):
            world("Spawn", boxes=wrong)


def test_boxes_inside_open_by_themselves_only_where_all_do() -> None:
    with pytest.raises(BadValueError, match="set forced=True"):
        world("Spawn", deep=True)
    env = world("Spawn", forced=True, deep=True)
    split, task = first_task(env, (("a", ""), ("c", "b")))
    env.reset(seed=0, options={"split": split, "task": task})
    assert [o.key for o in env.waiting()] == ["a", "b", "c", "cb"]
    steps = [env.step(letter) for letter in "stssts" + "t"]
    assert [step[0] for step in steps] == ["t:", "\n:", "-:", "t:", "\n:", "t:", "\n:"]
    assert sum(steps[-1][4]["reward_terms"].values()) == pytest.approx(1 / 3)
    assert env.step("s")[4]["metrics"]["return"] == pytest.approx(1.0)


def test_forced_boxes_open_without_asking() -> None:
    env = world("Spawn", forced=True)
    split, task = first_task(env, (("a", ""), ("c", "b")))
    observation, _ = env.reset(seed=0, options={"split": split, "task": task})
    assert observation == "-:"
    assert [o.key for o in env.waiting()] == ["a", "b", "c"]
    steps = [env.step(letter) for letter in "stssbtst"]
    assert [step[0] for step in steps] == ["t:", "\n:", "-:", "t b:", "\n:", "\n:", "t:", "\n:"]
    paid = [sum(step[4]["reward_terms"].values()) for step in steps]
    third = 1 / 3
    assert paid == pytest.approx([0, third, 0, 0, -0.02, third, 0, third + 0.02])
    assert session(steps[0][4]) == (1, 0)
    assert session(steps[6][4]) == (4, 3)
    assert env.step("s")[4]["metrics"]["return"] == pytest.approx(1.0)


@pytest.mark.parametrize(("deep", "share"), [(False, 1 / 2), (True, 1.0)])
def test_in_the_control_of_spawn_nothing_is_left_to_ask_for(deep: bool, share: float) -> None:
    """Who takes every coin and never asks has them all; without ``deep`` those inside are left."""
    env = world("Spawn", boxes=4, forced=True, deep=deep)
    worst = 1.0
    for task in range(env.source.sizes()["train"]):
        _, info = env.reset(seed=0, options={"split": "train", "task": task})
        observation = ""
        while info["status"] == "running":
            observation, *_, info = env.step("t" if "t" in observation else "s")
        worst = min(worst, info["metrics"]["coins"])
    assert worst == pytest.approx(share)


@pytest.mark.parametrize(
    ("env_id", "control"),
    [
        ("Lottery-v0", {"luck": 0.0}),
        ("Corridor-v0", {"delay": 0}),
        ("Keys-v0", {"revisits": False}),
        ("Aliases-v0", {"aliases": 1}),
        ("Noise-v0", {"noise": 0.0}),
        ("Fog-v0", {"fog": 0.0}),
        ("Judge-v0", {"judged": False}),
        ("Rare-v0", {"doors": 1}),
        ("Spawn-v0", {"forced": True, "deep": True}),
    ],
)
def test_controls_keep_every_law_and_are_told_of(env_id: str, control: dict[str, Any]) -> None:
    report = check_text_env(env_id, tasks_checked=6, exempt=SLOW, **control)
    assert set(report.skipped) <= {"the answer is hidden", *SLOW}
    (name, value), text = next(iter(control.items())), " ".join(world(env_id[:-3]).__doc__.split())
    written = f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
    assert f"Control: ``{written}``" in text
    assert "equality is the right answer" in text
