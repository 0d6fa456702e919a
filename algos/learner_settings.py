"""Settings of the learner, readable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..envs.errors import BadValueError

Precision = Literal["auto", "float32", "bfloat16"]
CriticKind = Literal["own", "shared"]


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """How the learner computes; none of it changes what is computed beyond rounding.

    Attributes:
        micro_batch_tokens: Most padded tokens of one forward pass; less needs less memory.
        precision: ``"bfloat16"`` runs the models under autocast, weights and optimiser stay as
            they are; ``"auto"`` does so where the device computes in it.
        critic: ``"own"`` backbone or head ``"shared"`` with the policy, see :class:`Critic`.
    """

    micro_batch_tokens: int = 8192
    precision: Precision = "auto"
    critic: CriticKind = "own"

    def __post_init__(self) -> None:
        if self.micro_batch_tokens < 1:
            raise BadValueError(
                f"LearnerSettings.micro_batch_tokens is {self.micro_batch_tokens}; expected at "
                "least 1, better several times the longest path."
            )
