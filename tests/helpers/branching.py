"""Random forests that branch: shared prompts, forks in turns and inside actions, sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from helpers.grown import turn

from turngym.algos.core.forest import ROOT, Edge, Forest, Group, Tree


def branching(seed: int = 0, groups: int = 2, trees: int = 2, turns: int = 7) -> Forest:
    """Groups whose trees begin with one prompt and grow at random.

    Actions are drawn from few tokens, so that different turns often sample the same ones.
    """
    rng = np.random.default_rng(seed)
    made = []
    for g in range(groups):
        prompt = rng.integers(4, 300, int(rng.integers(1, 12)))
        grown = [tree(rng, prompt, turns) for _ in range(trees)]
        made.append(Group(f"u{g}", f"t{g}", grown))
    return Forest.of(made)


def tree(rng: np.random.Generator, prompt: Any, turns: int) -> Tree:
    """A tree of this many turns: forks copy the observation, partial turns go on without one."""
    out = Tree()
    seen: dict[int, Any] = {ROOT: prompt}
    places: dict[int, str] = {}
    for at in range(turns):
        parents = [ROOT, *(i for i, t in enumerate(out.turns) if t.status == "running")]
        parent = int(rng.choice(parents)) if at else ROOT
        if at and rng.random() < 0.15:
            out.add(_turn(rng, int(rng.integers(at)), edge=Edge.SPAWN))
            continue
        if parent not in seen:
            partial = parent != ROOT and out.turns[parent].partial
            n = 0 if partial else int(rng.integers(1, 6))
            seen[parent] = rng.integers(4, 300, n)
        partial = at < turns - 1 and bool(rng.random() < 0.2)
        status = "running" if partial or rng.random() < 0.7 else "solved"
        fresh = _turn(rng, parent, status=status, partial=partial)
        if partial:
            fresh = replace(fresh, rewards=np.zeros_like(fresh.rewards))
        cut = parent != ROOT and out.turns[parent].partial
        place = out.turns[parent].state if cut else places.setdefault(parent, fresh.state)
        out.add(replace(fresh, obs_ids=seen[parent], state=place))
    return out


def _turn(rng: np.random.Generator, parent: int, **more: Any) -> Any:
    n = int(rng.integers(1, 9))
    made = turn(rng, parent, int(rng.integers(1, 6)), n, **more)
    said = repr(float(made.logprobs[0]))  # no two actions are the same
    return replace(made, act_ids=rng.integers(4, 7, n), action=said)
