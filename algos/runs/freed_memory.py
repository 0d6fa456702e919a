"""Memory that tensors have left, given back to the system."""

from __future__ import annotations

import ctypes
import sys

GROWS_FROM = 2**25
"""Weights of a model from which training on a CPU gives memory back after every step: one of
135 million gives one to two gigabytes, in half a second to a second of a step of half a minute."""


def give_memory_back() -> bool:
    """Give freed memory back to the system; return whether any was (glibc alone).

    What the C library keeps of it is in pieces, which tensors of other shapes do not fit into: the
    process grows step by step, or from one model to the next.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError):  # another C library
        return False
