"""The arithmetic of planning with a trajectory reward (ARMAP, arXiv 2502.12130, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from ..envs.errors import UnknownNameError

Rule = Literal["released", "ucb1", "puct"]
RULES = ("released", "ucb1", "puct")
EXPLORE = 9.0 / math.sqrt(2.0)
"""Weight of the bonus in the released planners, 6.364."""


def selection_value(
    best: float, parent_visits: int, visits: int, *, rule: Rule = "released", prior: float = 1.0
) -> float:
    """What a planner prefers a child by: its value and a bonus for being little explored.

    ``"released"`` adds ``c sqrt(ln N) / (1 + n)`` to the best return sampled through the child,
    which is neither of the others: ``"ucb1"`` adds ``c sqrt(ln N / n)`` (arXiv cs/0205073; a child
    that was never visited comes first), ``"puct"`` multiplies the released bonus by the prior.

    Args:
        best: Value of the child, 0 where nothing was sampled.
        parent_visits: N, 1 when the parent was made.
        visits: n, of the child.
        rule: The bonus.
        prior: Probability of the child's action among the candidates.

    Raises:
        UnknownNameError: No such rule.
    """
    if rule not in RULES:
        raise UnknownNameError("rule", rule, RULES, "selection_value")
    if rule == "ucb1":
        return best + EXPLORE * math.sqrt(math.log(parent_visits) / visits) if visits else math.inf
    bonus = EXPLORE * math.sqrt(math.log(parent_visits)) / (1 + visits)
    return best + (bonus * prior if rule == "puct" else bonus)


def backed_up(leaf: float, rewards: Sequence[float], discount: float = 0.9) -> list[float]:
    """Returns on the way from a leaf to the root: ``G <- r + discount G`` at every level.

    Args:
        leaf: Estimate of the leaf's value.
        rewards: Reward of each level, the deepest first.
        discount: Per level; the released planners have 0.9.
    """
    returns = []
    for reward in rewards:
        leaf = reward + discount * leaf
        returns.append(leaf)
    return returns
