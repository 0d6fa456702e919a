"""WebShop-v0: pages and episodes by hand, the expert, verdicts, forks, bad input."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs import check_text_env, fork
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.web_shop.env import WebShop
from turngym.envs.web_shop.pages import BUY, NEXT, Action, read_action
from turngym.envs.web_shop.reward import find_best_choice


def finished(env: WebShop, seed: int, options: dict[str, Any], mistakes: float = 0.0) -> Any:
    observation, info = env.reset(seed=seed, options=options)
    expert = env.expert(mistakes=mistakes, seed=seed)
    while info["status"] == "running":
        observation, *_, info = env.step(expert(env, observation, info))
    return info


def test_keeps_every_law_in_full() -> None:
    assert not check_text_env("WebShop-v0", size="full", tasks_checked=9).skipped


def test_an_episode_by_hand() -> None:
    env = WebShop(size="micro")
    first, _ = env.reset(seed=3)
    assert first == "find a shirt plain big under 30\n"
    seen = []
    actions = ("search[plain shirt]", "click[next >]", "click[< Prev]", "click[BGU]")
    for action in (*actions, "click[description]", "click[< prev]", "click[red]", "click[black]"):
        text, reward, *_, info = env.step(action)
        seen.append((text, info["verdict"]))
        assert (reward, info["valid_action"]) == (0, True)
    page = (
        "[back to search] [< prev]\nNor shirt two plain $16\ncolor: [red] [black]{}\n"
        "size: [small] [big]\n[description] [features] [buy now]\n"
    )
    assert seen[0] == (
        "[back to search] [next >] page 1 of 3\n[BGU] Nor shirt two plain $16\n"
        "[B1S] Nor shirt one plain $11\n[BHB] Fen shirt six warm $14\n"
        "[BDD] Vel shirt two dry $13\n",
        1,
    )
    assert seen[1][0].startswith("[back to search] [< prev] [next >] page 2 of 3\n")
    assert seen[2][0] == seen[0][0]
    assert seen[3] == (page.format(""), 1)
    assert seen[4][0].startswith("[back to search] [< prev]\nshirt that is ")
    assert seen[5] == (page.format(""), 0)
    assert seen[6] == (page.format(" -> red"), 0)
    assert seen[7] == (page.format(" -> black"), 0)
    _, reward, terminated, _, info = env.step("I buy it: click[Buy Now]")
    assert (reward, terminated, info["status"]) == (pytest.approx(2 / 3), True, "failed")
    metrics = {k: info["metrics"][k] for k in ("score", "price", "options", "searches", "opened")}
    assert metrics == {
        "score": pytest.approx(2 / 3),
        "price": 16,
        "options": 0,
        "searches": 1,
        "opened": 1,
    }


def test_verdicts_on_options_and_purchases() -> None:
    env = WebShop(size="micro")
    env.reset(seed=3)
    verdicts = []
    for action in ("search[plain shirt]", "click[BGU]", "click[big]", "click[small]", "click[big]"):
        verdicts.append(env.step(action)[4]["verdict"])
    assert verdicts == [1, 1, 1, -1, 1]
    branch = fork(env)
    assert branch.step("click[buy now]")[4]["verdict"] == 1
    env.step("click[< prev]")  # leaving an item drops its options
    env.step("click[BGU]")
    assert env.episode.state.chosen == ()
    assert env.step("click[buy now]")[4]["verdict"] == -1


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("search[red shirt]", Action("search", "red shirt")),
        ("Thought: none\nAction: Click[Buy  Now] click[x]", Action("click", "buy now")),
        ("search []", None),
        ("search[ ]", None),
        ("research[x]", None),
        ("click[a", None),
        ("buy now", None),
        ("search[" + "a" * 600 + "]", Action("search", "a" * 500)),
    ],
)
def test_actions(text: str, action: Action | None) -> None:
    assert read_action(text) == action


def test_what_cannot_be_clicked_or_found_or_read() -> None:
    env = WebShop()
    env.reset(seed=0)
    text, *_, info = env.step("click[buy now]")
    assert text.startswith("There is no [buy now] to click here. Write search[words] or click")
    assert (info["verdict"], info["valid_action"]) == (-1, True)
    text, *_, info = env.step("search[zzzz]")
    assert text == "[back to search]\nnothing found\n"
    assert env.step("click[Back to Search]")[0] == "search page\n"
    text, *_, info = env.step("please buy it")
    assert text == "That is no action. Write search[words] or click[label].\n"
    assert (info["verdict"], info["valid_action"]) == (-1, False)


@pytest.mark.parametrize("size", ["full", "micro"])
def test_the_expert_buys_what_is_asked_for(size: str) -> None:
    env = WebShop(size=size)
    for split, count in env.source.sizes().items():
        for task in range(0, count or 0, max(1, (count or 0) // 25)):
            info = finished(env, 0, {"split": split, "task": task})
            assert (info["status"], info["metrics"]["score"]) == ("solved", 1)
            assert info["turn"] <= 10


def test_mistakes_cost_score() -> None:
    env = WebShop(size="micro")
    scores = [finished(env, seed, {"split": "test"}, 0.6)["metrics"]["score"] for seed in range(60)]
    assert 0.3 < sum(scores) / 60 < 0.97
    with pytest.raises(BadValueError, match="mistakes is -1"):
        env.expert(mistakes=-1)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["full", "micro"]),
    st.integers(0, 10**6),
    st.lists(st.integers(0, 99), min_size=1, max_size=9),
)
def test_every_walk_agrees_with_its_pages(size: str, seed: int, picks: list[int]) -> None:
    """Labels stand on their page, forks and pickles go the same way, and the score is bounded."""
    env = WebShop(size=size)
    text, _ = env.reset(seed=seed)
    for pick in picks:
        labels = env.pages.list_clickable(env.episode.state)
        assert all(f"[{label}]" in text for label in labels)
        legal = env.legal_actions()
        action = legal[pick % len(legal)]
        branch, copy = fork(env), pickle.loads(pickle.dumps(env))
        digest = env.digest()
        result = branch.step(action)
        assert env.digest() == digest
        assert copy.step(action) == result == env.step(action)
        assert branch.digest() == env.digest() == copy.digest()
        text, reward, terminated, truncated, _ = result
        assert 0 <= reward <= 1
        if terminated or truncated:
            break


def test_paging_shows_every_result_once() -> None:
    env = WebShop(max_turns=20)
    env.reset(seed=5)
    env.step("search[lamp]")
    found = env.episode.state.found
    listed = list(env.pages.list_items(env.episode.state))
    while NEXT in env.legal_actions()[1] + env.legal_actions()[2]:
        env.step(f"click[{NEXT}]")
        listed += env.pages.list_items(env.episode.state)
    assert len(found) == 50
    assert tuple(listed) == found


def test_an_option_too_many_earns_nothing() -> None:
    env = WebShop(size="full")
    for task in range(40):
        env.reset(seed=0, options={"task": task})
        goal = env.episode.task.payload
        item = env.shop[goal.item]
        if len(goal.options) == 1 and len(item.options) == 2:
            break
    env.step(f"search[{item.title}]")
    place = env.shop.places[goal.item]
    while place not in env.pages.list_items(env.episode.state):
        env.step(f"click[{NEXT}]")
    env.step(f"click[{item.id.lower()}]")
    asked = dict(find_best_choice(item, goal))
    for name, values in item.options:
        env.step(f"click[{asked.get(name, values[0])}]")
    assert env.step(f"click[{BUY}]")[1] == 1.0


def test_bad_settings() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'micro'"):
        WebShop(size="mikro")
    with pytest.raises(BadValueError, match="world_seed is -1"):
        WebShop(world_seed=-1)
    with pytest.raises(BadValueError, match="world_seed is True"):
        WebShop(world_seed=True)
    with pytest.raises(BadValueError, match="size is set, and data too"):
        WebShop(size="full", data="somewhere")
    with pytest.raises(BadValueError, match="there is no folder"):
        WebShop(data="/nowhere/at/all")
    with pytest.raises(BadValueError, match="data is 3; expected a text or a path"):
        WebShop(data=3)  # pyright: ignore[reportArgumentType]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("searchclik[]<>buy nowpv0B\n", max_size=30) | st.text(), max_size=6))
def test_any_text_is_a_move(texts: list[str]) -> None:
    env = WebShop(size="micro")
    env.reset(seed=1)
    for text in texts:
        if env.episode.status == "running":
            answer, reward, *_, info = env.step(text)
            assert answer.endswith("\n")
            assert reward == 0
            assert info["valid_action"] is (read_action(text) is not None)
