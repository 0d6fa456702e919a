"""Turn returns: each turn against all turns of its prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...envs.errors import BadValueError
from ..contracts import Credits, Notes
from ..forest import Forest
from .group import GroupCredit, by_prompt
from .returns import returns_to_go


@dataclass(frozen=True, kw_only=True)
class TurnReturns:
    """``G_i = sum over j >= i of r_j``, normalised within the prompt (TARL, 2509.14480, 3).

    Every token of turn i gets its turn's normalised return.

    Degenerate cases: a scope of one turn or of equal returns gets 0.

    Attributes:
        over: Compare with all turns of the prompt's paths, or with those of the same index.
        eps: Keeps the division finite.
    """

    over: Literal["turns", "index"] = "turns"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if self.over not in ("turns", "index"):
            raise BadValueError(f"TurnReturns.over is {self.over!r}; expected turns or index.")
        GroupCredit(eps=self.eps)

    @property
    def needs(self) -> frozenset[str]:
        """Nothing beside the rewards."""
        return frozenset()

    @property
    def provides(self) -> frozenset[str]:
        """No value targets."""
        return frozenset()

    @property
    def least_paths(self) -> int:
        """Two, since an episode of one turn has only others' turns to compare with."""
        return 2

    def __call__(self, forest: Forest, notes: Notes) -> Credits:  # noqa: ARG002 - the protocol's
        """One advantage per turn, on its action tokens."""
        rule = GroupCredit(eps=self.eps)
        to_go = [returns_to_go(np.array([t.reward for t in forest.turns(p)]), 1.0) for p in forest]
        scores = [np.zeros_like(g) for g in to_go]
        for members in by_prompt(forest):
            turns = [(i, t) for i in members for t in range(len(to_go[i]))]
            scopes: dict[int, list[tuple[int, int]]] = {}
            for i, t in turns:
                scopes.setdefault(t if self.over == "index" else 0, []).append((i, t))
            for scope in scopes.values():
                values = rule.compare(np.array([to_go[i][t] for i, t in scope]))
                for (i, t), value in zip(scope, values, strict=True):
                    scores[i][t] = value
        return Credits(
            advantages=[
                np.repeat(s, [len(t.act_ids) for t in forest.turns(p)]).astype(np.float32)
                for s, p in zip(scores, forest, strict=True)
            ]
        )
