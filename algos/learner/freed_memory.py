"""Memory that tensors have left, given back to the system."""

from __future__ import annotations

import ctypes
import sys


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
