"""How much of a card's memory a process may take: all of it, or a share beside others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...envs.core.errors import BadValueError
from .attention import avoid_planned_kernels

if TYPE_CHECKING:
    import torch

SHARE = "TURNGYM_GPU_SHARE"
"""Environment variable with the share of each card that a process may take, above 0 and at most
1."""
ALL_SHARES = 0.94
"""What the shares of all processes on a card are together: each has a CUDA context besides."""


def share_of(part: float) -> float:
    """Return the share of a card that a process may take that is given so large a part of it."""
    return 1.0 if part >= 1.0 else round(ALL_SHARES * part, 4)


def card_share() -> float:
    """Return the share of a card that this process may take.

    Raises:
        BadValueError: :data:`SHARE` is no number above 0 and at most 1.
    """
    given = os.environ.get(SHARE, "1")
    try:
        share = float(given)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise BadValueError(
            f"{SHARE} is {given!r}; expected the share of a card that this process may take, above "
            "0 and at most 1. Unset it for the whole card."
        )
    return share


def prepare_card(device: torch.device) -> None:
    """Let torch take no more of a card than this process's share, and no kernels that are planned.

    Args:
        device: Of a model; nothing happens for a CPU.

    Raises:
        BadValueError: See :func:`card_share`.
    """
    if device.type != "cuda":
        return
    import torch

    avoid_planned_kernels(device)
    share = card_share()
    if share < 1.0:  # the call takes no device without a number
        number = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.set_per_process_memory_fraction(share, number)


def device_memory(device: torch.device) -> tuple[int, int]:
    """Return free and total bytes of this process's share of a CUDA device.

    What torch keeps unused counts as free.
    """
    import torch

    free, total = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device)
    total = int(card_share() * total)
    free = max(0, min(free, total - reserved))
    return free + reserved - torch.cuda.memory_allocated(device), total


def cache_bytes(gib: float | None, device: torch.device) -> int:
    """Return the memory for keys and values: as asked, 2 GiB on a CPU, half of the free on CUDA."""
    if gib is not None:
        return int(gib * 2**30)
    if device.type == "cuda":
        return device_memory(device)[0] // 2
    return 2 * 2**30
