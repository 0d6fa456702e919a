"""Returns to go, set against the batch: REINFORCE++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.checks import check_choices, check_shares, check_weights
from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .gae import Doubles, whitened
from .group import GroupCredit, by_prompt
from .penalty import KlKind, kl_price


@dataclass(frozen=True, kw_only=True)
class ReturnsToGo(Credit):
    """``A_t = whiten(sum over u >= t of gamma^(u - t) r_u)`` (REINFORCE++, arXiv 2501.03262, 3).

    The rewards are the environment's on its tokens, less ``kl_coef`` times k1 on each token;
    the sum runs over the path's action tokens alone, so observations neither discount nor cut it.
    Advantages are whitened over all action tokens of the batch, without a group.

    With ``baseline="group-mean"`` (REINFORCE++-baseline, section 3.3 there) the return less the
    prompt's mean stands on the last token instead of the environment's rewards. Where an episode
    has several sessions, each of its paths answers for the whole return, on its last token.

    Degenerate cases: a batch of one token or of equal advantages whitens to 0; so does a prompt of
    one path with the group's mean before whitening.

    Attributes:
        gamma: Discount per action token, in [0, 1].
        kl_coef: Coefficient of the penalty on each token; 0 needs no reference.
        kl_kind: Its estimator, see :func:`kl_price`.
        baseline: Nothing, or the mean over the prompt's paths.
    """

    gamma: float = 1.0
    kl_coef: float = 0.0
    kl_kind: KlKind = "k1"
    baseline: Literal["none", "group-mean"] = "none"

    def __post_init__(self) -> None:
        check_choices(self)
        check_shares(self, "gamma")
        check_weights(self, "kl_coef")

    @property
    def needs(self) -> frozenset[str]:
        """Both log-probabilities when there is a penalty."""
        return frozenset({"old_logprobs", "ref_logprobs"} if self.kl_coef else ())

    @property
    def min_paths(self) -> int:
        """Minimum of one, or two for a group's mean."""
        return 2 if self.baseline == "group-mean" else 1

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return advantages ``[n_act]`` per path, whitened over the batch."""
        returns = forest.returns()
        centred = GroupCredit(scale="none").within(forest, by_prompt(forest))
        rows: list[Doubles] = []
        for i, path in enumerate(forest):
            rewards = np.concatenate([t.rewards for t in forest.turns(path)]).astype(np.float64)
            if self.baseline == "group-mean":
                rewards = np.zeros_like(rewards)
                rewards[-1] = centred[i]
            else:
                rewards[-1] += returns[i] - forest.reward(path)
            if self.kl_coef:
                rewards -= self.kl_coef * kl_price(self.kl_kind, annotations, i)
            rows.append(returns_to_go(rewards, self.gamma))
        return Credits(advantages=[a.astype(np.float32) for a in whitened(rows)])


def returns_to_go(rewards: Doubles, gamma: float) -> Doubles:
    """Compute discounted sums ``[n]`` of the rewards ``[n]`` from each place on."""
    out = np.empty_like(rewards)
    later = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        later = rewards[t] + gamma * later
        out[t] = later
    return out
