"""Observation tokens in the loss: an ablation of the mask."""

from __future__ import annotations

import numpy as np
import pytest

from turngym.algos.core.forest import Edge, Forest, Group, Tree, Turn
from turngym.algos.core.protocols import Credits
from turngym.algos.learner.batching.rows import NOT_SAMPLED, rows_of
from turngym.algos.learner.observation_loss import with_observations
from turngym.algos.recipes import make_recipe
from turngym.envs.core.errors import BadValueError


def turn(parent, obs, act, status="running", edge=Edge.CONTINUE):
    n = len(act)
    return Turn(
        parent=parent,
        edge=edge,
        obs_ids=np.array(obs, np.int64),
        act_ids=np.array(act, np.int64),
        logprobs=np.full(n, -1.0, np.float32),
        entropies=np.full(n, 0.5, np.float32),
        rewards=np.zeros(n, np.float32),
        status=status,
    )


def forest():
    tree = Tree()
    tree.add(turn(-1, [1, 2], [3]))
    tree.add(turn(0, [4, 5, 6], [7, 8], "solved"))
    other = Tree()
    other.add(turn(-1, [1, 2], [9], "failed"))
    return Forest.of([Group("0", "t", [tree, other])])


def credits():
    return Credits(advantages=[np.array([1, 2, 3], np.float32), np.array([-1], np.float32)])


def test_what_was_observed_in_between_is_trained_and_the_prompt_is_not():
    before = forest()
    after, given = with_observations(before, credits())
    rows, old = rows_of(after), rows_of(before)
    for row, was in zip(rows, old, strict=True):
        assert row.ids.tolist() == was.ids.tolist()  # the same text
    assert old[0].at.tolist() == [2, 6, 7]
    assert rows[0].at.tolist() == [2, 3, 4, 5, 6, 7]
    assert rows[1].at.tolist() == [2]
    assert given.advantages[0].tolist() == [1, 2, 2, 2, 2, 3]
    assert given.advantages[1].tolist() == [-1]
    assert rows[0].sampled.tolist() == [-1, *[NOT_SAMPLED] * 3, -1, -1]
    assert [len(t.act_ids) for t in before.groups[0].trees[0].turns] == [1, 2]  # untouched


def test_a_session_of_its_own_keeps_its_first_prompt():
    tree = Tree()
    tree.add(turn(-1, [1], [2]))
    tree.add(turn(0, [5, 5], [6], "solved", Edge.SPAWN))
    whole = Forest.of([Group("0", "t", [tree])])
    assert len(whole.paths) == 2
    after, _ = with_observations(
        whole, Credits(advantages=[np.ones(1, np.float32), np.ones(1, np.float32)])
    )
    assert [row.at.tolist() for row in rows_of(after)] == [[1], [2]]


def test_a_recipe_with_more_than_advantages_is_refused():
    changes = {"train_observations": True, "loss.kl.coef": 0.0}
    assert make_recipe("grpo", changes, small=True).train_observations
    for name in ("ppo", "pasa", "stepdpo"):
        with pytest.raises(BadValueError, match="train_observations"):
            make_recipe(name, {"train_observations": True}, small=True)
    with pytest.raises(BadValueError, match="ref_logprobs"):
        make_recipe("grpo", {"train_observations": True})
