"""Settings of the process that only a command may choose: threads, other libraries' bars."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from importlib import import_module

from ...envs.utils.garbage_collection import uncollected

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def keep_memory() -> bool:
    """Keep freed memory in the process; return whether the C library does so (glibc alone).

    Every update allocates and frees the same tensors. Given back to the system in between, their
    pages are cleared and mapped again each time, about a twentieth of a small model's step.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        limit = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return bool(limit(M_MMAP_THRESHOLD, 2**30) and limit(M_TRIM_THRESHOLD, 2**31 - 1))


def prepare(small: bool) -> None:
    """Call once before models are loaded.

    Args:
        small: The model has a few million parameters: one thread is then as fast as several, and
            unlike them does not collapse when other programs use the cores. ``OMP_NUM_THREADS``
            overrules it. What larger models import is left until something asks for it.
    """
    with uncollected():
        import torch

        if not small:
            import_module("transformers.modeling_utils")  # what every large model imports
            import_module("transformers.utils.logging").disable_progress_bar()
    atexit.register(gc.freeze)  # the last collection would take a second
    keep_memory()
    if small and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def prepare_for(model: str) -> None:
    """Call once before the model of a folder or hub name is loaded, see :func:`prepare`."""
    from ...agents.models.loading import is_small

    prepare(small=is_small(model))
