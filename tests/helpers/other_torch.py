"""Settings of PyTorch that nobody has who sets none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def other_torch() -> Iterator[None]:
    """What a script or notebook may have set for its own code."""
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
