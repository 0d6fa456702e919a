"""Tree-GRPO's rollout."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers.rollout_laws import check_replay
from helpers.rollout_laws import play as hall
from helpers.walk_world import DiceEngine, Walk, WalkRenderer
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import ROOT, Forest, Group, Tree
from turngym.algos.core.protocols import Start
from turngym.algos.rollouts import Branch, Chains, EpisodeRunner, Expand
from turngym.algos.rollouts.expand import mid_stop
from turngym.envs.core.errors import BadValueError


def play(rollout: Any, turns: int = 3, seed: int = 5, **engine: Any) -> Group:
    env = Walk(turns)
    renderer: Any = WalkRenderer()
    runner = EpisodeRunner(env, DiceEngine(**engine), renderer, Sampling(max_tokens=4))
    return asyncio.run(rollout(runner, Start("train", 1, seed, "1/0")))


def shape(tree: Tree) -> list[tuple[int, str, str]]:
    return [(t.parent, t.action, t.status) for t in tree.turns]


def same(a: Group, b: Group) -> bool:
    return [shape(t) for t in a.trees] == [shape(t) for t in b.trees] and all(
        (x.logprobs == y.logprobs).all() and (x.obs_ids == y.obs_ids).all()
        for s, t in zip(a.trees, b.trees, strict=True)
        for x, y in zip(s.turns, t.turns, strict=True)
    )


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_without_rounds_it_is_chains_and_so_is_a_branch_without_budget(
    n: int, turns: int, seed: int
) -> None:
    chains = play(Chains(n=n), turns, seed)
    assert same(chains, play(Expand(trees=n, nodes=0, rounds=0), turns, seed))
    assert same(chains, play(Expand(trees=n, nodes=2, rounds=0), turns, seed))
    assert same(chains, play(Branch(initial=n, budget=n), turns, seed))


@given(
    st.integers(1, 3), st.integers(0, 3), st.integers(0, 2), st.integers(1, 4), st.integers(0, 99)
)
@settings(max_examples=40, deadline=None)
def test_it_grows_the_paths_it_says_and_runs_no_tool_twice(
    trees: int, nodes: int, rounds: int, turns: int, seed: int
) -> None:
    Walk.steps = 0
    group = play(Expand(trees=trees, nodes=nodes, rounds=rounds), turns, seed)
    forest = Forest.of([group])
    assert len(forest.paths) == trees * (1 + nodes * rounds)
    assert Walk.steps == sum(len(tree.turns) for tree in group.trees)
    for path in forest:
        assert [t.status for t in forest.turns(path)] == ["running"] * (turns - 1) + ["solved"]
    # the first chains are those of Chains: expanding changes nothing that was there
    first = play(Chains(n=trees), turns, seed)
    for tree, chain in zip(group.trees, first.trees, strict=True):
        assert shape(tree)[:turns] == shape(chain)


def test_a_deterministic_function_of_the_seed() -> None:
    rollout = Expand(trees=2, nodes=3, rounds=2, keep=4)
    assert same(play(rollout), play(rollout, delays=True))
    assert not same(play(rollout, seed=6), play(rollout, seed=7))


@pytest.mark.parametrize(("turns", "mean"), [(1, 1.0), (2, 0.75), (3, 2 / 3), (4, 0.625), (5, 0.6)])
def test_mean_cost_of_an_expansion_is_that_of_the_spec(turns: int, mean: float) -> None:
    """E8: from a chain of T turns there are T points, the start among them."""
    costs = []
    for seed in range(60):
        group = play(Expand(trees=1, nodes=8, rounds=1), turns, seed)
        costs.append((len(group.trees[0].turns) - turns) / 8 / turns)
    error = np.std(costs) / np.sqrt(len(costs))
    assert np.mean(costs) == pytest.approx(mean, abs=4 * error + 1e-9)


@pytest.mark.parametrize(("turns", "chains"), [(1, 6.0), (2, 5.0), (3, 14 / 3), (4, 4.5), (5, 4.4)])
def test_cost_of_the_papers_setting(turns: int, chains: float) -> None:
    """E8: (2, 2, 1) in units of a chain, by the length of the chains."""
    rollout = Expand(trees=2, nodes=2, rounds=1)
    costs = [sum(len(t.turns) for t in play(rollout, turns, s).trees) / turns for s in range(150)]
    error = np.std(costs) / np.sqrt(len(costs))
    assert np.mean(costs) == pytest.approx(chains, abs=4 * error + 1e-9)


def test_points_are_the_start_and_every_turn_that_went_on() -> None:
    """Uniformly, with replacement; what one round adds is there in the next one."""
    drawn = np.zeros(4)
    for seed in range(50):
        tree = play(Expand(trees=1, nodes=8, rounds=1), 4, seed).trees[0]
        chain, *others = (tree.chain(last) for last in tree.leaves())
        for line in others:
            drawn[sum(i in chain for i in line)] += 1
    assert drawn.sum() == 400
    assert ((drawn - 100) ** 2 / 100).sum() < 16.3  # chi-square, 3 degrees of freedom, p = 0.001
    later = 0
    for seed in range(20):
        tree = play(Expand(trees=1, nodes=2, rounds=2), 4, seed).trees[0]
        old = set(tree.chain(tree.leaves()[0]))
        fresh = [t.parent for t in tree.turns if t.parent != ROOT and t.parent not in old]
        later += sum(fresh.count(p) > 1 for p in set(fresh))
    assert later > 3


def test_broken_endings_stay_beside_those_that_are_kept() -> None:
    words = ("s.", "f.", "b.", "x.", "yy.")
    for seed in range(20):
        whole, _ = hall(Expand(trees=2, nodes=3, rounds=1), seed, words)
        some, _ = hall(Expand(trees=2, nodes=3, rounds=1, keep=2), seed, words)
        before, after = Forest.of([whole]), Forest.of([some])
        assert after.env_errors == before.env_errors
        for t in range(2):
            paths = [sum(p.tree == t for p in forest) for forest in (before, after)]
            assert paths[1] == min(paths[0], 2)
        check_replay(some, seed)


@pytest.mark.parametrize(
    ("m", "n", "rounds", "paper_cost", "paths"),
    [
        (2, 2, 1, 4, 6),
        (2, 1, 2, 4, 6),
        (1, 5, 1, 3.5, 6),
        (8, 2, 1, 16, 24),
        (6, 3, 1, 15, 24),
        (4, 5, 1, 14, 24),
        (2, 11, 1, 13, 24),
        (2, 6, 2, 14, 26),
        (5, 2, 2, 15, 25),
        (2, 4, 3, 14, 26),
    ],
)
def test_budget_table(m: int, n: int, rounds: int, paper_cost: float, paths: int) -> None:
    """E7: paths exactly; the paper's expected cost counts half a chain per expansion."""
    rollout = Expand(trees=m, nodes=n, rounds=rounds)
    assert rollout.max_paths == paths
    assert m + m * n * rounds / 2 == paper_cost
    turns = 4
    group = play(rollout, turns)
    assert len(Forest.of([group]).paths) == paths
    cost = sum(len(tree.turns) for tree in group.trees) / turns
    assert m + m * n * rounds / turns <= cost <= m * (1 + n * rounds)


