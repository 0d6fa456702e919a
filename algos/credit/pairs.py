"""Pairs of steps: at every fork the best side against the worst."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ..core.forest import ROOT, Edge, Forest, Tree
from ..core.protocols import Annotations, Credit, Credits

Place = tuple[int, int, int]
Mark = tuple[int, float]


@dataclass(frozen=True, kw_only=True)
class StepPairs(Credit):
    """Preference pairs of steps for step-level DPO (Tree-GRPO, arXiv 2509.21240, section 3.4).

    At every fork (several turns that continue the same one, or several first turns of a tree that
    answer the same observation) each side is worth the mean return of the paths through it; the
    best and the worst form a pair, unless they are equally good. The stream ``pair`` holds the
    pair's number on their tokens and -1 elsewhere, the advantage +1 on the better and -1 on the
    worse. A turn that several paths share is marked in the first of them only.

    Degenerate cases: a side whose every ending broke (``env_error``) takes no part; a batch without
    two unequal sides has no pair, and nothing to learn from.
    """

    @property
    def needs_forks(self) -> bool:
        """True: pairs are made at forks."""
        return True

    @property
    def provides(self) -> frozenset[str]:
        """The pairs' numbers."""
        return frozenset({"pair"})

    @property
    def min_paths(self) -> int:
        """Minimum of two: a fork has two sides."""
        return 2

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return signs and pair numbers, ``[n_act]`` per path."""
        marks = _marks(forest)
        pairs = len(marks) // 2
        advantages, numbers = [], []
        for path in forest:
            signs, ids = [], []
            for at, turn in zip(path.turns, forest.turns(path), strict=True):
                number, sign = marks.pop((path.group, path.tree, at), (-1, 0.0))
                signs.append(np.full(len(turn.act_ids), sign, np.float32))
                ids.append(np.full(len(turn.act_ids), number, np.float32))
            advantages.append(np.concatenate(signs))
            numbers.append(np.concatenate(ids))
        return Credits(
            advantages=advantages, extra={"pair": numbers}, metrics={"pairs": float(pairs)}
        )


def _marks(forest: Forest) -> dict[Place, Mark]:
    """Return the pair number and sign of the turns that are in a pair."""
    worth: dict[Place, list[float]] = defaultdict(list)
    for path, value in zip(forest, forest.returns(), strict=True):
        for turn in path.turns:
            worth[path.group, path.tree, turn].append(float(value))
    marks: dict[Place, Mark] = {}
    for g, group in enumerate(forest.groups):
        for t, tree in enumerate(group.trees):
            for sides in _forks(tree):
                means = {s: float(np.mean(worth[g, t, s])) for s in sides if (g, t, s) in worth}
                if len(means) < 2:
                    continue
                best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
                # means of equal returns over different numbers of paths differ in the last digit
                if not math.isclose(means[best], means[worst], rel_tol=1e-6, abs_tol=1e-9):
                    number = len(marks) // 2
                    marks[g, t, best] = number, 1.0
                    marks[g, t, worst] = number, -1.0
    return marks


def _forks(tree: Tree) -> list[list[int]]:
    """Return the turns that continue the same state, where there are several."""
    sides: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for i, turn in enumerate(tree.turns):
        if turn.edge is Edge.CONTINUE:
            # starts of a tree may have been reset anew; siblings below always saw the same
            seen = turn.obs_ids.tobytes() if turn.parent == ROOT else b""
            sides[turn.parent, seen].append(i)
    return [found for found in sides.values() if len(found) > 1]
