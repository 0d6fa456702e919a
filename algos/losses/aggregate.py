"""Aggregation of a loss per token to one number.

Each divides by counts of the whole mini batch (:class:`~turngym.algos.core.protocols.Norm`), so the
results of micro batches add up to that of the mini batch exactly; averaging micro batches would
not (two rows of different length, each a micro batch, give 1.5 where the token mean is 1.25).
A path without a trained token counts nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ...envs.core.errors import BadValueError
from ..core.checks import check_minimum
from ..core.protocols import LossBatch, Norm

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class TokenMean:
    """Every token weighs the same, long paths weigh more (DAPO, arXiv 2503.14476, section 3.3)."""

    name: ClassVar[str] = "token-mean"

    def __call__(self, losses: torch.Tensor, mask: torch.Tensor, norm: Norm) -> torch.Tensor:
        """Return ``sum(losses * mask) / tokens`` of ``[paths, tokens]`` losses."""
        return (losses * mask).sum() / norm.tokens


@dataclass(frozen=True, kw_only=True)
class PathMeanTokenMean:
    """Every path weighs the same, whatever its length (GRPO as written in its paper)."""

    name: ClassVar[str] = "seq-mean-token-mean"

    def __call__(self, losses: torch.Tensor, mask: torch.Tensor, norm: Norm) -> torch.Tensor:
        """Return the mean over paths of each path's mean over its tokens."""
        lengths = mask.sum(1).clamp(min=1.0)
        return ((losses * mask).sum(1) / lengths).sum() / norm.paths


@dataclass(frozen=True, kw_only=True)
class PathMeanTokenSum:
    """Mean over paths of each path's sum over its tokens."""

    name: ClassVar[str] = "seq-mean-token-sum"

    def __call__(self, losses: torch.Tensor, mask: torch.Tensor, norm: Norm) -> torch.Tensor:
        """Return ``sum(losses * mask) / paths``."""
        return (losses * mask).sum() / norm.paths


@dataclass(frozen=True, kw_only=True)
class PathMeanConstant:
    """Sum over tokens by a fixed length, mean over paths (Dr. GRPO, arXiv 2503.20783, section 3).

    Attributes:
        length: The constant that every path's sum is divided by, usually the longest response
            that is allowed, in tokens.
    """

    name: ClassVar[str] = "constant"
    length: int = 1024

    def __post_init__(self) -> None:
        check_minimum(self, length=1)

    def __call__(self, losses: torch.Tensor, mask: torch.Tensor, norm: Norm) -> torch.Tensor:
        """Return ``sum(losses * mask) / paths / length``."""
        return (losses * mask).sum() / (norm.paths * self.length)


Aggregate = TokenMean | PathMeanTokenMean | PathMeanTokenSum | PathMeanConstant


def check_aggregate(loss: Any) -> None:
    """Refuse a loss whose ``aggregate`` cannot be called.

    Raises:
        BadValueError: It cannot.
    """
    if not callable(loss.aggregate):
        raise BadValueError(
            f"{type(loss).__name__}.aggregate is {loss.aggregate!r:.100}; expected a part such as "
            "TokenMean()."
        )


def token_share(values: torch.Tensor, batch: LossBatch) -> torch.Tensor:
    """Return a micro batch's part of the mini batch's mean over tokens, without gradient."""
    return (values.detach() * batch.mask).sum() / batch.norm.tokens
