"""Hindsight: the actions of a success share its return by how likely the end makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...envs.core.errors import BadValueError
from ..core.checks import check_above_zero, check_shares, check_weights, is_number
from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .gae import Doubles
from .group import GroupCredit, by_prompt
from .states import Comparison
from .turns import action_means, on_actions


@dataclass(frozen=True, kw_only=True)
class HindsightCredit(Credit):
    """``A_t = z(R) + weight * z(Q_t)``, Q by hindsight ratios (HCAPO, arXiv 2603.08754, section 3).

    ``Q_t = rho_t gamma^(T - t) R`` with ``rho_t = clip(h_t / mean of the path's h)``, where ``h_t``
    is ``exp(mean hindsight log-probability of the action / temperature)``; both z-scores are over
    the group, the second over all its actions. Where the return is above 0, a second term below 0
    counts as 0.

    Degenerate cases: an action of probabilities that are all equal has ratio 1, which leaves "the
    later action of a success is better"; a group of returns of 0 gets exactly 0.

    Attributes:
        gamma: Discount per action, in [0, 1].
        weight: Weight of the second term; 0 is GRPO.
        temperature: Divides the mean log-probability.
        clip: Bounds of the ratio; ``1,1`` is the ablation without hindsight.
        smooth: Average each Q with the next one's.
        eps: Keeps the divisions finite.
    """

    gamma: float = 0.95
    weight: float = 1.0
    temperature: float = 5.0
    clip: tuple[float, float] = (0.8, 1.2)
    smooth: bool = False
    eps: float = 1e-6

    def __post_init__(self) -> None:
        check_shares(self, "gamma")
        check_weights(self, "weight")
        check_above_zero(self, "temperature", "eps")
        bounds = [*self.clip] if isinstance(self.clip, Sequence) else []
        if [is_number(b) for b in bounds] != [True, True] or not 0 < bounds[0] <= 1 <= bounds[1]:
            raise BadValueError(
                f"HindsightCredit: clip is {self.clip!r}; expected bounds with 1 between them, the "
                "lower above 0."
            )

    @property
    def needs(self) -> frozenset[str]:
        """The actions' log-probabilities in hindsight."""
        return frozenset({"hindsight_logprobs"})

    @property
    def min_paths(self) -> int:
        """Two paths, unless the actions of one alone are compared."""
        return 1 if self.weight else 2

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one advantage per action ``[n_act]``, per path."""
        returns, groups = forest.returns(), by_prompt(forest)
        episodes = GroupCredit(eps=self.eps).within(forest, groups)
        compare = Comparison(eps=self.eps)
        rows: list[Doubles] = [np.zeros(0)] * len(returns)
        for members in groups:
            worth = [self._worth(forest, annotations, i, returns[i]) for i in members]
            ends = np.cumsum([len(q) for q in worth])[:-1]
            for i, mine in zip(
                members, np.split(compare(np.concatenate(worth)), ends), strict=True
            ):
                more = np.maximum(mine, 0.0) if returns[i] > 0 else mine
                rows[i] = episodes[i] + self.weight * more
        return Credits(advantages=on_actions(forest, rows))

    def ratios(self, logprobs: Doubles) -> Doubles:
        """Return rho ``[actions]`` of a path from its actions' mean log-probabilities."""
        likely = np.exp(logprobs / self.temperature)
        return np.clip(likely / likely.mean(), *self.clip)

    def _worth(self, forest: Forest, annotations: Annotations, at: int, reward: float) -> Doubles:
        """Return Q ``[actions]`` of a path."""
        rho = self.ratios(action_means(forest, at, annotations["hindsight_logprobs"][at]))
        worth = rho * self.gamma ** np.arange(len(rho) - 1, -1, -1) * reward
        if self.smooth:
            worth[:-1] = 0.5 * worth[:-1] + 0.5 * worth[1:]
        return worth
