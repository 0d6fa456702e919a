"""What goes to main memory for a while, so that a device's own has room.

While the engine plays, moments and frozen models; between a micro batch's forward and backward
pass, the inputs of layers that will be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from ...envs.core.errors import BadValueError
from .settings import LearnerSettings

INPUTS_HERE = 3
"""Layers' inputs that are on the device at a time, where the others are in main memory."""


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


class CopyLane:
    """Copies beside a device's work: on CUDA on a stream of their own, elsewhere at once.

    Args:
        device: Whose tensors are copied.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def host(self, like: Tensor) -> Tensor:
        """Return memory of a tensor's form in main memory, pinned where the device is CUDA."""
        return torch.empty_like(like, device="cpu", pin_memory=self._stream is not None)

    def start(self, target: Tensor, source: Tensor) -> Any:
        """Copy after all work that the device was given so far; return what to wait for.

        Both tensors must be there until it was waited for.
        """
        if self._stream is None:
            target.copy_(source)
            return None
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            target.copy_(source, non_blocking=True)
            return self._stream.record_event()

    def wait(self, copy: Any) -> None:
        """Let the device's next work wait for a copy."""
        if copy is not None:
            torch.cuda.current_stream(self.device).wait_event(copy)


@dataclass(slots=True)
class _Moved:
    """A layer's input.

    Attributes:
        place: Its number in the forward pass.
        host: In main memory.
        here: On the device: not yet gone, or back already.
        copy: The last copy, there or back, to wait for.
    """

    place: int
    host: Tensor
    here: Tensor | None
    copy: Any


class ActivationOffload:
    """Takes the inputs of layers that are computed again to main memory until they are wanted.

    On CUDA an input leaves, for pinned memory, while its layer is computed, and returns while the
    layer after it is computed again and differentiated, so that copies hide behind products: at
    most two are on the device beside the one in use. Nothing is rounded. As TRL's and torchtune's
    ``OffloadActivations`` do it, though for checkpointed layers alone.

    Args:
        lane: Copies; of the learner's device.

    Attributes:
        moved_bytes: What has gone to main memory so far.
    """

    def __init__(self, lane: CopyLane) -> None:
        self.moved_bytes = 0
        self._lane = lane
        self._inputs: list[_Moved] = []  # of this micro batch, in order
        self._leaving: _Moved | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Enclose the passes of a micro batch; nothing is held on the device afterwards."""
        try:
            yield
        finally:
            for moved in self._inputs:
                if moved.here is not None:
                    self._lane.wait(moved.copy)  # a pass broke off, the memory is still written
                    moved.here = None
            self._inputs.clear()
            self._leaving = None

    def around(self, checkpoint: Callable[..., Any]) -> Callable[..., Any]:
        """Return a form of ``checkpoint`` whose tensors, a layer's inputs, are moved."""

        def moving(layer: Callable[..., Any], *inputs: Any) -> Any:
            # what the layer itself saves is seen by checkpoint's own hooks, which are inside
            with saved_tensors_hooks(self._leave, self._come_back):
                return checkpoint(layer, *inputs)

        return moving

    def _leave(self, value: Tensor) -> _Moved | Tensor:
        if value.device != self._lane.device or not value.is_floating_point():
            return value
        here = value.detach()  # itself, it would hold the graph that holds it
        host = self._lane.host(here)
        moved = _Moved(len(self._inputs), host, here, self._lane.start(host, here))
        self.moved_bytes += host.nbytes
        self._let_go()  # the one before had a whole layer's time
        self._inputs.append(moved)
        self._leaving = moved
        return moved

    def _let_go(self) -> None:
        if self._leaving is not None:
            self._lane.wait(self._leaving.copy)
            self._leaving.here = None
            self._leaving = None

    def _come_back(self, moved: _Moved | Tensor) -> Tensor:
        if isinstance(moved, Tensor):
            return moved
        if self._leaving is not None and self._leaving is not moved:
            self._let_go()
        here = self._fetch(moved)
        self._lane.wait(moved.copy)
        moved.here = self._leaving = None
        if moved.place:
            self._fetch(self._inputs[moved.place - 1])
        return here

    def _fetch(self, moved: _Moved) -> Tensor:
        """Return an input on the device, where it will be once its copy was waited for."""
        if moved.here is None:
            moved.here = torch.empty_like(moved.host, device=self._lane.device)
            moved.copy = self._lane.start(moved.here, moved.host)
        return moved.here


def check_offload(settings: LearnerSettings, device: torch.device) -> None:
    """Refuse settings with which nothing can be moved.

    Raises:
        BadValueError: The message says why.
    """
    here = f"the learner computes on {device.type}, whose memory is the main memory"
    reasons = {"offload": "", "offload_activations": ""}
    if device.type != "cuda":
        reasons = dict.fromkeys(reasons, here)
    elif settings.optimizer != "adamw":
        reasons["offload"] = (
            f"{settings.optimizer} keeps its moments in a form that cannot be moved"
        )
    for name, reason in reasons.items():
        if reason and getattr(settings, name):
            raise BadValueError(
                f"LearnerSettings.{name} is on, but {reason}. Leave it off "
                f"(--no-{name.replace('_', '-')})."
            )
