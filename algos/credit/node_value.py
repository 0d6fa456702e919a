"""Values of the nodes of a tree as credit: AT2PO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.checks import check_above_zero, check_choices
from ..core.forest import ROOT, End, Forest, Tree, Turn, are_equal
from ..core.protocols import Annotations, Credit, Credits
from .gae import Doubles


@dataclass(frozen=True, kw_only=True)
class NodeValueCredit(Credit):
    """The value of a turn in its tree, on the turn's action tokens (AT2PO, arXiv 2601.04767).

    The returns of a tree's episodes are z-scored among themselves (population deviation); that is
    the value of the last turns. Another turn has the mean of its continuations' values, weighted by
    the softmax of their mean ``-log p`` as sampled.

    The weights are not how often the policy goes there, so the root's value is not 0 and
    ``"value"`` has a bias; ``"parent"`` and ``"root"`` take it off.

    Degenerate cases: a tree of one episode, or of equal returns, gives exactly 0; a turn after
    which all episodes broke has 0. Trees that never fork are refused. Parts of an action that was
    cut for a fork inside it are turns of their own.

    Attributes:
        mean: How a turn's value comes from what follows it: ``"softmax"``; ``"children"``, their
            plain mean; or ``"leaves"``, the mean over the episodes through it.
        relative: What is credited: the value itself, less the value of the turn before
            (``"parent"``), less the root's (``"root"``), or the sum of the latter two (``"both"``).
        eps: Added to the deviation.
    """

    mean: Literal["softmax", "children", "leaves"] = "softmax"
    relative: Literal["value", "parent", "root", "both"] = "value"
    eps: float = 1e-6

    whole_returns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choices(self)
        check_above_zero(self, "eps")

    @property
    def min_paths(self) -> int:
        """Minimum of two: endings are compared."""
        return 2

    @property
    def needs_forks(self) -> bool:
        """Whether it compares the sides of forks."""
        return True

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return one advantage per turn on its tokens, ``[n_act]`` per path."""
        worth, _ = forest.endings()
        ends: dict[tuple[int, int], dict[End, float]] = {}
        for end, value in worth.items():
            ends.setdefault(end[:2], {})[end] = value
        known: dict[tuple[int, int], Doubles] = {}
        advantages = []
        for path in forest:
            at, tree = (path.group, path.tree), forest.groups[path.group].trees[path.tree]
            if at not in known:
                leaves = {end[2]: value for end, value in ends.get(at, {}).items()}
                known[at] = self._credit(tree, self.values(tree, leaves))
            lengths = [len(tree.turns[i].act_ids) for i in path.turns]
            advantages.append(np.repeat(known[at][list(path.turns)], lengths).astype(np.float32))
        moved = float(np.mean([bool(row.any()) for row in known.values()])) if known else 0.0
        return Credits(advantages=advantages, metrics={"informative_trees_frac": moved})

    def values(self, tree: Tree, returns: dict[int, float]) -> Doubles:
        """Return the value of each turn ``[turns + 1]``, the root's last.

        Args:
            tree: The turns.
            returns: Return of each episode that did not break, by its last turn.
        """
        ends, n = sorted(returns), len(tree.turns)
        before = [tree.previous(i) for i in range(n)]
        below: list[list[int]] = [[] for _ in range(n + 1)]  # continuations, or ends, by turn
        values, reached = np.zeros(n + 1), np.zeros(n, dtype=bool)
        for end, score in zip(ends, self._compared([returns[end] for end in ends]), strict=True):
            values[end], reached[end] = score, True
        leaves = values.copy()
        for at in range(n - 1, -2, -1):
            over = below[at]
            if over:
                of = leaves if self.mean == "leaves" else values
                values[at] = float(self._weights(tree, over) @ of[over])
            if at != ROOT and (over or reached[at]):
                up = below[before[at]]
                up += (over or [at]) if self.mean == "leaves" else [at]
        return values

    def _weights(self, tree: Tree, over: list[int]) -> Doubles:
        if self.mean != "softmax":
            return np.full(len(over), 1.0 / len(over))
        unsure = np.array([surprisal(tree.turns[i]) for i in over])
        weights = np.exp(unsure - unsure.max())
        return weights / weights.sum()

    def _compared(self, returns: list[float]) -> Doubles:
        found = np.array(returns, dtype=np.float64)
        if len(found) < 2 or are_equal(found):
            return np.zeros(len(found))
        return (found - found.mean()) / (found.std() + self.eps)

    def _credit(self, tree: Tree, values: Doubles) -> Doubles:
        own, root = values[:-1], values[-1]
        before = np.array([tree.previous(i) for i in range(len(own))], dtype=np.int64)
        if self.relative == "value":
            return own
        to_root = own - root
        to_parent = own - values[before]  # ROOT is -1, the last
        if self.relative == "both":
            return to_root + to_parent
        return to_root if self.relative == "root" else to_parent


def surprisal(turn: Turn) -> float:
    """Return the mean of ``-log p`` over the tokens of an action, as sampled, in nats."""
    return float(-turn.logprobs.mean(dtype=np.float64))
