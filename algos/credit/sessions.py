"""Session returns: PaSa's credit, which reaches from one session into those it requested."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ..core.checks import check_choices, check_shares, check_weights
from ..core.forest import Forest, Turn
from ..core.protocols import Annotations, Credit, Credits
from .gae import Doubles, check_values, critic_credits
from .penalty import kl_price

KlMode = Literal["in_sum", "current", "v1_literal"]


@dataclass(frozen=True, kw_only=True)
class SessionCredit(Credit):
    """``R_t = sum over k >= t of gamma0^(k-t) [r_k + gamma1 sum_j V(S_j) - beta KL_k]`` (PaSa).

    Equation 3 of arXiv 2501.10120: the sum ends with the session, and the sessions that an action
    asked for count through the critic's value of their first states, as constants. ``lam`` below 1
    makes it GAE within the session (the released code: 0.95). The value after a session is 0.

    An action's score is ``r + gamma1 * sum V``: r on the tokens where the environment put it (the
    last one), the values on the last token, which also takes what a clip changes. Discounts apply
    from one action to the next, or from token to token.

    Degenerate cases: paths that ask for no session, no clip, and gamma0 1 or counted in tokens make
    it :class:`~turngym.algos.credit.Gae` without bootstrapping, whatever gamma1 is. The value has a
    finite fixed point only where gamma1 times the sessions asked for stays below 1; ``score_clip``
    bounds it.

    Attributes:
        gamma0: Discount within the session, in [0, 1].
        gamma1: Weight of the values of the sessions asked for, in [0, 1].
        lam: Trade of variance (1, the paper) for the critic's bias, in [0, 1].
        kl_coef: beta, the weight of ``old_logprob - ref_logprob``; 0 needs no reference.
        kl_mode: ``"in_sum"`` takes every token's KL off its own reward (the code), ``"current"``
            only the token's own off its return, ``"v1_literal"`` that times the discounted number
            of steps that are left (the first version of the paper as printed).
        discount_unit: What gamma0 counts.
        score_clip: Bounds of an action's score; None for none.
        whiten: Advantages of the batch to mean 0 and unbiased variance 1, over tokens.
    """

    gamma0: float = 1.0
    gamma1: float = 0.1
    lam: float = 1.0
    kl_coef: float = 0.0
    kl_mode: KlMode = "in_sum"
    discount_unit: Literal["action", "token"] = "action"
    score_clip: tuple[float, float] | None = None
    whiten: bool = True

    def __post_init__(self) -> None:
        check_choices(self)
        check_shares(self, "gamma0", "gamma1", "lam")
        check_weights(self, "kl_coef")
        if self.kl_mode != "in_sum" and not self.kl_coef:
            raise BadValueError(
                f"SessionCredit: kl_mode is {self.kl_mode!r}, but kl_coef is 0: nothing to take "
                "off. Set kl_coef."
            )
        if self.score_clip is not None and not self.score_clip[0] < self.score_clip[1]:
            raise BadValueError(
                f"SessionCredit.score_clip is {self.score_clip}; expected the lower bound first."
            )

    @property
    def needs(self) -> frozenset[str]:
        """Values of states and of the sessions asked for; log-probabilities with a penalty."""
        kl = {"old_logprobs", "ref_logprobs"} if self.kl_coef else set()
        return frozenset({"values", "spawned_values", *kl})

    @property
    def provides(self) -> frozenset[str]:
        """Value targets for the critic."""
        return frozenset({"value_targets"})

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Compute advantages and value targets (the returns), ``[n_act]`` per path."""
        advantages: list[Doubles] = []
        targets = []
        for i, path in enumerate(forest):
            turns = forest.turns(path)
            scores = self.scores(turns, annotations["spawned_values"][i])
            check_values(self, annotations["values"][i], len(scores))
            values = annotations["values"][i][:-1].astype(np.float64)
            kl = np.zeros_like(values)
            if self.kl_coef:
                kl = kl_price("k1", annotations, i)
            advantage = self.estimate(scores, kl, values, action_ends(turns))
            advantages.append(advantage)
            targets.append((advantage + values).astype(np.float32))
        return critic_credits(advantages, targets, annotations, whiten=self.whiten)

    def scores(self, turns: list[Turn], spawned: npt.NDArray[np.floating]) -> Doubles:
        """Return scores of a path's actions on their tokens ``[n_act]``.

        Args:
            turns: The path's.
            spawned: Values of the sessions asked for ``[n_act]``.
        """
        rewards = np.concatenate([turn.rewards for turn in turns]).astype(np.float64)
        out = rewards + self.gamma1 * spawned.astype(np.float64)
        if self.score_clip is None:
            return out
        stops = np.flatnonzero(action_ends(turns)) + 1
        for start, stop in pairwise([0, *stops.tolist()]):
            score = out[start:stop].sum()
            out[stop - 1] += np.clip(score, *self.score_clip) - score
        return out

    def estimate(self, scores: Doubles, kl: Doubles, values: Doubles, ends: np.ndarray) -> Doubles:
        """Return advantages ``[n]`` before whitening.

        Args:
            scores: ``r + gamma1 * sum V`` of each action on its last token ``[n]``.
            kl: ``old_logprob - ref_logprob`` ``[n]``.
            values: Critic's value of the state before each token ``[n]``.
            ends: True on the last token of each action ``[n]``.
        """
        n = len(scores)
        onward = np.where(ends | (self.discount_unit == "token"), self.gamma0, 1.0)
        rewards = scores - self.kl_coef * kl if self.kl_mode == "in_sum" else scores
        out, left = np.empty(n), np.empty(n)
        later = following = steps = 0.0
        for t in range(n - 1, -1, -1):
            delta = rewards[t] + onward[t] * following - values[t]
            later = delta + onward[t] * self.lam * later
            steps = 1.0 + onward[t] * steps
            out[t], left[t], following = later, steps, values[t]
        if self.kl_mode == "in_sum":
            return out
        return out - self.kl_coef * kl * (left if self.kl_mode == "v1_literal" else 1.0)


def action_ends(turns: list[Turn]) -> npt.NDArray[np.bool_]:
    """Return a mask ``[n_act]`` of each action's last token; a cut action counts as one."""
    ends = np.zeros(sum(len(turn.act_ids) for turn in turns), dtype=bool)
    at = 0
    for turn in turns:
        at += len(turn.act_ids)
        ends[at - 1] = not turn.partial
    ends[-1] = True
    return ends
