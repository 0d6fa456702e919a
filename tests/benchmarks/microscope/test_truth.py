"""The measured advantage of turns: against exact values, with shared noise, trees and sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from helpers.right_left_world import RIGHT, RightLeft, TableEngine, solve
from helpers.talk_world import LetterRenderer, ScriptEngine, Talk

from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Start
from turngym.algos.rollouts import Chains, Expand
from turngym.benchmarks.microscope.truth import (
    MeasuredGroup,
    RandomTransitionError,
    RecordingRunner,
    TruthSettings,
    measure_group,
)
from turngym.envs.core.errors import BadValueError


def measure(
    env: Any,
    engine: Any,
    rollout: Any,
    *,
    random: bool = False,
    tokens: int = 1,
    task: int = 0,
    **settings: Any,
) -> MeasuredGroup:
    renderer: Any = LetterRenderer()
    runner = RecordingRunner(env, engine, renderer, Sampling(max_tokens=tokens))

    async def work() -> MeasuredGroup:
        start = Start("train", task, 5, "u")
        group: Group = await rollout(runner, start)
        return await measure_group(runner, start, group, TruthSettings(**settings), random)

    try:
        return asyncio.run(work())
    finally:
        runner.forget()


def walk(**more: Any) -> MeasuredGroup:
    return measure(RightLeft(), TableEngine(), Chains(n=4), **more)


def numbers(measured: MeasuredGroup) -> list[list[float]]:
    return [[*t.q.tolist(), *t.v.tolist()] for t in measured.truths.values()]


def test_measured_values_are_those_of_dynamic_programming() -> None:
    values, advantages = solve()
    measured = walk(continuations=144)
    assert len(measured.truths) == sum(len(tree.turns) for tree in measured.group.trees)
    for (tree, turn), truth in measured.truths.items():
        played = measured.group.trees[tree].turns[turn]
        state, right = int(chr(played.obs_ids[-1])), played.action == "R"
        error = np.sqrt(values[turn, state] * (1 - values[turn, state]) / 144) + 1e-9
        assert abs(truth.v.mean() - values[turn, state]) < 4 * error
        exact = advantages[turn, state, int(right)]
        error = (truth.q - truth.v).std() / 12 + 1e-9
        assert abs((truth.q - truth.v).mean() - exact) < 4 * error


def test_one_rest_per_history_gives_the_numbers_of_playing_everything() -> None:
    together, apart = TableEngine(), TableEngine()
    one = measure(RightLeft(), together, Chains(n=4), continuations=8)
    all_of_it = measure(RightLeft(), apart, Chains(n=4), continuations=8, merge=False)
    drawn = measure(RightLeft(), TableEngine(), Chains(n=4), continuations=8, random=True)
    assert numbers(one) == numbers(all_of_it) == numbers(drawn)
    assert one.work.actions < 0.5 * all_of_it.work.actions
    assert one.work.continuations == 2 * 8 * len(one.truths)
    assert together.alive == apart.alive == set()  # every cache was given back


def test_noise_is_shared_so_that_the_same_choice_differs_by_exactly_nothing() -> None:
    measured = walk(continuations=64)
    first = measured.truths[0, 0]
    right = measured.group.trees[0].turns[0].action == "R"
    same = RIGHT[0] if right else 1 - RIGHT[0]
    zero = np.mean(first.q == first.v)
    assert zero >= same - 0.2
    other = walk(continuations=64, noise=1).truths[0, 0]
    assert (first.v != other.v).any()
    # the episode's own future is none of the continuations: they vary where it is one number
    assert 0 < first.q.mean() < 1


def test_random_transitions_are_found_refused_and_given_luck_of_their_own() -> None:
    env = RightLeft(slip=0.3)
    with pytest.raises(RandomTransitionError, match="drew random numbers"):
        measure(env, TableEngine(), Chains(n=4), continuations=8)
    measured = measure(env, TableEngine(), Chains(n=4), continuations=96, random=True)
    values, advantages = solve(slip=0.3)
    for tree in range(4):
        truth = measured.truths[tree, 0]
        right = measured.group.trees[tree].turns[0].action == "R"
        # with the luck of the start kept, the step itself would slip always or never
        exact = values[0, 0] + advantages[0, 0, int(right)]
        assert abs(truth.q.mean() - exact) < 4 * np.sqrt(exact * (1 - exact) / 96)
        error = (truth.q - truth.v).std() / np.sqrt(96) + 1e-9
        assert abs((truth.q - truth.v).mean() - advantages[0, 0, int(right)]) < 4 * error
    assert any((t.q != t.v).any() for t in measured.truths.values())


def test_turns_of_trees_are_measured_once_each() -> None:
    measured = measure(RightLeft(), TableEngine(), Expand(trees=2, nodes=3), continuations=4)
    places = {(t, i) for t, tree in enumerate(measured.group.trees) for i in range(len(tree.turns))}
    assert set(measured.truths) == places
    with pytest.raises(BadValueError, match="forks inside actions"):
        measure(
            Talk(),
            ScriptEngine(words=("yy z. ", "yz; zz. ")),
            Expand(trees=1, nodes=3, granularity="tokens", span=2),
            tokens=8,
            task=1,
            continuations=4,
        )


def test_broken_episodes_have_no_truth_and_broken_continuations_no_number() -> None:
    measured = measure(RightLeft(breaks=True), TableEngine(), Chains(n=2), continuations=4)
    assert measured.truths == {}  # every episode breaks at its third step
    engine = ScriptEngine(words=("s.", "f.", "x.", "b."))
    measured = measure(Talk(), engine, Chains(n=6), tokens=4, task=1, continuations=32)
    for tree, turn in measured.truths:
        line = measured.group.trees[tree].turns
        assert line[-1].status != "env_error"
        assert turn < len(line)
    broken = [np.isnan(t.v).mean() for t in measured.truths.values()]
    assert 0 < max(broken) < 1
    assert all(np.isfinite(t.means()).all() for t in measured.truths.values())
    assert engine.alive == set()


def test_sessions_count_with_the_whole_task() -> None:
    """A room that is opened belongs to the episode: its rewards are in the asking turn's Q."""
    engine = ScriptEngine(words=("r.", "h.", "x.", "s."))
    measured = measure(Talk(4), engine, Chains(n=6), tokens=4, task=1, continuations=64)
    asked = [
        (tree, i)
        for (tree, i) in measured.truths
        if measured.group.trees[tree].turns[i].action == "r." and i == 0
    ]
    assert asked
    for place in asked:
        assert measured.truths[place].q.mean() > 0.3  # the room itself pays nothing
    assert engine.alive == set()
