"""Surrogates other than PPO's clip, in which tokens keep a gradient when their ratio has moved."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...envs.core.errors import BadValueError
from ..core.checks import check_above_zero, check_numbers


@dataclass(frozen=True, kw_only=True)
class Cispo:
    """The bounded importance weight of CISPO (MiniMax-M1, arXiv 2506.13585, equation 4), as a loss.

    ``-sg[clip(rho, 1 - low, 1 + high)] A logprob``: a weight, not a clip, so every token keeps its
    gradient. Written as ``-A rho sg[clip(rho) / rho]``, which has the same gradient, and at ratio 1
    the value of the other surrogates.

    Attributes:
        low: How far below 1 the weight may fall, in (0, 1]; 1 is no lower bound (the paper).
        high: How far above 1 it may rise; 4 is SkyRL's, the paper's own is not known.
    """

    low: float = 1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        check_numbers(self)
        if not 0 < self.low <= 1:
            raise BadValueError(f"Cispo.low is {self.low}; expected a value in (0, 1].")
        check_above_zero(self, "high")

    def __call__(
        self, ratio: torch.Tensor, advantages: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss per token, and 1.0 where the weight is at a bound."""
        now = ratio.detach()
        weight = now.clamp(1.0 - self.low, 1.0 + self.high)
        loss = -advantages * ratio * (weight / now)
        return loss, (weight != now).to(loss.dtype)


@dataclass(frozen=True, kw_only=True)
class KeptClip:
    """PPO's clip whose upper bound keeps a gradient (AEPO, arXiv 2510.14545), as a loss.

    Above ``1 + high`` the bound is ``(1 + high) rho / sg[rho]``: the same value, and a gradient of
    ``-(1 + high) A`` instead of none. The lower bound is PPO's.

    Attributes:
        low: How far below 1 the ratio may still be rewarded for falling.
        high: How far above 1 the gradient may still grow.
    """

    low: float = 0.2
    high: float = 0.28

    def __post_init__(self) -> None:
        check_numbers(self)
        if not 0 < self.low <= 1:
            raise BadValueError(f"KeptClip.low is {self.low}; expected a value in (0, 1].")
        check_above_zero(self, "high")

    def __call__(
        self, ratio: torch.Tensor, advantages: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss per token, and 1.0 where the lower bound took its gradient away."""
        now = ratio.detach()
        kept = (1.0 + self.high) * (ratio / now)
        near = torch.where(now > 1.0 + self.high, kept, ratio.clamp(min=1.0 - self.low))
        free, bounded = -advantages * ratio, -advantages * near
        held = (bounded > free) & (now < 1.0 - self.low)
        return torch.maximum(free, bounded), held.to(free.dtype)


@dataclass(frozen=True, kw_only=True)
class Sapo:
    """The soft gate of SAPO (arXiv 2511.20347, equation 6), as a loss.

    ``-A (4 / tau) sigmoid(tau (rho - 1))``; its gradient weighs a token ``4 s (1 - s) rho`` with
    ``s`` the sigmoid: 1 at ratio 1, falling smoothly on both sides.

    Attributes:
        positive: tau where the advantage is above 0.
        negative: tau elsewhere; larger falls sooner.
    """

    positive: float = 1.0
    negative: float = 1.05

    def __post_init__(self) -> None:
        check_above_zero(self, "positive", "negative")

    def __call__(
        self, ratio: torch.Tensor, advantages: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss per token, and 0.0: no bound takes a gradient away."""
        tau = torch.full_like(ratio, self.negative).masked_fill(advantages > 0, self.positive)
        loss = -advantages * (4.0 / tau) * torch.sigmoid(tau * (ratio - 1.0))
        return loss, torch.zeros_like(loss)
