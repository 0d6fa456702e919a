"""Metrics of rollouts: what a model read again."""

from __future__ import annotations

import numpy as np

from turngym.algos.core.forest import ROOT, Edge, Forest, Group, Tree, Turn, last_token_reward
from turngym.algos.rollouts.stats import tokens_read_again


def turn(parent: int, seen: list[int], n: int, edge: Edge = Edge.CONTINUE) -> Turn:
    return Turn(
        parent=parent,
        edge=edge,
        obs_ids=np.array(seen, np.int64),
        act_ids=np.arange(n),
        logprobs=np.full(n, -1.0, np.float32),
        entropies=np.ones(n, np.float32),
        rewards=last_token_reward(0.0, n),
        status="running",
    )


def test_what_has_to_be_read_is_each_prompt_once_and_all_that_follows() -> None:
    one, two = Tree(), Tree()
    for tree in (one, two):  # a prompt of 5 for both
        tree.add(turn(ROOT, [1, 2, 3, 4, 5], 3))
    one.add(turn(0, [6, 7], 4))
    one.add(turn(0, [6, 7], 2))  # a fork: the same observation after the same turn
    two.add(turn(0, [6, 7], 2))  # after another turn it is another one
    two.add(turn(0, [1, 2, 3, 4, 5], 2, Edge.SPAWN))
    forest = Forest.of([Group("u", "t", [one, two])])
    prompts, observations, actions, leaves = 5, 2 + 2 + 5, (3 + 4 + 2) + (3 + 2 + 2), 4
    needed = prompts + observations + actions - leaves
    assert tokens_read_again(forest, needed) == {"engine/read_again_frac": 0.0}
    assert tokens_read_again(forest, 2 * needed) == {"engine/read_again_frac": 0.5}
    assert tokens_read_again(forest, needed - 1) == {"engine/read_again_frac": 0.0}
    assert tokens_read_again(Forest.of([]), 0) == {"engine/read_again_frac": 0.0}
