"""Messages between the learner and its rollout actors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...agents.engines.base import EngineStats
from ..core.forest import Group
from ..core.protocols import Rollout, Start

Packed = Mapping[str, npt.NDArray[np.uint8]]
"""Weights by name, each as its bytes: number formats that numpy lacks travel too."""


@dataclass(frozen=True, slots=True)
class Work:
    """A request to play one group.

    Attributes:
        scene: Name of the evaluation set; empty for the training environment.
        rollout: How its trees grow.
        start: The task; with the weights' version it says everything.
        version: Of the weights that must play it.
    """

    scene: str
    rollout: Rollout
    start: Start
    version: int


@dataclass(frozen=True, slots=True)
class PlayedGroup:
    """The reply: a group with its statistics.

    Attributes:
        group: The group.
        fault: The last error message of a failed environment.
        stats: What the actor's engine counted since its last answer.
    """

    group: Group
    fault: str
    stats: EngineStats


def pack_weights(model: Any, *, keep: bool = True) -> Packed:
    """Copy the trainable weights into main memory; all others never change.

    Args:
        model: The policy, or a view of one that is gathered as it is read.
        keep: Off, the weights are read and nothing is kept: so a process takes part in gathering.
    """
    return {
        name: p.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        for name, p in model.named_parameters()
        if p.requires_grad and keep
    }


@torch.no_grad()
def unpack_weights(packed: Packed, model: Any) -> None:
    """Put :func:`pack_weights` of another copy of the model into this one.

    Weights that a learner of several processes holds in float32 are rounded to the format here.
    """
    targets = dict(model.named_parameters())
    for name, data in packed.items():
        p = targets[name]
        kind = torch.float32 if len(data) == 4 * p.numel() else p.dtype
        p.copy_(torch.from_numpy(np.array(data)).view(kind).reshape(p.shape))
