"""Fog: looks that err, what follows from them, and luck that forks keep or draw anew."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.letter_play import begin, make, play, texts
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError

SEEN = st.text("abc", max_size=6)


@given(SEEN, st.floats(0.01, 0.66))
def test_the_posterior_is_that_of_bayes(seen: str, fog: float) -> None:
    env = make("Fog", fog=fog, looks=6)
    found = env.posterior(seen)
    joint = {
        name: float(np.prod([1 - fog if shown == name else fog / 2 for shown in seen]))
        for name in "abc"
    }
    for name in "abc":
        assert found[name] == pytest.approx(joint[name] / sum(joint.values()))
    top = max(found.values())
    assert set(env.likeliest(seen)) == {n for n in "abc" if found[n] == pytest.approx(top)}


def test_looks_show_the_hidden_letter_as_often_as_they_should() -> None:
    env = make("Fog", looks=32)
    shown = []
    for seed in range(120):
        begin(env, seed, seed=seed)
        hidden = env.episode.state.hidden
        for _ in range(32):
            shown.append((hidden, env.step("l")[0][1]))
    assert np.mean([a == b for a, b in shown]) == pytest.approx(0.7, abs=0.03)
    for hidden, other in product("abc", repeat=2):
        if hidden != other:
            often = np.mean([b == other for a, b in shown if a == hidden])
            assert often == pytest.approx(0.15, abs=0.04)


def test_a_look_costs_and_naming_ends() -> None:
    env = begin(make("Fog"))
    hidden = env.episode.state.hidden
    wrong = "abc".replace(hidden, "")[0]
    assert env.step("l")[1] == -0.02
    assert play(env, hidden) == (1.0, "solved")
    assert play(env, wrong) == (0.0, "failed")
    assert play(env, f"ll{hidden}") == (pytest.approx(0.96), "solved")
    assert env.metrics(env.episode) == {"looks": 2.0}


def test_there_are_so_many_looks_and_no_more() -> None:
    env = make("Fog", looks=2)
    total, status = play(env, "lll")
    assert (total, status) == (pytest.approx(-0.04), "truncated")
    assert env.episode.observation == "\nno:"
    assert play(make("Fog", looks=0), "l") == (0.0, "truncated")


def test_signs_tell_nothing_about_the_letter() -> None:
    source = make("Fog").source
    tasks = [source.task(split, i).payload for split, n in source.sizes().items() for i in range(n)]
    by_signs: dict[str, set[str]] = {}
    for signs, hidden in tasks:
        by_signs.setdefault(signs, set()).add(hidden)
    assert set(map(frozenset, by_signs.values())) == {frozenset("abc")}


@pytest.mark.parametrize(("fog", "best"), [(0.0, 1.0), (0.3, 0.8155), (0.5, 0.5625)])
def test_the_looker_reaches_what_looks_can_tell(fog: float, best: float) -> None:
    env = make("Fog", fog=fog)
    policy: Any = env.baselines()["looker"](0)
    exact = 0.0
    for seen in product("abc", repeat=3):  # the hidden letter is a, ties go to the first
        chance = float(np.prod([1 - fog if shown == "a" else fog / 2 for shown in seen]))
        likely = env.likeliest("".join(seen))
        exact += chance * ("a" in likely) / len(likely)
    assert exact == pytest.approx(best)
    solved = 0
    for seed in range(300):
        begin(env, seed % 140, seed=seed)
        while env.episode.status == "running":
            env.step(policy(env, env.episode.observation, {}))
        solved += env.episode.status == "solved"
    assert solved / 300 == pytest.approx(best, abs=0.08)


def test_verdicts_follow_what_was_seen() -> None:
    env = begin(make("Fog", fog=0.0))
    hidden = env.episode.state.hidden
    assert [env.step(letter)[4]["verdict"] for letter in ("l", hidden)] == [0, 1]
    begin(env)
    env.step("l")
    assert env.step("abc".replace(hidden, "")[0])[4]["verdict"] == -1
    begin(env)
    assert env.step("abc".replace(hidden, "")[0])[4]["verdict"] == 1  # nothing was seen


def test_without_fog_a_look_tells_all_and_nothing_is_drawn() -> None:
    env = begin(make("Fog", fog=0.0))
    assert texts(env, "lll") == [f"\n{env.episode.state.hidden}:"] * 3
    env.step("l")
    assert env.episode.random.position is None
    assert not env.chance


@given(st.integers(0, 2**31), st.integers(0, 2**60))
def test_forks_see_the_same_until_they_are_redrawn(seed: int, key: int) -> None:
    env = begin(make("Fog", fog=0.6, looks=32), seed=seed)
    env.step("l")
    twin, one, two = env.fork(), env.fork(), env.fork()
    before = env.state_digest()
    for copy in (one, two):
        copy.redraw(key)
    assert one.state_digest() == before
    looks = "l" * 30
    assert texts(twin, looks) == texts(env, looks) != texts(one, looks) == texts(two, looks)


def test_the_order_of_looks_is_no_part_of_the_state() -> None:
    by_order: dict[str, set[str]] = {}
    env = make("Fog", fog=0.6)
    for seed in range(40):
        begin(env, seed=seed)
        env.step("l")
        env.step("l")
        by_order.setdefault("".join(sorted(env.episode.state.seen)), set()).add(env.state_digest())
    assert len(by_order) == 6
    assert all(len(digests) == 1 for digests in by_order.values())


@pytest.mark.parametrize("wrong", [{"fog": 0.7}, {"fog": -0.1}, {"looks": -1}, {"looks": 33}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match=f"Fog: {next(iter(wrong))} is"):
        make("Fog", **wrong)
