"""PyTorch's own settings around what learns, whatever the caller has set for their cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from ...envs.utils.process_setting import ProcessSetting


@contextmanager
def usual_torch() -> Iterator[None]:
    """Compute within as PyTorch does where nobody changed its settings; also a decorator.

    A script or notebook may have switched gradients off, or set another type or device for new
    tensors: losses would have no gradient, and numbers and models that are kept would be others.
    Gradients and device are the calling thread's; the type is the process's: it holds until the
    last thread leaves, and then the caller's is put back.
    """
    with ExitStack() as settings:
        if torch.get_default_device().type != "cpu":
            settings.enter_context(torch.device("cpu"))
        settings.enter_context(torch.inference_mode(False))
        settings.enter_context(torch.enable_grad())
        settings.enter_context(_DTYPE.held())
        yield


@contextmanager
def seeded_draws(seed: int, device: torch.device) -> Iterator[None]:
    """Draw what PyTorch draws within, as dropout does, from this seed; then go on as before.

    Args:
        seed: Of the CPU's generator and the device's.
        device: Where the model is.
    """
    cards = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cards):
        torch.manual_seed(seed % 2**63)  # it takes no larger ones, numpy does
        yield


_DTYPE = ProcessSetting(torch.get_default_dtype, torch.set_default_dtype, lambda: torch.float32)
