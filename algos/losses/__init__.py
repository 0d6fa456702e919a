"""Losses: plain ``[paths, tokens]`` tensors in, one scalar and its metrics out."""

from .aggregate import Aggregate, PathMeanConstant, PathMeanTokenMean, PathMeanTokenSum, TokenMean
from .imitation import ImitationLoss
from .kl import Kl
from .policy import Clip, PolicyLoss
from .ratio import ratio_at
from .step_dpo import StepDpoLoss
from .value import ActorCriticLoss, ValueLoss

__all__ = [
    "ActorCriticLoss",
    "Aggregate",
    "Clip",
    "ImitationLoss",
    "Kl",
    "PathMeanConstant",
    "PathMeanTokenMean",
    "PathMeanTokenSum",
    "PolicyLoss",
    "StepDpoLoss",
    "TokenMean",
    "ValueLoss",
    "ratio_at",
]