@given(st.integers(1, 4), st.integers(0, 30))
@settings(max_examples=20, deadline=None)
def test_keeping_some_endings_counts_the_others(keep: int, seed: int) -> None:
    whole = play(Expand(trees=2, nodes=3, rounds=1), seed=seed)
    some = play(Expand(trees=2, nodes=3, rounds=1, keep=keep), seed=seed)
    assert [len(tree.finals()) for tree in some.trees] == [keep, keep]
    tokens = [sum(len(t.act_ids) for tree in g.trees for t in tree.turns) for g in (whole, some)]
    turns = [sum(len(tree.turns) for tree in g.trees) for g in (whole, some)]
    assert tokens[1] + some.pruned_tokens == tokens[0]
    assert turns[1] + some.pruned_turns == turns[0]
    lines = {shape(t)[i][1] for t in whole.trees for i in range(len(t.turns))}
    assert {s[1] for t in some.trees for s in shape(t)} <= lines


@pytest.mark.parametrize("how", [{"granularity": "tokens", "span": 2}, {"granularity": "sentence"}])
def test_forks_inside_actions_continue_the_action(how: dict[str, Any]) -> None:
    inside = 0
    for seed in range(8):
        Walk.steps = 0
        group = play(Expand(trees=2, nodes=4, rounds=2, **how), seed=seed, width=4)
        forest = Forest.of([group])
        assert len(forest.paths) == 18
        executed = [t for tree in group.trees for t in tree.turns if not t.partial]
        assert Walk.steps == len(executed)
        for path in forest:
            line = forest.turns(path)
            said: list[int] = []
            for turn, after in pairwise([*line, None]):
                assert turn is not None
                said += turn.act_ids.tolist()
                if turn.partial:
                    assert after is not None
                    assert len(after.obs_ids) == 0
                    continue
                assert WalkRenderer().text(said) == turn.action
                said = []
            assert sum(not t.partial for t in line) == 3
        for tree in group.trees:
            children: dict[int, int] = {}
            for turn in tree.turns:
                children[turn.parent] = children.get(turn.parent, 0) + 1
            inside += sum(
                n > 1 and p != ROOT and tree.turns[p].partial for p, n in children.items()
            )
    assert inside > 0


