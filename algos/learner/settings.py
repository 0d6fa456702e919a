"""Settings of the learner, readable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...envs.core.errors import BadValueError
from ...envs.core.settings import check_choices, check_integers

Precision = Literal["auto", "float32", "bfloat16"]
CriticKind = Literal["own", "shared"]
OptimizerKind = Literal["adamw", "adamw8bit"]


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """How the learner computes; none of it changes what is computed beyond rounding.

    Attributes:
        micro_batch_tokens: Maximum tokens of one forward pass of training, distinct ones where
            prefixes are shared and padded ones elsewhere; less needs less memory. A tree is never
            cut where prefixes are shared: a larger one is one forward pass. On a CPU models from 34
            million weights take fewer where those would keep more than 1.5 GiB.
        precision: Number format of training: bfloat16 runs the models under autocast, weights and
            optimiser stay as they are; auto does so where the device computes in it.
        critic: PPO's critic: an own backbone, or a head shared with the policy.
        shared_prefix: Send tokens that several paths of a group share, and instructions that
            groups have in common, through the model once, where that saves work; off, every path is
            a padded row of its own.
        gradient_checkpointing: Keep only the inputs of the layers and compute them again in the
            backward pass: a third more time, much less memory. Off, large models on a CPU do so for
            trees alone that would not fit otherwise.
        optimizer: adamw, or adamw8bit with moments in 8 bits (needs bitsandbytes).
        liger: Run norms, rotary embedding and gated layers by Liger's fused kernels (CUDA, needs
            liger-kernel).
        offload: Keep the optimiser's moments, a reference and a teacher in main memory while the
            engine plays on the same GPU, whose cache makes room for them afterwards: longer
            contexts and larger models for some seconds more per step (CUDA).
        offload_activations: Keep the layers' inputs, which gradient checkpointing leaves, in main
            memory between forward and backward pass; they are copied while others are computed
            (CUDA). For long micro batches of deep models.
    """

    micro_batch_tokens: int = 8192
    precision: Precision = "auto"
    critic: CriticKind = "own"
    shared_prefix: bool = True
    gradient_checkpointing: bool = False
    optimizer: OptimizerKind = "adamw"
    liger: bool = False
    offload: bool = False
    offload_activations: bool = False

    def __post_init__(self) -> None:
        check_choices(self)
        check_integers(self)
        if self.micro_batch_tokens < 1:
            raise BadValueError(
                f"LearnerSettings.micro_batch_tokens is {self.micro_batch_tokens}; expected at "
                "least 1, better several times the longest path."
            )
        if self.offload_activations and not self.gradient_checkpointing:
            raise BadValueError(
                "LearnerSettings.offload_activations is on, but gradient_checkpointing is off: it "
                "moves the inputs of layers that are computed again, and none are. Turn that on "
                "too (--gradient-checkpointing), or leave both off."
            )
