"""Losses: plain ``[paths, tokens]`` tensors in, one scalar and its metrics out."""

from .aggregate import Aggregate, PathMeanConstant, PathMeanTokenMean, PathMeanTokenSum, TokenMean
from .kl import Kl
from .policy import Clip, PolicyLoss
from .ratio import ratio_at
from .value import ActorCriticLoss, ValueLoss

__all__ = [
    "ActorCriticLoss",
    "Aggregate",
    "Clip",
    "Kl",
    "PathMeanConstant",
    "PathMeanTokenMean",
    "PathMeanTokenSum",
    "PolicyLoss",
    "TokenMean",
    "ValueLoss",
    "ratio_at",
]
