"""Packs: which tokens are one, what each of them sees, and how packs are cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.branching import branching
from helpers.forests import forests
from helpers.grown import turn
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.forest import ROOT, Edge, Forest, Group, Tree, Turn
from turngym.algos.learner.attention.packing import OPENING, Pack, number_tokens
from turngym.algos.learner.batching.rows import (
    distinct_tokens,
    mini_batches,
    rows_of,
    whole_micro_batches,
)

RNG = np.random.default_rng(0)


def act(*ids: int, parent: int = ROOT, obs: tuple[int, ...] = (9, 8, 7), **more: object) -> Turn:
    made = turn(RNG, parent, len(obs), len(ids), **more)
    return replace(made, obs_ids=np.array(obs, np.int64), act_ids=np.array(ids))


def grown(*trees: list[Turn]) -> Forest:
    made = []
    for turns in trees:
        tree = Tree()
        for t in turns:
            tree.add(t)
        made.append(tree)
    return Forest.of([Group("u", "t", made)])


def distinct(forest: Forest) -> int:
    return len(np.unique(np.concatenate(number_tokens(forest))))


# ---------------------------------------------------------------- identity


def test_chains_share_their_prompt_and_equal_actions() -> None:
    assert distinct(grown([act(1, 2)], [act(1, 3)], [act(1, 2)])) == 3 + 2 * 2


def test_forks_that_sample_the_same_tokens_are_one() -> None:
    first = act(5, 5)
    forks = [act(6, 6, parent=0, obs=(4, 4)), act(6, 6, parent=0, obs=(4, 4))]
    assert distinct(grown([first, *forks])) == (3 + 2) + 2 + 2


def test_observations_that_differ_after_one_turn_are_apart() -> None:
    forks = [act(6, parent=0, obs=(4, 4)), act(6, parent=0, obs=(4, 3))]
    assert distinct(grown([act(5), *forks])) == (3 + 1) + 2 * (2 + 1)


def test_equal_turns_after_different_ones_are_apart() -> None:
    turns = [act(5), act(3), act(6, parent=0, obs=(4,)), act(6, parent=1, obs=(4,))]
    assert distinct(grown(turns)) == 3 + 2 * (1 + 1 + 1)


def test_equal_turns_after_equal_ones_are_one() -> None:
    turns = [act(5), act(5), act(6, parent=0, obs=(4,)), act(7, parent=1, obs=(4,))]
    assert distinct(grown(turns)) == 3 + 1 + 1 + 2


def test_first_observations_that_differ_are_apart() -> None:
    assert distinct(grown([act(1)], [act(1, obs=(9, 8))])) == (3 + 1) + (2 + 1)


def test_groups_share_nothing() -> None:
    one, two = grown([act(1)]).groups[0], grown([act(1)]).groups[0]
    assert distinct(Forest.of([one, two])) == 2 * (3 + 1)


def opened(*ends: int, n: int = OPENING + 6, at: int = OPENING + 3) -> Forest:
    """Groups whose first observations have ``n`` tokens and part at ``at``."""
    start = tuple(range(at))
    groups = [grown([act(1, obs=(*start, *[e] * (n - at)))]).groups[0] for e in ends]
    return Forest.of(groups)


def test_groups_share_long_instructions() -> None:
    forest = opened(7, 8, 9)
    assert distinct(forest) == (OPENING + 3) + 3 * (3 + 1)
    check_pack(forest)


def test_groups_share_no_whole_prompt_and_no_short_beginning() -> None:
    n = OPENING + 6
    assert distinct(opened(7, 7)) == (n - 1) + 2 * (1 + 1)  # each keeps a token of its own
    assert distinct(opened(7, 8, n=OPENING, at=OPENING - 1)) == 2 * (OPENING + 1)
    assert distinct(opened(7, 8, at=OPENING - 1)) == 2 * (n + 1)


def test_other_instructions_are_apart() -> None:
    two = opened(7, 8).groups
    other = grown([act(1, obs=(5,) * (OPENING + 6))], [act(2, obs=(5,) * (OPENING + 6))]).groups
    alone = OPENING + 6 + 2  # a group shares its own prompt as before
    forest = Forest.of([*two, *other])
    assert distinct(forest) == (OPENING + 3) + 2 * (3 + 1) + alone
    check_pack(forest)


@given(st.integers(0, 2**20), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_a_token_sees_exactly_its_own_path_behind_common_instructions(seed: int, tail: int) -> None:
    forest = branching(seed, groups=3, trees=2)
    opening = np.arange(OPENING + tail, dtype=np.int64)
    for group in forest.groups:
        for tree in group.trees:
            tree.turns[0] = replace(
                tree.turns[0], obs_ids=np.concatenate([opening, tree.turns[0].obs_ids])
            )
    check_pack(forest)
    begun = {
        tuple(numbers[: len(opening)].tolist())
        for path, numbers in zip(forest, number_tokens(forest), strict=True)
        if path.turns[0] == 0
    }
    assert len(begun) == 1


def test_a_spawned_context_starts_anew() -> None:
    turns = [act(5), act(1, parent=0, edge=Edge.SPAWN), act(2, parent=0, edge=Edge.SPAWN)]
    forest = grown(turns)
    assert distinct(forest) == 3 + 3
    rows = rows_of(forest)
    pack = Pack.of([r.ids for r in rows], [r.numbers for r in rows])
    assert [pack.depths[p].tolist() for p in pack.paths] == [[0, 1, 2, 3]] * 3


def test_a_fork_inside_an_action_shares_its_first_part() -> None:
    turns = [
        replace(act(5, 6, partial=True), rewards=np.zeros(2, np.float32)),
        act(1, parent=0, obs=()),
        act(1, 2, parent=0, obs=()),
    ]
    forest = grown(turns)
    assert distinct(forest) == (3 + 2) + 1 + 2
    rows = rows_of(forest)
    assert [r.n_act for r in rows] == [3, 4]


@given(st.one_of(forests(), st.integers(0, 2**20).map(branching)))
def test_a_turn_is_one_exactly_where_a_group_went_the_same_way(forest: Forest) -> None:
    numbers = number_tokens(forest)
    known: dict[object, int] = {}
    for path, line in zip(forest, numbers, strict=True):
        way: tuple[object, ...] = (path.group,)
        at = 0
        for turn_ in forest.turns(path):
            for ids in (turn_.obs_ids, turn_.act_ids):
                if len(ids):
                    way = (*way, tuple(ids.tolist()))
                    first = int(line[at])
                    assert known.setdefault(way, first) == first
                    assert line[at : at + len(ids)].tolist() == [*range(first, first + len(ids))]
                at += len(ids)
    assert len(set(known.values())) == len(known)


# ---------------------------------------------------------------- what sees what


@given(forests())
def test_a_token_sees_exactly_its_own_path(forest: Forest) -> None:
    check_pack(forest)


@given(st.integers(0, 2**20))
def test_a_token_of_a_branching_forest_sees_exactly_its_own_path(seed: int) -> None:
    check_pack(branching(seed))


def check_pack(forest: Forest) -> None:
    if not forest.paths:
        return
    numbers = number_tokens(forest)
    ids = [
        np.concatenate([np.concatenate([t.obs_ids, t.act_ids]) for t in forest.turns(p)])
        for p in forest
    ]
    pack = Pack.of(ids, numbers)
    sees: dict[int, set[int]] = {}
    for line, own in zip(pack.paths, ids, strict=True):
        assert pack.ids[line].tolist() == own.tolist()
        assert pack.depths[line].tolist() == list(range(len(own)))
        assert pack.parents[line].tolist() == [-1, *line[:-1].tolist()]
        for i, token in enumerate(line.tolist()):
            sees.setdefault(token, set(line[: i + 1].tolist()))
    k = np.arange(len(pack))
    for q, wanted in sees.items():
        assert set(np.flatnonzero((k <= q) & (q < pack.ends)).tolist()) == wanted
    check_blocks(pack, sees)


def check_blocks(pack: Pack, sees: dict[int, set[int]]) -> None:
    computed: dict[int, set[int]] = {}
    for block in pack.blocks():
        context = {k for start, stop in block.prefix for k in range(start, stop)}
        assert context <= set(computed)  # whose gradients are added to comes first
        for start, length in zip(block.starts, block.lengths, strict=True):
            for q in range(start, start + length):
                assert q not in computed
                computed[q] = context | set(range(start, q + 1))
    assert computed == sees


# ---------------------------------------------------------------- cutting


@given(st.integers(0, 2**20), st.integers(1, 6))
def test_mini_batches_are_whole_groups(seed: int, count: int) -> None:
    rows = rows_of(branching(seed, groups=4, turns=3))
    parts = mini_batches(rows, count, np.random.default_rng(seed))
    assert sorted(i for part in parts for i in part) == list(range(len(rows)))
    assert len(parts) == min(count, 4)
    groups = [{rows[i].group for i in part} for part in parts]
    assert sum(len(g) for g in groups) == 4


@pytest.mark.parametrize("padded", [True, False])
@given(seed=st.integers(0, 2**20), budget=st.integers(1, 300))
def test_micro_batches_never_cut_a_tree(padded: bool, seed: int, budget: int) -> None:
    rows = rows_of(branching(seed, groups=3))
    width = (lambda n: n) if padded else None
    parts = whole_micro_batches(rows, range(len(rows)), budget, width)
    assert sorted(i for part in parts for i in part) == list(range(len(rows)))
    trees = [{(rows[i].group, rows[i].tree) for i in part} for part in parts]
    assert sum(len(t) for t in trees) == len(set().union(*trees))
    for part, held in zip(parts, trees, strict=True):
        mine = [rows[i] for i in part]
        size = len(mine) * max(len(r.ids) for r in mine) if padded else distinct_tokens(mine)
        assert size <= budget or len(held) == 1


def test_a_group_stays_whole_where_it_fits() -> None:
    rows = rows_of(branching(3, groups=4))
    largest = max(distinct_tokens([r for r in rows if r.group == g]) for g in range(4))
    parts = whole_micro_batches(rows, range(len(rows)), largest)
    groups = [{rows[i].group for i in part} for part in parts]
    assert sum(len(g) for g in groups) == 4
