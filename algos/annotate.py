"""Annotators: what a credit rule or a loss needs to know beside what was sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .contracts import Floats, Scorer
from .forest import Forest


@dataclass(frozen=True, kw_only=True)
class OldLogprobs:
    """The base of the importance ratio: the policy at the start of this optimisation.

    A recipe may leave it out: the learner then computes them by itself where more than one
    optimiser step makes them differ from the current ones. A KL penalty in the reward needs it.

    Attributes:
        source: ``"learner"`` recomputes them in the learner's own precision, needed when the
            engine samples in another one (a bf16 engine is off by 7e-3); ``"sampled"`` takes what
            the engine recorded, right and free when both compute alike.
    """

    source: Literal["learner", "sampled"] = "learner"

    @property
    def provides(self) -> frozenset[str]:
        """``old_logprobs``."""
        return frozenset({"old_logprobs"})

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """``[n_act]`` per path, in nats."""
        if self.source == "learner":
            return {"old_logprobs": scorer.logprobs(forest)}
        return {"old_logprobs": sampled_logprobs(forest)}


@dataclass(frozen=True, kw_only=True)
class RefLogprobs:
    """Log-probabilities under the frozen reference policy."""

    @property
    def provides(self) -> frozenset[str]:
        """``ref_logprobs``."""
        return frozenset({"ref_logprobs"})

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """``[n_act]`` per path, in nats."""
        return {"ref_logprobs": scorer.ref_logprobs(forest)}


@dataclass(frozen=True, kw_only=True)
class CriticValues:
    """The critic's values before each action token, and after the last."""

    @property
    def provides(self) -> frozenset[str]:
        """``values``."""
        return frozenset({"values"})

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """``[n_act + 1]`` per path."""
        return {"values": scorer.values(forest)}


def sampled_logprobs(forest: Forest) -> list[Floats]:
    """The engine's own log-probabilities ``[n_act]`` per path, as recorded when sampled."""
    return [np.concatenate([t.logprobs for t in forest.turns(p)]) for p in forest.paths]
