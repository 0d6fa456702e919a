"""Made-up forests for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from turngym.algos.core.forest import Forest, Group, Tree, Turn, last_token_reward


def turn(rng: np.random.Generator, parent: int, n_obs: int, n_act: int, **more: Any) -> Turn:
    return Turn(
        parent=parent,
        obs_ids=rng.integers(4, 300, n_obs),
        act_ids=rng.integers(4, 300, n_act),
        logprobs=-rng.random(n_act).astype(np.float32),
        entropies=rng.random(n_act).astype(np.float32),
        rewards=last_token_reward(float(rng.random()), n_act),
        gold_opener=np.array([4]),
        gold=(np.array([5, 6]), np.array([7])),
        hinted_prompt=np.array([5, 8, 9]),
        **{"status": "running", "state": "ABC"[n_obs % 3], **more},
    )


def forest(seed: int = 0, groups: int = 2, chains: int = 3) -> Forest:
    rng = np.random.default_rng(seed)
    made = []
    for g in range(groups):
        trees = []
        for _ in range(chains):
            tree = Tree()
            tree.add(turn(rng, -1, int(rng.integers(3, 9)), int(rng.integers(1, 6))))
            tree.add(
                turn(rng, 0, int(rng.integers(0, 5)), int(rng.integers(1, 7)), status="solved")
            )
            trees.append(tree)
        made.append(Group(f"u{g}", f"t{g}", trees))
    return Forest.of(made)
