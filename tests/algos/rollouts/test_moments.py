"""Copies that do the same are played once, and nobody can tell from what comes out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.sandboxes import FULL, need
from helpers.talk_world import LetterRenderer, ScriptEngine, Talk
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import Group, Turn
from turngym.algos.core.protocols import Start
from turngym.algos.rollouts import Chains, EpisodeRunner
from turngym.algos.rollouts.moments import AHEAD, may_share
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.wrappers.record import RecordEpisodes

SAMPLING = Sampling(max_tokens=8)
WORDS = ("s.", "f.", "x.", "yy.", "r.", "h.", "b.")


class Counting(Talk):
    """Counts what is played."""

    plays = 0

    def play(self, episode: Any, action: str) -> Any:
        """Count, and play as :class:`Talk` does."""
        Counting.plays += 1
        return super().play(episode, action)


def play(
    n: int,
    engine: ScriptEngine,
    seed: int = 5,
    *,
    kind: type[Counting] = Counting,
    shared: bool = True,
    blocking: bool = False,
) -> tuple[Group, int]:
    """A group, and how many actions its environment played."""
    env = kind()
    env.blocking = blocking
    Counting.plays = 0
    runner = EpisodeRunner(env, engine, LetterRenderer(), SAMPLING)  # pyright: ignore
    runner.record_states = True
    if not shared:
        runner.copies = lambda handle, count: [handle.fork(i) for i in range(count)]
    group = asyncio.run(Chains(n=n)(runner, Start("train", 2, seed, "u")))
    return group, Counting.plays


def contents(turn: Turn) -> list[Any]:
    """All that a turn holds, comparable."""
    found = []
    for field in fields(turn):
        value = getattr(turn, field.name)
        many = value if isinstance(value, tuple) else (value,)
        found.append([v.tolist() if isinstance(v, np.ndarray) else v for v in many])
    return found


def same(a: Group, b: Group) -> bool:
    return [[contents(t) for t in tree.turns] for tree in a.trees] == [
        [contents(t) for t in tree.turns] for tree in b.trees
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 9),
    st.integers(0, 2**40),
    st.integers(0, 99),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.booleans(),
)
def test_a_shared_group_is_the_group_of_forks(
    n: int, seed: int, delays: int, words: Sequence[str], blocking: bool
) -> None:
    """In sessions, past faults, in whatever order requests are answered, in threads too."""

    def engine() -> ScriptEngine:
        return ScriptEngine(delays=delays, words=words)

    forks, all_plays = play(n, engine(), seed, shared=False)
    whose = engine()
    shared, plays = play(n, whose, seed, blocking=blocking)
    assert same(shared, forks)
    assert plays <= all_plays
    assert not whose.alive  # every cache is given back


def test_what_is_done_alike_is_played_once_and_is_one_turn() -> None:
    """The chains come one after the other here, to where the first one has long gone on from."""
    group, plays = play(3, ScriptEngine(["x.", "yy.", "s.", "x.", "yy.", "f.", "x.", "s."]))
    assert plays == 5
    first, second, third = (tree.turns for tree in group.trees)
    assert first[0] is second[0] is third[0]
    assert first[1] is second[1]
    assert [turns[-1].action for turns in (first, second, third)] == ["s.", "f.", "s."]
    assert [dict(t[-1].metrics)["words"] for t in (first, second, third)] == [3.0, 3.0, 2.0]


def test_an_environment_that_fails_is_asked_again_by_each() -> None:
    group, plays = play(3, ScriptEngine(["b."] * 3))
    assert plays == 3
    assert [tree.turns[-1].status for tree in group.trees] == ["env_error"] * 3


def test_what_draws_numbers_is_forked() -> None:
    class Drawing(Counting):
        chance = True

    assert play(3, ScriptEngine(["s."] * 3), kind=Drawing)[1] == 3


def test_an_error_reaches_whoever_waits_for_the_same() -> None:
    class Wrong(Counting):
        def play(self, episode: Any, action: str) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        play(3, ScriptEngine(words=["s."]), kind=Wrong, blocking=True)


def test_giving_up_while_others_wait_is_giving_up() -> None:
    """Not an error of the promise that copies wait for, which would hide an interruption."""
    begun, go = threading.Event(), threading.Event()

    class Slow(Counting):
        def play(self, episode: Any, action: str) -> Any:
            begun.set()
            go.wait(10)
            return super().play(episode, action)

    async def main() -> None:
        env = Slow()
        env.blocking = True
        runner = EpisodeRunner(env, ScriptEngine(words=["s."]), LetterRenderer(), SAMPLING)  # pyright: ignore
        group = asyncio.ensure_future(Chains(n=3)(runner, Start("train", 2, 5, "u")))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        group.cancel()
        try:
            await group
        finally:
            go.set()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


def test_who_is_far_ahead_plays_for_itself() -> None:
    """However long an episode is: environments are kept for a few turns alone."""
    turns = 3 * AHEAD

    class Long(Counting):
        def __init__(self) -> None:
            super().__init__(max_turns=turns)

    group, plays = play(2, ScriptEngine(["x."] * 2 * turns), kind=Long)
    assert [len(tree.turns) for tree in group.trees] == [turns, turns]
    same = [a is b for a, b in zip(group.trees[0].turns, group.trees[1].turns, strict=True)]
    assert same == [True] * AHEAD + [False] * (turns - AHEAD)
    assert plays == 2 * turns - AHEAD


def test_what_may_answer_otherwise_is_asked_for_every_path(tmp_path: Path) -> None:
    class Asking(Counting):
        repeatable = False

    assert play(3, ScriptEngine(["s."] * 3), kind=Asking)[1] == 3
    recorded = RecordEpisodes(gym.make("Game24-v0"), tmp_path / "all.jsonl")
    assert not may_share(recorded)
    assert may_share(recorded.env)


def test_code_runs_for_every_path() -> None:
    need(FULL)
    assert not may_share(SearchQA(size="micro", tools=("search", "python")))
