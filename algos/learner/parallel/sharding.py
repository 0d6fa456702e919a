"""FSDP2: every process holds a shard of each weight, and gathers it while it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

T = TypeVar("T")
METHOD = "turngym_within"


def shard(model: Any, world_size: int) -> None:
    """Shard a model in place, layer by layer, the remaining modules as one unit.

    Gradients become the mean over processes. Not only the model's own forward may be run
    afterwards but, by :func:`within`, any use of its layers.

    Args:
        model: A transformers model, or a critic on one.
        world_size: Number of processes.
    """
    mesh = init_device_mesh(next(model.parameters()).device.type, (world_size,))
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh)
    # The root gives its weights back too: else a pass without gradients would leave a copy that
    # the next step of the optimiser does not reach.
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    setattr(model, METHOD, lambda work: _owned(work()))
    register_fsdp_forward_method(model, METHOD)


def within(model: Any, work: Callable[[], T]) -> T:
    """Run ``work`` as if it were the model's forward: its weights are whole meanwhile."""
    return getattr(model, METHOD)(work)


@torch.no_grad()
def collect(sharded: nn.Module, whole: nn.Module) -> None:
    """Copy the weights of a sharded model into a whole one; every process must call."""
    targets = dict(whole.named_parameters())
    for name, p in sharded.named_parameters():
        targets[name].copy_(p.full_tensor() if isinstance(p, DTensor) else p)


@torch.no_grad()
def spread(whole: nn.Module, sharded: nn.Module) -> None:
    """Copy the weights of a whole model into a sharded one, each process its part."""
    source = dict(whole.named_parameters())
    for name, p in sharded.named_parameters():
        p.copy_(part_like(source[name], p))


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
    longest = max(lists, key=lambda m: sum(p.numel() for p in m.parameters()), default=())
    return list(longest)
