"""Forests of chains by the states that they go through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from helpers.forests import tree, turn

from turngym.algos.core.forest import Forest, Group, Tree


class Walk(NamedTuple):
    """One episode: its states, where it ended, and its return."""

    states: str
    end: str
    reward: float


FOREST = (
    Walk("SAC", "+", 1.0),
    Walk("SAB", "D", 0.0),
    Walk("SBSA", "D", 0.0),
    Walk("SBC", "+", 1.0),
)
"""The worked forest of the reference: "+" is success, D a dead state."""


def walk_tree(walk: Walk, n_act: int = 1, **more: Any) -> Tree:
    """A chain through the states; an action is named after where it leads."""
    states, last = walk.states, len(walk.states) - 1
    return tree(
        *(
            turn(
                walk.reward if k == last else 0.0,
                n=n_act,
                parent=k - 1,
                status="running" if k < last else "solved" if walk.reward == 1 else "failed",
                state=state,
                end_state=walk.end if k == last else "",
                action=(states[1:] + walk.end)[k],
                act_ids=np.full(n_act, ord((states[1:] + walk.end)[k]), np.int64),
                obs_ids=np.array([ord(state)], np.int64),
                **more,
            )
            for k, state in enumerate(states)
        )
    )


def walks(*groups: Sequence[Walk], **more: Any) -> Forest:
    """A forest with a group per sequence of walks."""
    return Forest.of(
        [Group(f"u{g}", f"t{g}", [walk_tree(w, **more) for w in g_]) for g, g_ in enumerate(groups)]
    )
