"""Credit modulated by the policy's own uncertainty: EMPG by turn, AEPO by token."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..core.checks import check_weights
from ..core.forest import Forest, are_equal
from ..core.protocols import Annotations, Credits
from .gae import Doubles
from .nested import NestedCredit
from .turns import whole_actions

_EPS = 1e-8


@dataclass(frozen=True, kw_only=True)
class EmpgCredit(NestedCredit):
    """Entropy-modulated policy gradients (EMPG, arXiv 2509.09265), turn by turn.

    A turn's uncertainty is the mean entropy of its tokens as they were sampled, scaled over the
    batch to h in [0, 1]. A path's advantage A becomes ``A exp(-k h) / mean(exp(-k h))``, so that
    what the policy was sure of is rewarded and punished more, plus ``zeta exp(-k' h_next)``, a
    bonus for coming to where the next turn is clear (0 at the last turn); then the mean over the
    batch's turns is taken off. A turn in several paths counts in each.

    Degenerate cases: equal entropies leave A and a constant bonus on all turns but the last. A
    batch without any success still has the bonus, so it learns to be sure. A batch of one turn
    gets 0.

    Attributes:
        sharpness: k, of the scaling.
        bonus_sharpness: k', of the bonus.
        bonus: zeta, its weight.
    """

    sharpness: float = 1.0
    bonus_sharpness: float = 1.0
    bonus: float = 0.05

    def __post_init__(self) -> None:
        check_weights(self, "sharpness", "bonus_sharpness", "bonus")

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one advantage per turn, on its action tokens, ``[n_act]`` per path."""
        given = self.of(forest, annotations)
        actions = [whole_actions(forest.turns(path)) for path in forest]
        if not actions:
            return given
        sizes = [[sum(len(t.act_ids) for t in parts) for parts in line] for line in actions]
        entropies = [
            np.array([np.concatenate([t.entropies for t in parts]).mean() for parts in line])
            for line in actions
        ]
        paths = [float(row[0]) for row in given.advantages]
        turns = self.modulate(paths, entropies)
        advantages = [
            np.repeat(row, size).astype(np.float32) for row, size in zip(turns, sizes, strict=True)
        ]
        return Credits(advantages=advantages, metrics=given.metrics)

    def modulate(self, paths: list[float], entropies: list[Doubles]) -> list[Doubles]:
        """Return advantages by turn ``[turns]`` per path.

        Args:
            paths: The advantage of each path.
            entropies: Mean entropy of each turn in nats ``[turns]`` per path.
        """
        flat = np.concatenate(entropies).astype(np.float64)
        low, high = flat.min(), flat.max()
        width = np.inf if are_equal(flat) else high - low + _EPS
        scaled = [(np.asarray(row, np.float64) - low) / width for row in entropies]
        weights = [np.exp(-self.sharpness * row) for row in scaled]
        mean = np.concatenate(weights).mean() + _EPS
        out = []
        for path, weight, row in zip(paths, weights, scaled, strict=True):
            clear = np.append(np.exp(-self.bonus_sharpness * row[1:]), 0.0)
            out.append(path * weight / mean + self.bonus * clear)
        centre = np.concatenate(out).mean()
        return [row - centre for row in out]


@dataclass(frozen=True, kw_only=True)
class TokenEntropyCredit(NestedCredit):
    """``A (1 + weight z(H))``, H the entropy of each token as sampled (AEPO, arXiv 2510.14545).

    The z-score is over all tokens of the batch (unbiased deviation), so tokens where the policy
    hesitated count more. A token in several paths counts in each.

    Degenerate cases: equal entropies, or a single token, leave the rule's own advantages.

    Attributes:
        weight: Of the z-score.
    """

    weight: float = 0.2

    def __post_init__(self) -> None:
        check_weights(self, "weight")

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one advantage per token ``[n_act]`` per path."""
        given = self.of(forest, annotations)
        rows = [np.concatenate([t.entropies for t in forest.turns(path)]) for path in forest]
        scaled = self.scale([np.asarray(row, np.float64) for row in rows])
        advantages = [
            (row * factor).astype(np.float32)
            for row, factor in zip(given.advantages, scaled, strict=True)
        ]
        return replace(given, advantages=advantages)

    def scale(self, entropies: list[Doubles]) -> list[Doubles]:
        """Return the factor of each token ``[n_act]`` per path, from entropies in nats."""
        flat = np.concatenate(entropies) if entropies else np.zeros(0)
        if len(flat) < 2 or are_equal(flat):
            return [np.ones_like(row) for row in entropies]
        mean, spread = flat.mean(), flat.std(ddof=1)
        return [1.0 + self.weight * (row - mean) / spread for row in entropies]
