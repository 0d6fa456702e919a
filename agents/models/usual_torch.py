"""PyTorch's own settings around what learns, whatever the caller has set for their cells."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


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
        _DTYPE.enter()
        settings.callback(_DTYPE.leave)
        yield


class _DefaultDtype:
    """The process's type of new tensors, float32 while any thread is within."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._before = torch.float32

    def enter(self) -> None:
        with self._lock:
            if self._within == 0:
                self._before = torch.get_default_dtype()
                torch.set_default_dtype(torch.float32)
            self._within += 1

    def leave(self) -> None:
        with self._lock:
            self._within -= 1
            if self._within == 0:
                torch.set_default_dtype(self._before)


_DTYPE = _DefaultDtype()
