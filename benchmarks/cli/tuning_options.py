"""Options of adapters and executor, and those of `turngym plan` and `turngym merge`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class LoraOptions:
    """Adapters that are trained in place of the weights.

    Attributes:
        lora_rank: Train adapters of this rank in place of the weights; 0 trains the weights.
        lora_alpha: Their scale times the rank; left out: twice the rank.
        lora_target: Name of a layer that gets one, repeatable; left out: all linear layers.
    """

    lora_rank: int = 0
    lora_alpha: float | None = None
    lora_target: tyro.conf.UseAppendAction[tuple[str, ...]] = ()


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """Where rollouts are played.

    Attributes:
        executor: local, in the learner's process (or in each of those that torchrun started), or
            ray, by actors on a Ray cluster (extra ray).
        rollout_actors: Actors of --executor ray.
        ray_address: Of a running cluster, as auto or ray://HOST:PORT; left out: Ray on this
            machine.
        actor_cpus: Processors of each actor.
        actor_gpus: GPUs, or the share of one, of each actor.
    """

    executor: Literal["local", "ray"] = "local"
    rollout_actors: int = 2
    ray_address: str | None = None
    actor_cpus: float = 1.0
    actor_gpus: float = 0.0


Executor = Annotated[ExecutorOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class PlanCommand:
    """Say what a published run takes: memory per device, tokens per step, time.

    Attributes:
        preset: The run; left out: all are listed.
        gpus: Devices; left out: those of the preset.
        memory: Memory of a device in GB (10**9 bytes).
        throughput: Sampled tokens per second of all devices together, for the expected time.
        tflops: Most bfloat16 operations per second of a device in 10**12; an H100 has 989.
        utilisation: Share of them that the update reaches.
        lora_rank: Plan for adapters of this rank in place of the weights.
        max_batch: Actions that a device samples at a time; left out: those of the preset.
        micro_batch_tokens: Tokens of one forward pass of training; left out: those of the preset.
    """

    preset: str | None = None
    gpus: int | None = None
    memory: float = 80.0
    throughput: float | None = None
    tflops: float = 989.0
    utilisation: float = 0.4
    lora_rank: int = 0
    max_batch: int | None = None
    micro_batch_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class MergeCommand:
    """Write a model that was trained with adapters as an ordinary model folder.

    Attributes:
        model: Run directory, or a checkpoint with adapters.
        out: New folder.
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    out: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
