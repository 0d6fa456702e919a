"""Imitation: every demonstrated token counts alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .group import on_every_token


@dataclass(frozen=True, kw_only=True)
class Imitation(Credit):
    """Advantage 1 on every action token.

    Attributes:
        solved_only: Learn only from paths of solved episodes (rejection sampling, RFT, arXiv
            2308.01825), where the paths are the model's own.
    """

    solved_only: bool = False

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return 1, or 0 for paths that are not imitated, ``[n_act]`` per path."""
        wanted = np.ones(len(forest.paths))
        if self.solved_only:
            wanted = np.array([_solved(forest, i) for i in range(len(forest.paths))], float)
        return Credits(advantages=on_every_token(forest, wanted))


def _solved(forest: Forest, at: int) -> bool:
    """Whether some episode through the path's last turn was solved."""
    path = forest.paths[at]
    tree = forest.groups[path.group].trees[path.tree]
    return any(
        tree.turns[last].status == "solved" and path.turns[-1] in tree.episode(last)
        for last in tree.finals()
    )
