"""ARPO's rollout."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from helpers.talk_world import LetterRenderer, ScriptEngine, Talk
from helpers.walk_world import DiceEngine, Walk, WalkRenderer
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import ROOT, Forest, Group
from turngym.algos.core.protocols import Start
from turngym.algos.rollouts import BalancedBranch, Branch, Chains, EpisodeRunner, branch, seed_at
from turngym.algos.rollouts.branch import probe_entropy
from turngym.envs.core.errors import BadValueError

ALWAYS, NEVER = {"alpha": 1.0, "beta": 0.0}, {"alpha": 0.0, "beta": 0.0}


def play(rollout: Any, turns: int = 3, seed: int = 5, engine: Any = None) -> tuple[Group, Any]:
    engine = engine or DiceEngine()
    renderer: Any = WalkRenderer()
    runner = EpisodeRunner(Walk(turns), engine, renderer, Sampling(max_tokens=4))
    return asyncio.run(rollout(runner, Start("train", 1, seed, "1/0"))), engine


def test_entropy_of_the_released_code() -> None:
    """E10: top-10 candidates, summed over tokens, by ln(vocabulary)."""
    size = 151_665
    flat = np.log(np.full((1, 10), 0.1, np.float32))
    sharp = np.log(np.array([[0.9] + [0.1 / 9] * 9], np.float32))
    assert probe_entropy(flat, flat[:, 0], size) * math.log(size) == pytest.approx(2.302585)
    assert probe_entropy(sharp, sharp[:, 0], size) * math.log(size) == pytest.approx(0.544805)
    twenty = [np.repeat(x, 20, 0) for x in (flat, sharp)]
    high, low = (probe_entropy(x, x[:, 0], size) for x in twenty)
    assert high == pytest.approx(3.860344, abs=1e-6)
    assert low == pytest.approx(0.913381, abs=1e-6)
    assert high - low == pytest.approx(2.946964, abs=1e-6)
    eleven = np.log(np.array([[0.5] + [0.04] * 9], np.float32))
    outside = np.log(np.array([0.01], np.float32))
    got = probe_entropy(eleven, outside, size) * math.log(size)
    # the tenth candidate is 0.04, so the sampled 0.01 is an eleventh
    assert got == pytest.approx(1.551421, abs=1e-6)
    # sampling the tenth one itself adds nothing, though its own rounding is another
    tenth = np.nextafter(eleven[:, -1], np.float32(-np.inf))
    got = probe_entropy(eleven, tenth, size) * math.log(size)
    assert got == pytest.approx(1.551421 + 0.01 * math.log(0.01), abs=1e-6)
    # ruled out by the model: no mass, no entropy
    ruled = np.log(np.array([[0.9, 0.1]], np.float32))
    ruled = np.concatenate([ruled, np.full((1, 8), -np.inf, np.float32)], 1)
    alone = probe_entropy(ruled, ruled[:, 1], size) * math.log(size)
    assert alone == pytest.approx(-0.9 * math.log(0.9) - 0.1 * math.log(0.1), abs=1e-6)


@pytest.mark.parametrize(
    ("compat", "n", "m", "beam", "chance", "turns", "segments"),
    [
        (True, 8, 16, 2, ALWAYS, 3, 40),
        (True, 8, 16, 2, NEVER, 3, 48),
        (True, 8, 10, 2, ALWAYS, 3, 28),
        (True, 4, 16, 2, ALWAYS, 4, 44),
        (True, 4, 16, 4, ALWAYS, 4, 52),
        (False, 8, 16, 2, ALWAYS, 3, 40),
        (False, 8, 16, 2, NEVER, 3, 48),
        (False, 8, 10, 2, ALWAYS, 3, 28),
        # the probe comes a turn later, so the first chains use the budget up before their branches
        (False, 4, 16, 2, ALWAYS, 4, 40),
        (False, 4, 16, 4, ALWAYS, 4, 52),
    ],
)
def test_budget_completion(
    compat: bool,
    n: int,
    m: int,
    beam: int,
    chance: dict[str, float],
    turns: int,
    segments: int,
) -> None:
    """E11: generated segments."""
    rollout = Branch(initial=n, budget=m, beam=beam, reference_compat=compat, **chance)
    Walk.steps = 0
    group, engine = play(rollout, turns)
    assert engine.requests == Walk.steps == segments
    forest = Forest.of([group])
    assert len(forest.paths) == m
    assert all(len(path.turns) == turns for path in forest)
    if compat:
        assert set(engine.top) == {10}


def test_fresh_chains_one_at_a_time_or_at_once() -> None:
    """E11: 27 rounds as released, 3 + 3 when the rest is filled in parallel.

    With branches at the first call 3 rounds as released; the probe makes it one more.
    """
    for compat, chance, rounds in (
        (True, NEVER, 27),
        (False, NEVER, 6),
        (True, ALWAYS, 3),
        (False, ALWAYS, 4),
    ):
        engine = _Rounds()
        play(Branch(initial=8, budget=16, reference_compat=compat, **chance), 3, engine=engine)
        assert engine.rounds == rounds


class _Rounds(DiceEngine):
    """Counts how often requests come together."""

    rounds = 0
    _open = False

    async def generate(self, request: Any) -> Any:
        if not self._open:
            self._open = True
            self.rounds += 1
        await asyncio.sleep(0)
        self._open = False
        return await super().generate(request)


def test_branches_hang_where_the_tool_had_answered_and_see_what_their_origin_saw() -> None:
    for compat in (True, False):
        group, _ = play(Branch(initial=2, budget=4, reference_compat=compat, **ALWAYS), 3)
        assert len(group.trees) == 2
        for tree in group.trees:
            first, *rest = tree.turns
            assert first.parent == ROOT
            children = [t for t in rest if t.parent == 0]
            assert len(children) == 2
            assert (children[0].obs_ids == children[1].obs_ids).all()
            assert children[0].logprobs.tolist() != children[1].logprobs.tolist()


@given(st.integers(1, 5), st.integers(0, 9), st.integers(1, 4), st.floats(0, 2), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_the_budget_is_used_exactly_and_never_passed(
    n: int, more: int, beam: int, alpha: float, seed: int
) -> None:
    rollout = Branch(initial=n, budget=n + more, beam=beam, alpha=alpha, beta=1.0)
    group, _ = play(rollout, 3, seed)
    assert len(Forest.of([group]).paths) == n + more
    first, _ = play(Chains(n=n), 3, seed)
    for tree, chain in zip(group.trees[:n], first.trees, strict=True):
        line = [t.action for t in tree.turns][: len(chain.turns)]
        assert line[0] == chain.turns[0].action


@pytest.mark.parametrize("rise", [0.0, 8.0])
def test_a_rise_of_the_entropy_decides(rise: float) -> None:
    """With alpha 0 a chain branches only where the probe is more uncertain than its beginning."""

    class Rising(DiceEngine):
        async def generate(self, request: Any) -> Any:
            done = await super().generate(request)
            later = len(request.ids) > len("Walk.t1:")
            done.entropies[:] = rise if later else 0.0
            return done

    rollout = Branch(initial=2, budget=4, alpha=0.0, beta=1.0, threshold=0.9)
    group, _ = play(rollout, 3, engine=Rising())
    shared = sum(sum(t.parent == 0 for t in tree.turns) == 2 for tree in group.trees)
    assert shared == (2 if rise else 0)


@pytest.mark.parametrize(("compat", "most"), [(False, 8), (True, 3)])
def test_a_branch_measures_against_its_origins_beginning(compat: bool, most: int) -> None:
    """Entropy 0 in the first action, high ever after; one chain of four turns.

    Paper: all branch at each of the three tool answers, against the 0 that they inherit: 2 * 2 * 2.
    Released code: the first answer is judged by the action before it, and branches begin high and
    never rise: one branch each at the second and the third.
    """

    class Step(DiceEngine):
        async def generate(self, request: Any) -> Any:
            done = await super().generate(request)
            first = len(request.ids) <= len("Walk.t1:")
            done.entropies[:] = 0.0 if first else 4.0
            if done.top_logprobs is not None:
                done.top_logprobs[:] = -np.inf if first else math.log(1 / 10)
                done.logprobs[:] = 0.0 if first else math.log(1 / 10)
            return done

    how: dict[str, Any] = {"alpha": 0.0, "beta": 9.0, "threshold": 0.5}
    group, _ = play(
        Branch(initial=1, budget=most, reference_compat=compat, **how), 4, engine=Step()
    )
    assert len(group.trees) == 1
    more = Branch(initial=1, budget=most + 1, reference_compat=compat, **how)
    group, _ = play(more, 4, engine=Step())
    assert [len(tree.finals()) for tree in group.trees] == [most, 1]


def test_whether_a_chain_branches_is_drawn_apart_from_its_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []

    def noting(*place: int) -> int:
        drawn.append(seed_at(*place))
        return drawn[-1]

    class Noting(DiceEngine):
        async def generate(self, request: Any) -> Any:
            seeds.append(request.seed)
            return await super().generate(request)

    seeds: list[int] = []
    monkeypatch.setattr(branch, "seed_at", noting)
    play(Branch(initial=4, budget=30, beam=3), 3, engine=Noting())
    assert len(set(seeds)) == len(seeds)
    assert len(set(drawn)) == len(drawn) > 8
    assert not set(drawn) & set(seeds)


def test_the_share_of_branches_is_the_probability() -> None:
    """Four chains that read one tool answer each; no fresh one is left to branch."""
    shares = []
    for seed in range(100):
        group, _ = play(Branch(initial=4, budget=8, alpha=0.3, beta=0.0), 2, seed)
        shares += [len(tree.finals()) > 1 for tree in group.trees[:4]]
    error = math.sqrt(0.3 * 0.7 / len(shares))
    assert np.mean(shares) == pytest.approx(0.3, abs=4 * error)


def test_the_probe_is_only_so_many_tokens_long() -> None:
    class Late(DiceEngine):
        async def generate(self, request: Any) -> Any:
            done = await super().generate(request)
            later = len(request.ids) > len("Walk.t1:")
            done.entropies[:] = 0.0
            done.entropies[1:] = 50.0 * later
            return done

    def branched(k: int) -> bool:
        rollout = Branch(initial=4, budget=8, alpha=0.0, beta=1.0, threshold=0.5, probe_tokens=k)
        group, _ = play(rollout, 3, engine=Late(width=4))
        return len(group.trees) < 8

    assert not branched(1)
    assert branched(4)


def test_worlds_with_sessions_branch_too() -> None:
    """A branch keeps the order of its own episode."""
    engine = ScriptEngine(["r.", "r.", "h.", "h.", "s.", "s."])
    renderer: Any = LetterRenderer()
    runner = EpisodeRunner(Talk(), engine, renderer, Sampling(max_tokens=8))
    rollout = Branch(initial=2, budget=2)
    group = asyncio.run(rollout(runner, Start("train", 2, 5, "u")))
    for tree in group.trees:
        assert tree.episode(len(tree.turns) - 1) == tuple(range(len(tree.turns)))


def test_compat_needs_an_engine_that_tells() -> None:
    class Mute(DiceEngine):
        async def generate(self, request: Any) -> Any:
            self.top.append(0)
            done = await super().generate(request)
            return type(done)(
                ids=done.ids, logprobs=done.logprobs, entropies=done.entropies, stop=done.stop
            )

    with pytest.raises(BadValueError, match="reference_compat"):
        play(Branch(reference_compat=True), engine=Mute())


@pytest.mark.parametrize(
    "bad",
    [
        {"initial": 0},
        {"budget": 7},
        {"beam": 0},
        {"probe_tokens": 0},
        {"threshold": 1.5},
        {"alpha": math.nan},
        {"alpha": -0.1},
        {"beta": -0.2},
        {"beta": "0.2"},
        {"limit_calls": 0},
    ],
)
def test_settings_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(BadValueError):
        Branch(**bad)


def test_branching_in_a_row_tires() -> None:
    """Without fatigue it is ARPO's; with all of it, a chain pauses after every branching."""
    tired = [BalancedBranch(fatigue=0.4).tired(streak) for streak in range(4)]
    assert tired == pytest.approx([1, 0.6, 0.2, 0])
    room: dict[str, Any] = {"initial": 1, "budget": 64, **ALWAYS}

    def leaves(rollout: Any) -> int:
        group, _ = play(rollout, 5)
        return len(group.trees[0].leaves())

    plain = leaves(Branch(**room))
    assert leaves(BalancedBranch(fatigue=0.0, **room)) == plain
    # all chains have branched at the first answer: none may at the second, all may at the third
    assert leaves(BalancedBranch(fatigue=1.0, **room)) < plain
    with pytest.raises(BadValueError, match="fatigue"):
        BalancedBranch(fatigue=-1.0)
