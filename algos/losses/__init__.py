"""Losses: plain ``[paths, tokens]`` tensors in, one scalar and its metrics out."""

from .aggregate import Aggregate, PathMeanConstant, PathMeanTokenMean, PathMeanTokenSum, TokenMean
from .dppo import DppoLoss
from .imitation import ImitationLoss
from .kl import Kl
from .masked import MaskedLoss
from .policy import Clip, PolicyLoss
from .ratio import ratio_at
from .ref_kl import RefKlLoss, SummedLoss
from .step_dpo import StepDpoLoss
from .surrogates import Cispo, KeptClip, Sapo
from .value import ActorCriticLoss, ValueLoss

__all__ = [
    "ActorCriticLoss",
    "Aggregate",
    "Cispo",
    "Clip",
    "DppoLoss",
    "ImitationLoss",
    "KeptClip",
    "Kl",
    "MaskedLoss",
    "PathMeanConstant",
    "PathMeanTokenMean",
    "PathMeanTokenSum",
    "PolicyLoss",
    "RefKlLoss",
    "Sapo",
    "StepDpoLoss",
    "SummedLoss",
    "TokenMean",
    "ValueLoss",
    "ratio_at",
]
