"""The part of a checkpoint that many processes write: optimiser and critic, each its own shards.

The weights of the policy are there once, as a model that loads by path. A checkpoint can be taken
up by any number of processes, one included.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from ..learner import Learner

SHARDS = "trainer/shards"


def save_shards(folder: Path, learner: Learner) -> None:
    """Write optimiser and critic; every process must call."""
    # they take a while to import, and most runs have one process
    from torch.distributed.checkpoint.filesystem import FileSystemWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    group = learner.models.team.ranks.group
    save(
        {**_optimizer(learner), **_critic(learner)},
        storage_writer=FileSystemWriter(folder),
        process_group=group,
    )


def load_shards(folder: Path, learner: Learner) -> None:
    """Take up what :func:`save_shards` wrote, with as many processes as there are here."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = FileSystemReader(folder)
    saved = reader.read_metadata().state_dict_metadata
    wanted: dict[str, Tensor] = dict(_critic(learner))
    states: list[tuple[Tensor, str, str]] = []
    for i, p in enumerate(_params(learner)):
        for key in sorted(k for k in saved if k.startswith(f"optimizer.{i}.")):
            name = key.rsplit(".", 1)[1]
            stored = saved[key]
            assert isinstance(stored, TensorStorageMetadata)  # optimisers keep tensors alone
            size, kind = stored.size, stored.properties.dtype
            if tuple(size) == tuple(p.shape):
                wanted[key] = torch.zeros_like(p, dtype=kind)
            else:
                where = "cpu" if name == "count" else p.device
                wanted[key] = torch.zeros(size, dtype=kind, device=where)
            states.append((p, name, key))
    team = learner.models.team
    with warnings.catch_warnings():
        if team.alone:  # torch asks whether that is meant
            warnings.filterwarnings("ignore", "torch.distributed is disabled")
        load(wanted, storage_reader=reader, process_group=team.ranks.group, no_dist=team.alone)
    learner.optimizer.state.clear()
    for p, name, key in states:
        learner.optimizer.state[p][name] = wanted[key].detach()


def load_whole_state(state: dict[str, Any], learner: Learner) -> None:
    """Take up the state of an optimiser that one process wrote, each process its part."""
    from .sharding import part_like

    learner.optimizer.state.clear()
    for i, p in enumerate(_params(learner)):
        for name, value in state["state"].get(i, {}).items():
            cut = isinstance(value, Tensor) and value.shape == p.shape
            learner.optimizer.state[p][name] = part_like(value, p) if cut else value


@torch.no_grad()
def load_whole_critic(state: dict[str, Tensor], critic: nn.Module) -> None:
    """Take up a critic that one process wrote, each process its part."""
    from .sharding import part_like

    for name, p in critic.named_parameters():
        p.copy_(part_like(state[name], p))


def _optimizer(learner: Learner) -> dict[str, Any]:
    return {
        f"optimizer.{i}.{name}": value
        for i, p in enumerate(_params(learner))
        for name, value in learner.optimizer.state.get(p, {}).items()
    }


def _critic(learner: Learner) -> dict[str, Tensor]:
    if learner.critic is None:
        return {}
    return {f"critic.{name}": p.detach() for name, p in learner.critic.named_parameters()}


def _params(learner: Learner) -> list[Tensor]:
    return [p for group in learner.optimizer.param_groups for p in group["params"]]
