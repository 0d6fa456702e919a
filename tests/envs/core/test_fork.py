"""Forks: equal at birth, independent after, cheap, through wrappers."""

from __future__ import annotations

import copy
import timeit
from collections import deque
from typing import Any

import gymnasium as gym
import pytest
from helpers.guess_worlds import AskingGuess, Guess, guess
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs import fork
from turngym.envs.core.errors import BadValueError

ACTIONS = st.lists(st.integers(99, 300).map(guess) | st.sampled_from(["", "junk"]), max_size=8)


@given(seed=st.integers(0, 1000), before=ACTIONS, after=ACTIONS, other=ACTIONS)
@settings(max_examples=40, deadline=None)
def test_fork_then_act_equals_act(
    seed: int, before: list[str], after: list[str], other: list[str]
) -> None:
    env = Guess(max_turns=40)
    env.reset(seed=seed)
    env.np_random.random()
    play(env, before)
    twin, third = env.fork(), env.fork()
    digest = env.digest()
    assert twin.digest() == digest
    play(third, other)
    assert (env.digest(), twin.digest()) == (digest, digest)
    assert play(twin, after) == play(env, after)
    assert twin.digest() == env.digest()
    assert twin.np_random.random() == env.np_random.random()


def play(env: Any, actions: list[str]) -> list[Any]:
    taken = []
    for action in actions:
        if env.episode.status == "running":
            taken.append(env.step(action))
    return taken


def test_a_fork_before_the_first_reset_is_a_fresh_environment() -> None:
    env = AskingGuess()
    twin = env.fork()
    twin.reset(seed=3)
    assert env._episode is None
    assert twin.oracle is env.oracle  # read-only parts stay shared


def test_a_fork_never_repeats_a_call() -> None:
    env = AskingGuess()
    env.reset(seed=1)
    env.step(guess(101))
    before = list(env.oracle.batches)
    env.fork()
    assert env.oracle.batches == before


def test_spaces_of_a_fork_sample_on_their_own() -> None:
    env = Guess()
    env.reset(seed=1)
    env.action_space.seed(5)
    twin = env.fork()
    first = [env.action_space.sample() for _ in range(3)]
    assert [twin.action_space.sample() for _ in range(3)] == first


def test_deepcopy_is_a_fork() -> None:
    env = AskingGuess()
    env.reset(seed=1)
    twin = copy.deepcopy(env)
    assert twin.oracle is env.oracle
    twin.step(guess(101))
    assert env.episode.turn == 0


class Memory(gym.Wrapper):
    """Holds the world itself and a buffer, as many wrappers do."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.world = env.unwrapped
        self.seen: deque[str] = deque(maxlen=3)

    def step(self, action):
        self.seen.append(action)
        return super().step(action)


def test_wrappers_are_forked_with_what_they_hold() -> None:
    env = Memory(gym.wrappers.TimeLimit(Memory(Guess()), 3))
    env.reset(seed=1)
    env.step("a")
    twin = fork(env)
    assert isinstance(twin, Memory)
    assert twin.world is twin.unwrapped is not env.unwrapped
    assert twin.env.env.world is twin.unwrapped  # type: ignore[attr-defined]
    twin.step("b")
    assert (list(env.seen), list(twin.seen)) == (["a"], ["a", "b"])
    assert twin.step("c")[3], "the copy's own time limit"
    assert not env.step("c")[3]


def test_a_wrapper_may_fork_itself() -> None:
    class Own(gym.Wrapper):
        def fork_wrapper(self, inner):
            return Own(gym.wrappers.TimeLimit(inner, 1))

    env = Own(Guess())
    env.reset(seed=1)
    twin = fork(env)
    twin.reset(seed=1)
    assert twin.step("")[3]


def test_other_environments_are_refused() -> None:
    with pytest.raises(BadValueError, match="CartPoleEnv is not a TextEnv"):
        fork(gym.make("CartPole-v1"))


def test_a_fork_is_cheap() -> None:
    class Light(Guess):
        def fork_state(self, state):
            return type(state)(state.secret, state.asked.copy())

    env = Light(max_turns=100)
    env.reset(seed=1)
    play(env, [guess(100)] * 20)
    best = min(timeit.repeat(lambda: fork(env), number=200, repeat=7)) / 200
    assert best < 20e-6 * 3  # 20 microseconds on a quiet machine
