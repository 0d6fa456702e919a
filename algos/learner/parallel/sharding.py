"""FSDP2: every process holds a shard of each weight, and gathers it while it is used.

Shards are float32; where products are made in bfloat16 the gathered weights are in it, and the
gradients are summed over processes and micro batches in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor, distribute_tensor

from ....agents.models.size import count_weights
from ..critic import Critic

T = TypeVar("T")
METHOD = "turngym_within"


def shard(
    model: Any,
    world_size: int,
    device: torch.device,
    half: bool,
    dtype: torch.dtype | None = None,
) -> None:
    """Shard a model in place, layer by layer, the remaining modules as one unit.

    Gradients become the mean over processes. Not only the model's own forward may be run
    afterwards but, by :func:`within`, any use of its layers. A model in main memory reaches the
    device one layer at a time, and never stands on it whole; its number format changes when it is
    cut up, so that one whose weights are mapped files costs no memory but its shards and less than
    a layer.

    Args:
        model: A transformers model, or a critic on one.
        world_size: Number of processes.
        device: Where the shards go.
        half: Whether products are made in bfloat16. Weights that learn are float32 in any case.
        dtype: Number format that weights are rounded to first; None leaves them.
    """
    mesh = init_device_mesh(device.type, (world_size,))
    policy = MixedPrecisionPolicy()
    if half:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in _layers(model):
        _cut_up(layer, dtype, mesh=mesh, mp_policy=policy)
    for exact in _exact_parts(model):
        _cut_up(exact, dtype, mesh=mesh)
    # The root gives its weights back too: else a pass without gradients would leave a copy that
    # the next step of the optimiser does not reach.
    _cut_up(model, dtype, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
    setattr(model, METHOD, lambda work: _owned(work()))
    register_fsdp_forward_method(model, METHOD)


def _cut_up(module: nn.Module, dtype: torch.dtype | None, **how: Any) -> None:
    """Shard what is whole of a module; round the shards, and widen those that learn to float32.

    The other way round each process would hold the module whole in float32 for a moment.
    """
    whole = [p for p in module.parameters() if not isinstance(p, DTensor)]
    fully_shard(module, **how)
    for p in whole:
        p.data = p.data.new_empty(0)  # whoever still has it keeps no memory

    def change(value: Tensor) -> Tensor:
        if not isinstance(value, nn.Parameter) or not value.is_floating_point():
            return value
        rounded = value if dtype is None else value.to(dtype)
        # steps of a usual learning rate are lost in half precision
        return rounded.float() if value.requires_grad else rounded

    module._apply(change)  # FSDP2's, which learns of the shards' new memory


def within(model: Any, work: Callable[[], T]) -> T:
    """Run ``work`` as if it were the model's forward: its weights are whole meanwhile."""
    return getattr(model, METHOD)(work)


@torch.no_grad()
def collect(sharded: nn.Module, whole: nn.Module) -> None:
    """Copy the weights of a sharded model into a whole one; every process must call."""
    targets = dict(whole.named_parameters())
    for name, p in sharded.named_parameters():
        targets[name].copy_(_whole(p))


@torch.no_grad()
def spread(whole: nn.Module, sharded: nn.Module) -> None:
    """Copy the weights of a whole model into a sharded one, each process its part."""
    source = dict(whole.named_parameters())
    for name, p in sharded.named_parameters():
        p.copy_(part_like(source[name], p))


class Gathered:
    """A sharded module as an engine reads it: whole, one layer at a time, on the card.

    What an engine asks for by name is gathered then: a weight of its own as one tensor, decoder
    layers while they are iterated over. Never are two layers whole. Every process must read the
    same in the same order.

    Args:
        module: The sharded policy, or a module in it.
        dtype: Number format of gathered weights; None for that of the shards.
    """

    def __init__(self, module: nn.Module, dtype: torch.dtype | None = None) -> None:
        self._module = module
        self._dtype = dtype

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, Tensor):
            return self._read(found)
        if isinstance(found, nn.ModuleList) and any(isinstance(m, FSDPModule) for m in found):
            return _Layers(found)
        weighty = isinstance(found, nn.Module) and next(found.parameters(), None) is not None
        return Gathered(found, self._dtype) if weighty else found

    def parameters(self) -> Iterator[Tensor]:
        """Yield the weights, whole."""
        for _, value in self.named_parameters():
            yield value

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights by name, whole, in the format of the shards."""
        for name, p in self._module.named_parameters():
            yield name, _whole(p.detach()).requires_grad_(p.requires_grad)

    def state_dict(self) -> Mapping[str, Tensor]:
        """Return the module's weights and buffers by name, each gathered when it is read."""
        return _Weights(self._module.state_dict(), self._read)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write the adapters of a peft model down, gathered, as a folder that peft reads."""
        found = self._module.state_dict().items()
        state = {name: _whole(value.detach()) for name, value in found if ".lora_" in name}
        peft_model: Any = self._module
        peft_model.save_pretrained(str(folder), state_dict=state)

    def _read(self, value: Tensor) -> Tensor:
        whole = _whole(value.detach())
        return whole.to(self._dtype) if self._dtype and whole.is_floating_point() else whole


class _Weights(Mapping[str, Tensor]):
    def __init__(self, found: Mapping[str, Tensor], read: Callable[[Tensor], Tensor]) -> None:
        self._found, self._read = found, read

    def __getitem__(self, name: str) -> Tensor:
        return self._read(self._found[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class _Layers:
    """Layers that are whole while an iteration is at them."""

    def __init__(self, layers: nn.ModuleList) -> None:
        self._layers = layers

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[nn.Module]:
        for layer in self._layers:
            assert isinstance(layer, FSDPModule)
            layer.unshard()
            try:
                yield layer
            finally:
                layer.reshard()


def _whole(value: Tensor) -> Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value


def _exact_parts(model: Any) -> list[nn.Module]:
    """Return modules that compute in float32 whatever the rest does: a critic's last layer."""
    return [model.head] if isinstance(model, Critic) else []


def part_like(value: Tensor, p: Tensor) -> Tensor:
    """Shard a replicated tensor as ``p`` is."""
    value = value.detach().to(p.device)
    if not isinstance(p, DTensor):
        return value
    return distribute_tensor(value, p.device_mesh, p.placements, src_data_rank=None)


def _owned(out: Any) -> Any:
    """Return results without views, on which FSDP2's hooks could get lost."""
    if isinstance(out, tuple):
        return tuple(_owned(part) for part in out)
    return out.clone() if isinstance(out, Tensor) and out._is_view() else out


def _layers(model: Any) -> list[nn.Module]:
    """Return the decoder layers: the longest list of modules of one class."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m)]
    lists = [m for m in lists if len({type(layer) for layer in m}) == 1]
    longest = max(lists, key=count_weights, default=())
    return list(longest)
