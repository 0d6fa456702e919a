"""Lottery, Noise, Judge and Rare: passwords with luck, with noise, and with all or nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from helpers.letter_play import begin, make, play, uniform_success
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError

LETTERS = st.text("abc", min_size=6, max_size=6)


@given(LETTERS, LETTERS, st.integers(0, 100), st.integers(0, 9))
def test_a_lot_depends_on_the_task_and_the_free_letters_alone(
    one: str, two: str, task: int, seed: int
) -> None:
    env = make("Lottery")
    begin(env, task, seed=seed)
    for letter in one[:3]:
        env.step(letter)
    twin = env.fork()
    drawn = []
    for copy, doors in ((env, one[3:]), (twin, two[3:])):
        for letter in doors:
            _, reward, _, _, info = copy.step(letter)
        terms: Any = info["reward_terms"]
        drawn.append(terms["luck"])
        right = sum(a == b for a, b in zip(doors, env.code[3:], strict=True)) / 3
        assert terms["outcome"] == pytest.approx(0.2 * right)
        assert reward == pytest.approx(0.2 * right + terms["luck"])
        assert info["metrics"]["right"] == pytest.approx(right)
        assert (info["status"] == "solved") == (right == 1)
    assert drawn[0] == drawn[1]
    play(env, one[:3] + two[3:], task, seed=seed + 1)
    assert env.lot(env.episode) == pytest.approx(drawn[0] / 0.8)


def test_every_task_deals_the_same_lots_in_an_order_of_its_own() -> None:
    env = make("Lottery")
    free = [a + b + c for a in "abc" for b in "abc" for c in "abc"]
    lots = []
    for task in range(3):
        drawn = []
        for letters in free:
            play(env, letters + "abc", task)
            drawn.append(env.lot(env.episode))
        assert sorted(drawn) == pytest.approx(np.arange(27) / 26)
        lots.append(drawn)
    assert lots[0] != lots[1] != lots[2]
    assert play(env, free[int(np.argmax(lots[2]))] + "abc", 2) == (pytest.approx(1.0), "solved")


def test_most_of_the_return_is_settled_by_the_free_letters() -> None:
    """Sibling correlation: the share of the return's variance that the prefix explains."""
    rng = np.random.default_rng(0)
    for luck, low, high in ((0.8, 0.85, 1.0), (0.0, 0.0, 0.0)):
        env = make("Lottery", luck=luck)
        inside, total = [], []
        for task in range(60):
            free = "".join(rng.choice(list("abc"), 3))
            doors = ["".join(rng.choice(list("abc"), 3)) for _ in range(5)]
            returns = [play(env, free + letters, task)[0] for letters in doors]
            inside.append(np.var(returns, ddof=1))
            total += returns
        share = max(0.0, 1 - float(np.mean(inside) / np.var(total)))
        assert low <= share <= high + 0.1, luck


def test_without_luck_the_free_letters_have_no_effect() -> None:
    env = make("Lottery", luck=0.0)
    for free in ("aaa", "cbc"):
        assert play(env, f"{free}abc") == (1.0, "solved")
        assert play(env, f"{free}abb")[0] == pytest.approx(2 / 3)


def test_a_free_letter_that_cannot_be_read_draws_nothing() -> None:
    env = make("Lottery")
    play(env, "a?babc")
    assert (env.lot(env.episode), env.episode.total_reward) == (0.0, pytest.approx(0.2))
    assert env.episode.invalid_actions == 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("Lottery", {"free": 0}),
        ("Lottery", {"free": 7}),
        ("Lottery", {"free": 6, "doors": 7}),
        ("Lottery", {"luck": 1.1}),
        ("Noise", {"noise": -1.0}),
        ("Noise", {"doors": 13}),
        ("Judge", {"doors": 0}),
        ("Rare", {"doors": 2.5}),
    ],
)
def test_numbers_out_of_range_are_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match=f"{name}: {list(wrong)[-1]} is"):
        make(name, **wrong)


@given(LETTERS.map(lambda s: s[:4]), st.integers(0, 2**31))
def test_noise_is_a_term_of_its_own(letters: str, seed: int) -> None:
    env = make("Noise", noise=0.5)
    total, _ = play(env, letters, seed=seed)
    right = sum(a == b for a, b in zip(letters, env.code, strict=True)) / 4
    assert abs(total - right) <= 2.0
    assert env.metrics(env.episode)["right"] == right
    assert (env.episode.status == "solved") == (right == 1)


def test_noise_is_normal_and_comes_from_the_episode_s_stream() -> None:
    env = make("Noise", noise=0.5)
    drawn = np.array([play(env, "baca", seed=seed)[0] - 1 for seed in range(2000)])
    assert drawn.mean() == pytest.approx(0.0, abs=0.04)
    assert drawn.std() == pytest.approx(0.5, rel=0.06)
    begin(env, seed=7)
    for letter in "bac":
        env.step(letter)
    twin, other = env.fork(), env.fork()
    other.redraw(3)
    rewards = [copy.step("a")[1] for copy in (env, twin, other)]
    assert rewards[0] == rewards[1] != rewards[2]
    assert other.episode.random.seed == 7


def test_without_noise_nothing_is_drawn() -> None:
    env = make("Noise", noise=0.0)
    assert play(env, "bacc") == (0.75, "failed")
    assert env.episode.random.position is None
    assert (env.chance, env.reward_range) == (False, (0.0, 1.0))


def test_noise_needs_a_letter() -> None:
    assert play(make("Noise"), "????")[0] == 0.0


@given(LETTERS)
def test_judge_pays_for_all_or_nothing_and_judges_every_door(letters: str) -> None:
    env, blind = make("Judge"), make("Judge", judged=False)
    verdicts: list[list[int]] = []
    for one in (env, blind):
        begin(one)
        verdicts.append([one.step(letter)[4]["verdict"] for letter in letters])
        assert one.episode.total_reward == float(letters == "bacabc")
    assert verdicts[0] == [1 if a == b else -1 for a, b in zip(letters, "bacabc", strict=True)]
    assert verdicts[1] == [0] * 6


@pytest.mark.parametrize("doors", [1, 3, 5])
def test_success_at_the_start_is_a_third_per_door(doors: int) -> None:
    for name in ("Rare", "Judge"):
        assert uniform_success(begin(make(name, doors=doors))) == pytest.approx(3.0**-doors)
    assert uniform_success(begin(make("Noise", doors=doors))) == pytest.approx(3.0**-doors)


def test_rare_tells_nothing_before_the_end() -> None:
    env = begin(make("Rare"))
    steps = [env.step(letter) for letter in "bacab"]
    assert [step[4]["verdict"] for step in steps] == [0] * 5
    assert [step[1] for step in steps] == [0, 0, 0, 0, 1]
    assert Counter(step[0] for step in steps) == {"\nnext:": 4, "\n": 1}
