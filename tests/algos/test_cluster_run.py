"""A whole run on a local Ray cluster of two nodes, undisturbed and with a killed node."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from turngym.algos.metrics import without_times
from turngym.algos.run_dir import read_metrics

pytest.importorskip("ray", reason="Ray is not installed: pip install 'turngym[ray]'")

TESTS = Path(__file__).parents[1]


def register(folder: str) -> None:
    """In an actor: the toy world."""
    sys.path.insert(0, folder)
    import letters_world

    torch.set_num_threads(1)
    assert letters_world.Letters


register_here = partial(register, str(TESTS))


def numbers(folder: Path) -> list[dict[str, Any]]:
    return [without_times(row) for row in read_metrics(folder / "metrics.jsonl")]
