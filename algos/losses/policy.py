"""The policy loss: ratio level, surrogate, aggregation, KL and entropy as separate parts."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ...envs.core.errors import BadValueError
from ..core.checks import check_choices, check_numbers, check_weights
from ..core.protocols import Loss, LossBatch, LossOut
from .aggregate import Aggregate, TokenMean, check_aggregate, token_share
from .kl import Kl
from .ratio import Level, ratio_at
from .surrogates import Cispo, KeptClip, Sapo


@dataclass(frozen=True, kw_only=True)
class Clip:
    """PPO's clipped surrogate (arXiv 1707.06347, equation 7), as a loss.

    ``max(-A rho, -A clip(rho, 1 - low, 1 + high))``; with ``dual``, at most ``-A dual`` where
    ``A < 0`` (dual clip, arXiv 1912.09729, equation 5).

    Attributes:
        low: How far below 1 the ratio may still be rewarded for falling.
        high: How far above 1 the ratio may still be rewarded for rising (DAPO: 0.28).
        dual: Bound of the loss for negative advantages, above 1; None for none.
    """

    low: float = 0.2
    high: float = 0.2
    dual: float | None = None

    def __post_init__(self) -> None:
        check_numbers(self)
        if not 0 < self.low <= 1:
            raise BadValueError(f"Clip.low is {self.low}; expected a value in (0, 1].")
        if not self.high > 0:
            raise BadValueError(f"Clip.high is {self.high}; expected a value above 0.")
        if self.dual is not None and not self.dual > 1:
            raise BadValueError(f"Clip.dual is {self.dual}; expected a value above 1, or none.")

    def __call__(
        self, ratio: torch.Tensor, advantages: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss per token, and 1.0 where a bound took the token's gradient away."""
        free = -advantages * ratio
        bounded = -advantages * ratio.clamp(1.0 - self.low, 1.0 + self.high)
        loss = torch.maximum(free, bounded)
        held = bounded > free
        if self.dual is not None:
            ceiling = -advantages * self.dual
            over = (advantages < 0) & (loss > ceiling)
            loss = torch.where(over, ceiling, loss)
            held = held | over
        return loss, held.to(loss.dtype)


Surrogate = Clip | KeptClip | Cispo | Sapo


@dataclass(frozen=True, kw_only=True)
class PolicyLoss(Loss):
    """``aggregate(clip(ratio, A) + kl.coef * KL - entropy_coef * H)``.

    Attributes:
        ratio: Unit of the importance ratio.
        clip: The surrogate: PPO's clip, CISPO's bounded weight or SAPO's soft gate.
        aggregate: How tokens become one number; KL and entropy are aggregated alike.
        kl: Divergence from the reference as a loss; ``coef`` 0 switches it off.
        entropy_coef: Weight of the entropy bonus.
    """

    ratio: Level = "token"
    clip: Surrogate = field(default_factory=Clip)
    aggregate: Aggregate = field(default_factory=TokenMean)
    kl: Kl = field(default_factory=lambda: Kl(coef=0.0))
    entropy_coef: float = 0.0

    def __post_init__(self) -> None:
        check_choices(self)
        check_weights(self, "entropy_coef")
        check_aggregate(self)
        self._check_part("clip", "Clip()", callable(self.clip))
        # classes are the recipe's to refuse
        self._check_part("kl", "Kl(coef=0.0)", isinstance(self.kl, (Kl, type)))

    def _check_part(self, name: str, example: str, fits: bool) -> None:
        if not fits:
            part = getattr(self, name)
            raise BadValueError(
                f"PolicyLoss.{name} is {part!r:.100}; expected a part such as {example}."
            )

    @property
    def needs(self) -> frozenset[str]:
        """The reference's log-probabilities, when there is a KL term."""
        return frozenset({"ref_logprobs"} if self.kl.coef else ())

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the loss and the metrics of one micro batch, both as shares of the mini batch."""
        ratio = ratio_at(self.ratio, batch)
        losses, held = self.clip(ratio, batch.advantages)
        loss = surrogate = self.aggregate(losses, batch.mask, batch.norm)
        metrics: dict[str, torch.Tensor] = {"policy": surrogate.detach()}
        if self.kl.coef:
            kl = self.kl(batch.logprobs, batch.extra["ref_logprobs"])
            penalty = self.aggregate(kl, batch.mask, batch.norm)
            loss = loss + self.kl.coef * penalty
            metrics["kl_nats"] = token_share(kl, batch)
        if self.entropy_coef:
            bonus = self.aggregate(batch.entropies, batch.mask, batch.norm)
            loss = loss - self.entropy_coef * bonus
        log_ratios = (batch.logprobs - batch.old_logprobs).detach()
        metrics |= {
            "entropy_nats": token_share(batch.entropies, batch),
            "clip_frac": token_share(held, batch),
            "approx_kl_nats": token_share(log_ratios.exp() - 1.0 - log_ratios, batch),
            "ratio_mean": token_share(ratio, batch),
            "ratio_sq_dev": token_share((ratio - 1.0) ** 2, batch),
        }
        return LossOut(loss=loss, metrics=metrics)
