"""State identity: what the environments' states are, and that equal ones come by several ways."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from turngym.envs.core.env import TextEnv
from turngym.envs.core.fork import fork


def make(env_id: str, task: int = 0, **settings: Any) -> TextEnv[Any, Any]:
    env: Any = gym.make(env_id, size="micro", **settings).unwrapped
    env.reset(seed=1, options={"split": "train", "task": task})
    return env


def after(env: TextEnv[Any, Any], *actions: str) -> str:
    twin: Any = fork(env)
    for action in actions:
        twin.step(action)
    return twin.state_digest()


def test_the_state_before_the_first_action_is_named_by_the_task() -> None:
    env = make("Game24-v0")
    first = env.state_digest()
    env.reset(seed=2, options={"split": "train", "task": 1})
    assert env.state_digest() != first
    env.reset(seed=3, options={"split": "train", "task": 0})
    assert env.state_digest() == first
    assert env.digest() != make("Game24-v0").digest()  # another seed


@pytest.mark.parametrize(
    ("env_id", "settings", "action"),
    [
        ("Fork-v0", {}, "?"),
        ("Game24-v0", {}, "1 + 1 = 3"),
        ("MathWord-v0", {"max_turns": 4}, "hm"),
        ("SearchQA-v0", {}, "hm"),
        ("WebQA-v0", {}, "hm"),
        ("WebShop-v0", {}, "click[nothing]"),
        ("Retail-v0", {}, ""),
        ("ScienceWorld-v0", {}, "hm"),
        ("Household-v0", {}, "hm"),
        ("MixedTasks-v0", {}, ""),
    ],
)
def test_an_action_that_does_nothing_keeps_the_state(
    env_id: str, settings: dict[str, Any], action: str
) -> None:
    env = make(env_id, **settings)
    before, whole = env.state_digest(), env.digest()
    _, _, terminated, _, _ = env.step(action)
    assert not terminated
    assert env.state_digest() == before
    assert env.digest() != whole


def test_two_orders_of_steps_leave_the_same_numbers() -> None:
    env = make("Game24-v0")
    moves = [action for action in env.legal_actions() or [] if "+" in action]
    swapped = [f"{b} + {a} = {c}" for a, _, b, _, c in (move.split() for move in moves)]
    assert after(env, moves[0]) == after(env, swapped[0]) != env.state_digest()
    assert after(env, moves[0]) == after(env, "1 + 1 = 3", moves[0])
    assert after(env, moves[0]) != after(env, moves[1])


def test_searches_in_any_order_and_twice_find_the_same() -> None:
    env = make("SearchQA-v0")
    one, two = (f"<search> {words} </search>" for words in ("Iris Mill partner", "Tom Reed home"))
    assert after(env, one, two) == after(env, two, one) == after(env, one, one, two)
    assert len({env.state_digest(), after(env, one), after(env, two), after(env, one, two)}) == 4


def test_a_page_that_is_left_and_opened_again_is_the_same() -> None:
    env = make("WebShop-v0")
    env.step((env.legal_actions() or [])[0])
    results = env.state_digest()
    item = next(a for a in env.legal_actions() or [] if a[6:-1].isupper())
    assert after(env, item, "click[< prev]") == results != after(env, item)
    env.step(item)
    assert after(env, "click[small]", "click[red]") == after(env, "click[red]", "click[small]")
    assert after(env, "click[small]") == after(env, "click[big]", "click[small]")
    assert after(env, "click[small]") != after(env, "click[big]")


def test_a_record_that_is_read_again_changes_nothing() -> None:
    env = make("Retail-v0")
    expert, action = env.expert(), ""
    while "get_order_details" not in action:
        action = expert(env, env.episode.observation, {})
        known = env.state_digest()
        env.step(action)
    assert env.state_digest() != known
    assert after(env, action) == env.state_digest()
    assert after(env, "Hello.") != env.state_digest()  # patience wears out


def test_a_room_that_is_left_and_entered_again_is_the_same() -> None:
    env = make("ScienceWorld-v0")
    home = env.state_digest()
    assert after(env, "look around", "inventory") == home
    there = "wait1", "go to kitchen"  # the first tick fills the fountain
    back_and_forth = "go to bathroom", "go to kitchen"
    assert after(env, *there, *back_and_forth) == after(env, *there)
    assert after(env, *there) not in (home, after(env, "wait1"))


def test_a_crawl_that_finds_nothing_new_uses_up_a_search() -> None:
    env = make("PaperCrawler-v0")
    search = (env.legal_actions() or [])[0]
    assert len({env.state_digest(), after(env, search), after(env, search, search)}) == 3
    assert after(env, search, "[Search] zq\n") == after(env, search, "[Search] zq\n")


def test_boxes_asked_for_and_coins_taken_in_another_order_are_the_same() -> None:
    env = make("Spawn-v0")
    assert after(env, "a", "b") != after(env, "b", "a")  # another box comes next
    assert after(env, "a", "a") != after(env, "a")  # an action less in this session
    third = after(env, "a", "b", "c", "s", "s")
    assert third == after(env, "b", "a", "c", "s", "s") != after(env, "a", "b", "c", "s")


def test_a_sign_that_was_shown_is_not_to_come_any_more() -> None:
    env = make("Recall-v0")
    assert len({env.state_digest(), after(env, "a"), after(env, "a", "b")}) == 3
    assert after(env, "a", "b") == after(env, "?", "c")


def test_the_verdict_is_part_of_the_state() -> None:
    env = make("Bandit-v0")
    assert after(env, "a") == after(env, "b") != env.state_digest()