def test_no_point_is_where_a_stop_string_has_begun() -> None:
    class Stopping(Walk):
        stop = ("ab", "cde")

    renderer: Any = WalkRenderer()
    runner = EpisodeRunner(Stopping(3), DiceEngine(width=9), renderer, Sampling(max_tokens=9))
    rollout = Expand(trees=4, nodes=4, rounds=2, granularity="tokens", span=1)
    group = asyncio.run(rollout(runner, Start("train", 1, 5, "u")))
    cut: set[str] = set()
    for tree in group.trees:
        said: dict[int, str] = {}
        for i, turn in enumerate(tree.turns):
            before = said.get(turn.parent, "") if not len(turn.obs_ids) else ""
            said[i] = before + renderer.text(turn.act_ids)
            if turn.partial:
                cut.add(said[i][-2:])
    assert len(cut) > 20
    assert not any(text.endswith(("a", "c", "cd")) for text in cut)


def test_nothing_is_cut_where_nothing_will_fork() -> None:
    group = play(Expand(trees=2, nodes=3, rounds=1, granularity="tokens", span=1), width=4)
    for tree in group.trees:
        first = set(tree.chain(tree.leaves()[0]))
        parts = [i for i, turn in enumerate(tree.turns) if turn.partial]
        assert parts
        assert set(parts) <= first


def test_no_fork_hides_a_stop_string() -> None:
    assert mid_stop("abc</sea", ("</search>",))
    assert not mid_stop("abc</search>", ("</search>",))
    assert not mid_stop("abc", ("</search>",))


@pytest.mark.parametrize("unit", ["tokens", "calls"])
@pytest.mark.parametrize("make", [Chains, Expand, Branch])
@given(st.integers(1, 60), st.integers(0, 20))
@settings(max_examples=15, deadline=None)
def test_a_limit_is_passed_by_at_most_one_turn(
    unit: str, make: Any, amount: int, seed: int
) -> None:
    sizes = {Chains: {"n": 40}, Expand: {"trees": 20, "nodes": 3}, Branch: {"budget": 40}}[make]
    group = play(make(**sizes, **{f"limit_{unit}": amount}), seed=seed, width=4)
    turns = [t for tree in group.trees for t in tree.turns]
    tokens = sum(len(t.act_ids) for t in turns) + group.pruned_tokens
    calls = len(turns) + group.pruned_turns
    used, most = (tokens, 4) if unit == "tokens" else (calls, 1)
    assert used < amount + most
    assert used >= amount or unit == "tokens"
    assert all(t.status != "running" for tree in group.trees for t in tree.turns[-1:])
    forest = Forest.of([group])
    assert all(forest.turns(p)[-1].status == "solved" for p in forest)
    again = play(make(**sizes, **{f"limit_{unit}": amount}), seed=seed, width=4, delays=True)
    assert same(group, again)


@pytest.mark.parametrize(
    "bad",
    [
        {"trees": 0},
        {"nodes": -1},
        {"rounds": -1},
        {"keep": 4},
        {"keep": 0},
        {"granularity": "words"},
        {"span": 4},
        {"granularity": "tokens", "span": 0},
        {"limit_tokens": 0},
        {"limit_calls": 0},
    ],
)
def test_settings_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(BadValueError):
        Expand(**bad)
