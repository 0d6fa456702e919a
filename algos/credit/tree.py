"""Tree credit: a path's return against its prompt, and against its own tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.checks import check_choices
from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .group import GroupCredit, by_prompt, by_tree, on_every_token

Terms = Literal["both", "inter", "intra"]


@dataclass(frozen=True, kw_only=True)
class TreeCredit(Credit):
    """``z(R; the prompt's paths) + z(R; the tree's paths)`` (Tree-GRPO, arXiv 2509.21240, 3.3).

    Both terms have no weight and both are z-scores with the unbiased deviation. Within a tree the
    second sums to 0, so what all its paths share gets nothing from it, and what comes after a fork
    gets the difference of the two sides: a preference between steps out of outcomes alone.

    Degenerate cases: a scope of equal returns gives exactly 0. A scope of one path gives 0, or with
    ``singleton="raw"`` the return itself, which is what the released code does; so on chains
    this is GRPO, and the release is GRPO plus the return.

    Attributes:
        terms: Both, or one of them: the paper's ablation.
        eps: Keeps the divisions finite.
        singleton: What a scope of one path gets.
    """

    terms: Terms = "both"
    eps: float = 1e-6
    singleton: Literal["zero", "raw"] = "zero"

    whole_returns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choices(self)
        self._rule()

    @property
    def min_paths(self) -> int:
        """Minimum of two, unless a single path keeps its return."""
        return self._rule().min_paths

    @property
    def needs_forks(self) -> bool:
        """Whether trees of one path would all get 0."""
        return self.terms == "intra" and self.singleton == "zero"

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return one constant advantage per path, on its ``[n_act]`` action tokens."""
        rule = self._rule()
        prompts, trees = by_prompt(forest), by_tree(forest)
        inter, intra = rule.within(forest, prompts), rule.within(forest, trees)
        scores = inter * (self.terms != "intra") + intra * (self.terms != "inter")
        return Credits(
            advantages=on_every_token(forest, scores),
            metrics={
                "informative_groups_frac": _moved(scores, prompts),
                "informative_trees_frac": _moved(intra, trees),
            },
        )

    def _rule(self) -> GroupCredit:
        return GroupCredit(eps=self.eps, singleton=self.singleton)


def _moved(scores: np.ndarray, scopes: list[list[int]]) -> float:
    return sum(bool(scores[m].any()) for m in scopes) / max(len(scopes), 1)
