"""Metrics as TensorBoard events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter


class Board:
    """Writes scalars.

    Args:
        folder: For the event files.
        first_step: Events of later steps in older files are hidden: they are written again.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        self._writer = SummaryWriter(str(folder), purge_step=first_step + 1 if first_step else None)

    def add(self, step: int, row: Mapping[str, float]) -> None:
        """One row of metrics."""
        for key, value in row.items():
            self._writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()
