"""What crosses between main memory and a device: for a token step, once there and once back.

A copy from ordinary memory lets the host wait until the device has done all that was asked of it
before, and each copy costs some microseconds however small it is. So the arrays of a step go
together, from pinned memory and without a wait, and only the sampled tokens are waited for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]
ALIGNMENT = 16
"""Bytes at whose multiples the arrays of a parcel begin."""


def packs(device: torch.device) -> bool:
    """Return whether arrays cross to a device, and so had better do it together."""
    return device.type != "cpu"


def pinned_bytes(n: int) -> Tensor:
    """Return ``n`` bytes of pinned memory; torch keeps it until the device has read it."""
    return torch.empty(n, dtype=torch.uint8, pin_memory=True)


def upload(host: Tensor, device: torch.device, into: Tensor | None) -> Tensor:
    """Copy bytes to a device while the host goes on.

    Args:
        host: Pinned ``[n]``.
        device: Where to.
        into: Memory there of at least as many bytes; None takes new memory.
    """
    if into is None:
        return host.to(device, non_blocking=True)
    into[: len(host)].copy_(host, non_blocking=True)
    return into


def download(found: Tensor) -> Array:
    """Return a tensor as an array, after all work that the device has to do for it."""
    return found.cpu().numpy()


class Parcel:
    """Arrays that go to a device together.

    On a CPU nothing is copied: the tensors are the arrays.

    Args:
        device: Where they go.
        arrays: The first of them.

    Attributes:
        tensors: The arrays there in the order that they were put in, once :meth:`send` was called.
    """

    def __init__(self, device: torch.device, *arrays: Array) -> None:
        self.device = device
        self.tensors: list[Tensor] = []
        self._arrays: list[Array] = list(arrays)

    def add(self, array: Array) -> int:
        """Put an array in; returns its place."""
        self._arrays.append(array)
        return len(self._arrays) - 1

    def send(self, into: Tensor | None = None) -> list[Tensor]:
        """Send all arrays, and return them as tensors on the device.

        Args:
            into: Memory on the device for them, bytes; None takes new memory. The first arrays lie
                at the same places every time, as long as their shapes are the same.
        """
        if not packs(self.device):
            self.tensors = [torch.from_numpy(array) for array in self._arrays]
            return self.tensors
        sizes = [-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in self._arrays]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        host = pinned_bytes(sum(sizes))
        written = host.numpy()
        for start, array in zip(starts, self._arrays, strict=True):
            own = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            written[start : start + array.nbytes] = own
        there = upload(host, self.device, into)
        self.tensors = [
            there[start : start + array.nbytes].view(_FORMATS[array.dtype.name]).view(array.shape)
            for start, array in zip(starts, self._arrays, strict=True)
        ]
        return self.tensors


_FORMATS = {
    "int64": torch.int64,
    "int32": torch.int32,
    "float32": torch.float32,
    "bool": torch.bool,
}


def to_device(array: Array, device: torch.device) -> Tensor:
    """Return one array as a tensor on a device; a GPU fetches it while the host goes on."""
    return Parcel(device, array).send()[0]
