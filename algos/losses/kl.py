"""Estimators of the divergence from the reference policy (Schulman 2020, "Approximating KL")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...envs.core.errors import BadValueError
from ..core.checks import check_choices, check_numbers, check_weights

if TYPE_CHECKING:
    import torch

Kind = Literal["k1", "k2", "k3"]


@dataclass(frozen=True, kw_only=True)
class Kl:
    """KL(policy || reference) per token, estimated on the sampled token, as a term of the loss.

    With ``d = logprob - ref_logprob``: k1 is ``d`` (its gradient is zero on average, so in a loss
    it regularises nothing; use it in the reward, :class:`~turngym.algos.credit.Gae`), k2 is
    ``d**2 / 2``, k3 is ``exp(-d) + d - 1``.

    Attributes:
        coef: Weight in the loss; 0 switches the term off and needs no reference.
        kind: The estimator. GRPO's is k3 (arXiv 2402.03300, equation 4).
        clamp: Bound of each token's value (no gradient beyond), as in Search-R1 and verl; the
            exponent is bounded at 20.
    """

    coef: float = 0.001
    kind: Kind = "k3"
    clamp: float = 10.0

    def __post_init__(self) -> None:
        check_choices(self)
        check_numbers(self)
        check_weights(self, "coef")
        if not self.clamp > 0:
            raise BadValueError(f"Kl.clamp is {self.clamp}; expected a value above 0.")

    def __call__(self, logprobs: torch.Tensor, ref_logprobs: torch.Tensor) -> torch.Tensor:
        """Return the estimate in nats, same shape as both arguments."""
        d = logprobs - ref_logprobs
        if self.kind == "k1":
            k = d
        elif self.kind == "k2":
            k = 0.5 * d * d
        else:
            bounded = (-d).clamp(-20.0, 20.0)
            k = bounded.exp() - bounded - 1.0
        return k.clamp(-self.clamp, self.clamp)
