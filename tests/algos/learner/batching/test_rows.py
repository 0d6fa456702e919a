"""Rows of token ids, and how they are cut into micro batches."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.grown import forest, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Edge, Forest, Group, Tree
from turngym.algos.learner.batching.rows import micro_batches, rows_of
from turngym.envs.core.errors import BadValueError


def test_row_marks_exactly_the_action_tokens() -> None:
    grown = forest()
    for row, path in zip(rows_of(grown), grown, strict=True):
        line = grown.turns(path)
        assert row.ids[row.at].tolist() == [i for t in line for i in t.act_ids]
        rest = np.delete(row.ids, row.at)
        assert rest.tolist() == [i for t in line for i in t.obs_ids]
        assert row.turns.tolist() == [k for k, t in enumerate(line) for _ in t.act_ids]


def test_a_spawned_session_is_a_row_of_its_own() -> None:
    rng = np.random.default_rng(0)
    tree = Tree()
    tree.add(turn(rng, -1, 4, 2))
    tree.add(turn(rng, 0, 5, 3, edge=Edge.SPAWN, status="solved"))
    rows = rows_of(Forest.of([Group("u", "t", [tree])]))
    assert [len(r.ids) for r in rows] == [6, 8]


def test_an_action_without_context_is_refused() -> None:
    tree = Tree()
    tree.add(turn(np.random.default_rng(0), -1, 0, 2, status="solved"))
    with pytest.raises(BadValueError, match="no context"):
        rows_of(Forest.of([Group("u", "t", [tree])]))


@given(
    lengths=st.lists(st.integers(1, 50), max_size=30),
    budget=st.integers(1, 200),
)
def test_micro_batches_hold_every_row_once_within_the_budget(
    lengths: list[int], budget: int
) -> None:
    batches = micro_batches(lengths, budget)
    assert sorted(i for b in batches for i in b) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[i] for i in batch)
        assert len(batch) * longest <= budget or len(batch) == 1
