"""Turn information: what each turn did to the probability of the accepted answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.checks import check_choices, check_shares
from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .gae import Doubles
from .group import by_prompt, episode_returns, score_episodes
from .returns import returns_to_go
from .states import Behind, Comparison
from .turns import action_means, on_actions


@dataclass(frozen=True, kw_only=True)
class InformationGain(Credit):
    """``A_t = sum over u >= t of gamma^(u - t) r_u``, r normalised in the group (IGPO, 2510.14967).

    ``r_t = p_(t+1) - p_t`` for all actions but the last, where ``p_t = exp(gold_logprobs)`` is the
    probability of the accepted answer before action t; the last one earns the episode's return.

    Degenerate cases: a path of one action has the outcome alone; without discount the gains add up
    to the difference of the last p and the first, so a detour costs only what comparing takes off
    each of its turns, the mean of what is compared.

    Attributes:
        gain: Differences of probabilities, or of their logarithms.
        normalise: Gains and outcomes each among their own, or all together: then gains teach where
            all outcomes are equal, and outcomes that are all equal still shift.
        gamma: Discount per action, in [0, 1].
        scale: Divide by the standard deviation of what is compared, or by nothing.
        eps: Keeps the division finite.
    """

    gain: Literal["probability", "log"] = "probability"
    normalise: Literal["separate", "joint"] = "separate"
    gamma: float = 1.0
    scale: Literal["std", "none"] = "std"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        check_choices(self)
        check_shares(self, "gamma")
        self._compare()

    @property
    def needs(self) -> frozenset[str]:
        """The accepted answer's log-probabilities."""
        return frozenset({"gold_logprobs"})

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one advantage per action ``[n_act]``, per path."""
        compare = self._compare()
        known = [
            action_means(forest, i, annotations["gold_logprobs"][i])
            for i in range(len(forest.paths))
        ]
        gains = [np.diff(p if self.gain == "log" else np.exp(p)) for p in known]
        rows: list[Doubles] = [np.zeros(0)] * len(gains)
        for members in by_prompt(forest):
            ends = np.cumsum([len(gains[i]) for i in members])[:-1]
            between = np.concatenate([gains[i] for i in members])
            if self.normalise == "separate":
                outcomes = score_episodes(forest, [members], compare)
                between = compare(between)
            else:
                outcomes = score_episodes(forest, [members], Behind(between, compare))
                worth = np.array(episode_returns(forest, members))
                between = compare(np.concatenate([between, worth]))[: len(between)]
            for i, mine in zip(members, np.split(between, ends), strict=True):
                rows[i] = returns_to_go(np.append(mine, outcomes[i]), self.gamma)
        whole = [float(p[-1] - p[0]) for p in known]
        return Credits(
            advantages=on_actions(forest, rows),
            metrics={"gold_gain_nats": float(np.mean(whole)) if whole else 0.0},
        )

    def _compare(self) -> Comparison:
        return Comparison(scale=self.scale, eps=self.eps)
