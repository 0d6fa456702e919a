"""Estimates of a preset's memory per device, tokens per step and time, without loading a model.

Weights that learn are sharded over the devices with their gradients and moments; every device
samples with a whole copy in bfloat16, which takes new weights in place. Everything is counted as if
it were there at once, as the engine's cache stays through the update; with ``offload`` engine and
learner take turns, with ``offload_activations`` layers' inputs are in main memory. Lengths are
upper bounds, so tokens and times are too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....envs.core.errors import BadValueError
from ...core.checks import check_numbers
from .preset import Preset
from .shapes import ModelShape, shape_of

GB = 10**9
HALF, WHOLE = 2, 4
INPUTS_HERE = 3
"""Layers' inputs on a device while others are in main memory, as in learner/offload.py."""
TABLES = 3
"""Tables of float32 in which a piece of the logits is made, as in scoring/fused_head.py."""
WRITTEN = 2 * WHOLE * 2**24
"""Bytes of the weights that the engine converts at a time, as in its packed decoder."""
RESTING = ("gradients", "optimiser", "reference", "activations", "logits", "narrowed weights")
"""What is not on the device while the engine plays, with ``offload``."""
MOVED = ("optimiser", "reference")
"""What of it is in main memory then; the rest is made anew."""
CACHE = "engine's cache"
RESERVE = 0.08
"""Share of a device's memory for its context, buffers and gaps."""
GPUS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The devices of a run.

    Attributes:
        gpus: Devices.
        memory_gb: Memory of each, in 10**9 bytes.
        throughput: Sampled tokens per second of all devices together; None when not known.
        tflops: Most bfloat16 operations per second and device, in 10**12 (an H100: 989).
        utilisation: Share of them that the update reaches.
    """

    gpus: int
    memory_gb: float = 80.0
    throughput: float | None = None
    tflops: float = 989.0
    utilisation: float = 0.4

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.gpus < 1:
            raise BadValueError(f"plan: gpus is {self.gpus}; expected at least 1.")
        for name in ("memory_gb", "throughput", "tflops"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise BadValueError(f"plan: {name} is {value}; expected above 0.")
        if not 0 < self.utilisation <= 1:
            raise BadValueError(f"plan: utilisation is {self.utilisation}; expected in (0, 1].")


@dataclass(frozen=True, kw_only=True)
class ResourcePlan:
    """The memory, tokens and time of a run.

    Attributes:
        parameters: Of the model.
        memory: Bytes per device, by what they are for.
        capacity: Bytes that a device has.
        main_memory: Bytes of main memory per device that are used beside.
        offload: Whether engine and learner take turns.
        sampled: Most tokens that a step samples.
        trained: Most tokens that a step sends through the model, observations included.
        sample_seconds: Most time of a step's sampling; None without a throughput.
        update_seconds: Most time of a step's update.
        steps: Of the run.
    """

    parameters: int
    memory: dict[str, int]
    capacity: int
    main_memory: int
    offload: bool
    sampled: int
    trained: int
    sample_seconds: float | None
    update_seconds: float
    steps: int

    @property
    def playing(self) -> int:
        """Bytes per device while the engine plays."""
        away = RESTING if self.offload else ()
        return sum(count for name, count in self.memory.items() if name not in away)

    @property
    def updating(self) -> int:
        """Bytes per device while the learner updates."""
        return sum(self.memory.values()) - (self.memory.get(CACHE, 0) if self.offload else 0)

    @property
    def total(self) -> int:
        """Bytes per device at most."""
        return max(self.playing, self.updating)

    @property
    def fits(self) -> bool:
        """Whether a device has that many."""
        return self.total <= self.capacity

    @property
    def hours(self) -> float | None:
        """Maximum time of the run in hours; None without a throughput."""
        if self.sample_seconds is None:
            return None
        return self.steps * (self.sample_seconds + self.update_seconds) / 3600


def plan(
    preset: Preset,
    hardware: Hardware,
    lora_rank: int = 0,
    *,
    offload: bool = False,
    offload_activations: bool = False,
) -> ResourcePlan:
    """Estimate the resources of a preset.

    Args:
        preset: What is trained.
        hardware: Where.
        lora_rank: Rank of adapters that learn in place of the weights; 0 for none.
        offload: Whether moments and reference are in main memory while the engine plays.
        offload_activations: Whether layers' inputs are there until they are wanted.

    Raises:
        BadValueError: A negative rank.
        UnknownNameError: A model of unknown shape.
    """
    if lora_rank < 0:
        raise BadValueError(f"plan: lora_rank is {lora_rank}; expected 0 (off) or more.")
    shape, recipe = shape_of(preset.model), preset.make_recipe()
    paths = preset.trained_paths or recipe.rollout.max_paths
    trained = recipe.groups_per_step * paths * preset.max_context
    chains = preset.trained_paths or sampled_chains(recipe.rollout)
    sampled = round(recipe.groups_per_step * chains * preset.sampled_tokens)
    device_flops = hardware.gpus * hardware.tflops * 1e12 * hardware.utilisation
    speed = hardware.throughput
    found = memory(preset, hardware, lora_rank, offload_activations=offload_activations)
    away = sum(found.get(name, 0) for name in MOVED) if offload else 0
    if offload_activations:
        away += shape.layers * input_bytes(preset, shape)
    return ResourcePlan(
        parameters=shape.parameters,
        memory=found,
        main_memory=away,
        capacity=round(hardware.memory_gb * GB),
        offload=offload,
        sampled=sampled,
        trained=trained,
        sample_seconds=None if speed is None else sampled / speed,
        update_seconds=trained * token_flops(shape, recipe) / device_flops,
        steps=preset.steps,
    )


def memory(
    preset: Preset, hardware: Hardware, lora_rank: int = 0, *, offload_activations: bool = False
) -> dict[str, int]:
    """Return bytes per device, by purpose."""
    shape, recipe, gpus = shape_of(preset.model), preset.make_recipe(), hardware.gpus
    size = WHOLE if preset.weights == "float32" else HALF
    own = _trained(shape.parameters, size, shape.adapters(lora_rank))
    critic = dict.fromkeys(own, 0)
    if recipe.critic:
        critic = _trained(shape.backbone + shape.hidden + 1, size, shape.adapters(lora_rank))
    reference = size * shape.parameters if recipe.reference and not lora_rank else 0
    table = shape.vocabulary * shape.hidden
    narrow = HALF if size == WHOLE else 0  # copies of float32 weights for the products
    inputs = min(shape.layers, INPUTS_HERE) if offload_activations else shape.layers
    found = {
        "model": own["weights"] // gpus,
        "gradients": own["gradients"] // gpus,
        "optimiser": own["optimiser"] // gpus,
        "critic": sum(critic.values()) // gpus,
        "reference": reference // gpus,
        "gathered layers": 2 * size * shape.layer if gpus > 1 else 0,
        "activations": inputs * input_bytes(preset, shape)
        + size * preset.micro_batch_tokens * shape.saved_entries,
        "narrowed weights": narrow * shape.parameters if gpus == 1 else 0,
        "logits": TABLES * WHOLE * logit_entries(hardware) + (size + narrow) * table,
        # embedding in the weights' format, layers and output layer in half precision
        "engine's copy": HALF * (shape.layers * shape.layer + table) + size * table,
        # of adapters a layer's products, added to its weights
        "hand-over": WRITTEN + ((size + WHOLE) * shape.linear_layer if lora_rank else 0),
        CACHE: HALF * shape.cache_entries * preset.max_batch * preset.max_context,
        "reserve": round(RESERVE * hardware.memory_gb * GB),
    }
    return {name: count for name, count in found.items() if count}


def input_bytes(preset: Preset, shape: ModelShape) -> int:
    """Return the bytes of one layer's inputs in a micro batch."""
    size = WHOLE if preset.weights == "float32" else HALF
    return size * preset.micro_batch_tokens * shape.hidden


