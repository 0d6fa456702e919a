"""Credit with a teacher's word: none at all, or the shift that a demonstration makes, per token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..core.checks import check_above_zero, check_weights
from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .nested import NestedCredit


@dataclass(frozen=True, kw_only=True)
class NoCredit(Credit):
    """Advantage 0 on every token: for losses with a term of their own for each."""

    speaks: ClassVar[bool] = False

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return zeros ``[n_act]`` per path."""
        return Credits(advantages=[np.zeros(forest.n_act(path), np.float32) for path in forest])


@dataclass(frozen=True, kw_only=True)
class HintedCredit(NestedCredit):
    """``A_path + weight D``, ``D = log pi(token | demonstration) - log pi(token)`` (OPID).

    OPID (arXiv 2606.26790) adds the shift that a skill in the prompt makes to each token's
    log-probability, both under the policy that sampled.

    Degenerate cases: a group of equal returns has the shift alone, so it learns from demonstrations
    where no path succeeds; with weight 0 it is the rule itself.

    Attributes:
        weight: Of the shift. OPID's scripts have 0.001, which is a thousandth of the credit where
            both are about 1; the classes' default is 1.
        clip: Largest shift that counts, in nats, on both sides; none for no bound.
    """

    weight: float = 1e-3
    clip: float | None = None

    def __post_init__(self) -> None:
        check_weights(self, "weight")
        if self.clip is not None:
            check_above_zero(self, "clip")

    @property
    def needs(self) -> frozenset[str]:
        """What the inner rule needs, and both log-probabilities."""
        return self.of.needs | {"context_logprobs", "old_logprobs"}

    @property
    def min_paths(self) -> int:
        """The inner rule's requirement, unless the shift is credit enough."""
        return 1 if self.weight else self.of.min_paths

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one advantage per token ``[n_act]`` per path."""
        given = self.of(forest, annotations)
        advantages = []
        for i, row in enumerate(given.advantages):
            shift = annotations["context_logprobs"][i] - annotations["old_logprobs"][i]
            if self.clip is not None:
                shift = np.clip(shift, -self.clip, self.clip)
            advantages.append((row + self.weight * shift).astype(np.float32))
        return replace(given, advantages=advantages)
