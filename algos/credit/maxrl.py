"""MaxRL's credit: a group's returns relative to their mean, so that hard tasks weigh more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ..core.checks import check_choices
from ..core.forest import Forest, are_equal
from ..core.protocols import Annotations, Credit, Credits
from .group import Returns, by_prompt, on_every_token, score_episodes


@dataclass(frozen=True, kw_only=True)
class MaxRlCredit(Credit):
    """``(R - mean) / mean`` within each group (MaxRL, arXiv 2602.02710), on every action token.

    Where returns are 0 or 1, GRPO without its deviation weighs a task of success p by p (1 - p);
    this weighs it ``(1 - p) (1 - (1 - p)^order)``, which for many paths is the gradient of log p,
    maximum likelihood: a task solved once in a hundred counts as much as its weight in the data.

    Degenerate cases: a group of equal returns above 0 gets exactly 0. A group without any success
    gets 0, which makes the order N - 1 in groups of N (and nothing at N = 1), or with
    ``failed="minus-one"`` -1 on every path, which makes it N.

    Attributes:
        failed: What the paths of a group get in which all returns are 0.
    """

    failed: Literal["zero", "minus-one"] = "zero"

    whole_returns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choices(self)

    @property
    def min_paths(self) -> int:
        """Minimum of two, unless a failure alone counts."""
        return 2 if self.failed == "zero" else 1

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment with returns below 0.

        Raises:
            BadValueError: It has.
        """
        low, high = env.reward_range
        if low < 0:
            raise BadValueError(
                f"MaxRlCredit divides by the mean return, but returns of {env.name} lie in "
                f"{(low, high)}: a mean around 0 or below means nothing. Choose an environment "
                "whose returns are 0 or more, or GroupCredit."
            )

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return one constant advantage per path, broadcast over its ``[n_act]`` action tokens.

        Raises:
            BadValueError: A return is below 0.
        """
        groups = by_prompt(forest)
        scores = score_episodes(forest, groups, self.compare)
        informative = sum(bool(scores[m].any()) for m in groups)
        return Credits(
            advantages=on_every_token(forest, scores),
            metrics={"informative_groups_frac": informative / max(len(groups), 1)},
        )

    def compare(self, returns: Returns) -> Returns:
        """Return advantages ``[n]`` of the ``[n]`` returns of one group.

        Raises:
            BadValueError: A return is below 0.
        """
        if returns.min() < 0:
            raise BadValueError(
                f"MaxRlCredit: a return is {returns.min():g}; expected 0 or more, since they are "
                "divided by their mean. Drop the shapers that take rewards off, or use GroupCredit."
            )
        mean = math.fsum(returns) / len(returns)
        if mean == 0:
            return np.full(len(returns), 0.0 if self.failed == "zero" else -1.0)
        if are_equal(returns):
            return np.zeros(len(returns))
        return (returns - mean) / mean