def logit_entries(hardware: Hardware) -> int:
    """Return the most logits of a piece: a table is a 64th of a device's memory, within limits."""
    return max(2**24, min(2**28, round(hardware.memory_gb * GB) // (WHOLE * 64)))


def sampled_chains(rollout: Any) -> float:
    """Return the maximum sampling cost of a group, in whole chains.

    Tree-GRPO's expansions start half-way on average (section 3.2 of arXiv 2509.21240).
    """
    expansions = getattr(rollout, "nodes", 0) * getattr(rollout, "rounds", 0)
    if expansions:
        return rollout.trees * (1 + expansions / 2)
    return float(rollout.max_paths)


def token_flops(shape: ModelShape, recipe: Any) -> int:
    """Return operations per trained token of a step, without attention.

    2 per weight forward, 4 backward, 2 more as layers are computed again; each epoch anew. Log-
    probabilities before the update, the reference's and the critic's values are forward passes.
    """
    optim = recipe.optim
    updates = optim.epochs * 8
    again = optim.epochs * optim.minibatches > 1 or "old_logprobs" in recipe.needs
    policy = updates + 2 * bool(again) + 2 * recipe.reference
    critic = (updates + 2) * recipe.critic
    return policy * shape.parameters + critic * shape.backbone


def min_gpus(
    preset: Preset,
    hardware: Hardware,
    lora_rank: int = 0,
    *,
    offload: bool = False,
    offload_activations: bool = False,
) -> int | None:
    """Return the smallest usual number of devices that suffices; None if none does."""
    moved = {"offload": offload, "offload_activations": offload_activations}
    for gpus in GPUS:
        there = Hardware(gpus=gpus, memory_gb=hardware.memory_gb)
        if plan(preset, there, lora_rank, **moved).fits:
            return gpus
    return None


def _trained(weights: int, size: int, adapters: int) -> dict[str, int]:
    """Return bytes of a trained model over all devices: AdamW with float32 moments.

    Weights in half precision have a float32 copy with the moments. Adapters are float32, and the
    model's own weights then have neither gradient nor moments.
    """
    if adapters:
        return {
            "weights": size * weights + WHOLE * adapters,
            "gradients": WHOLE * adapters,
            "optimiser": 2 * WHOLE * adapters,
        }
    copies = 2 if size == WHOLE else 3
    return {
        "weights": size * weights,
        "gradients": size * weights,
        "optimiser": copies * WHOLE * weights,
    }
