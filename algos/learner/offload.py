"""Moments and frozen models in main memory while the engine plays on the same device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...envs.core.errors import BadValueError
from .settings import LearnerSettings


class Offload:
    """Takes an optimiser's state and frozen models off the learner's device, and brings them back.

    Nothing is rounded on the way. A frozen model is copied to main memory once; the moments are,
    every time, into the same memory, which is pinned where the device is CUDA. Of weights that are
    cut up between processes, each moves its own part.

    Args:
        optimizer: Any optimiser of torch; its state may change its tensors in between.
        frozen: Models that never change.
        device: The learner's.
    """

    def __init__(self, optimizer: Any, frozen: Sequence[nn.Module], device: torch.device) -> None:
        self._optimizer = optimizer
        self._device = device
        self._weights = list({id(p): p for m in frozen for p in m.parameters()}.values())
        self._copies: list[Tensor] = []  # of the frozen weights, or of their memory
        self._hosts: dict[tuple[int, str], Tensor] = {}  # of the moments
        self._away: list[tuple[dict[str, Any], str, Tensor]] = []
        self._resting = False

    @property
    def frozen_bytes(self) -> int:
        """What the frozen models take of the device while they are there."""
        return sum(
            _memory(p).nbytes() if _cut_up(p) else p.numel() * p.dtype.itemsize
            for p in self._weights
        )

    @torch.no_grad()
    def rest(self) -> None:
        """Move everything to main memory; the device's memory is free afterwards."""
        if self._resting:
            return
        self._resting = True
        if not self._copies:
            self._copies = [self._copy(p) for p in self._weights]
        for weight, copy in zip(self._weights, self._copies, strict=True):
            if _cut_up(weight):
                _memory(weight).resize_(0)
            else:
                weight.data = copy
        for number, state in enumerate(self._optimizer.state.values()):
            for name, value in state.items():
                if isinstance(value, Tensor) and value.device == self._device:
                    host = self._hosts.get((number, name))
                    if host is None or host.shape != value.shape or host.dtype != value.dtype:
                        host = self._hosts[number, name] = self._host(value)
                    state[name] = host.copy_(value)
                    self._away.append((state, name, host))

    @torch.no_grad()
    def wake(self) -> None:
        """Move everything back; does nothing when it is there."""
        if not self._resting:
            return
        self._resting = False
        for weight, copy in zip(self._weights, self._copies, strict=True):
            if _cut_up(weight):
                _memory(weight).resize_(copy.nbytes)
                _bytes(weight).copy_(copy)
            else:
                weight.data = copy.to(self._device, copy=True)
        for state, name, host in self._away:
            if state.get(name) is host:  # else a checkpoint was loaded meanwhile
                state[name] = host.to(self._device, copy=True)
        self._away.clear()

    def _copy(self, weight: Tensor) -> Tensor:
        """Return a copy in main memory, of a part of a weight with all that its memory holds.

        FSDP2 keeps views of that memory, so it is emptied and filled again in its place.
        """
        value = _bytes(weight) if _cut_up(weight) else weight
        return self._host(value).copy_(value)

    def _host(self, like: Tensor) -> Tensor:
        pinned = self._device.type == "cuda"
        return torch.empty_like(like, device="cpu", pin_memory=pinned)


def _cut_up(weight: Any) -> bool:
    """Return whether this is one process's part of a weight (a DTensor, slow to import)."""
    return hasattr(weight, "to_local")


def _memory(weight: Any) -> torch.UntypedStorage:
    """Return the memory that this process's part of a weight lies in."""
    return weight.to_local().untyped_storage()


def _bytes(weight: Tensor) -> Tensor:
    """Return the memory of a weight as bytes ``[n]``."""
    memory = _memory(weight)
    return torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory)


def check_offload(settings: LearnerSettings, device: torch.device) -> None:
    """Refuse settings with which nothing can be moved.

    Raises:
        BadValueError: The message says why.
    """
    if not settings.offload:
        return
    reason = ""
    if device.type != "cuda":
        reason = f"the learner computes on {device.type}, whose memory is the main memory"
    elif settings.optimizer != "adamw":
        reason = f"{settings.optimizer} keeps its moments in a form that cannot be moved"
    if reason:
        raise BadValueError(
            f"LearnerSettings.offload is on, but {reason}. Leave it off (--no-offload)."
        )
