"""Memory that tensors have left: kept by the C library, or given back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
APART = 2**20
"""Bytes of a tensor from which on it is mapped by itself within :func:`mapped_apart`."""
_usual = 2**25  # as far as glibc's own threshold goes up once such blocks have been freed


def keep_memory() -> bool:
    """Keep freed memory in the process; return whether the C library does so (glibc alone).

    Every update allocates and frees the same tensors. Given back to the system in between, their
    pages are cleared and mapped again each time, about a twentieth of a small model's step.
    """
    global _usual
    limit = _from_c_library("mallopt")
    if limit is None or not limit(M_MMAP_THRESHOLD, 2**30):
        return False
    _usual = 2**30
    return bool(limit(M_TRIM_THRESHOLD, 2**31 - 1))


def give_memory_back() -> bool:
    """Give freed memory back to the system; return whether any was (glibc alone).

    What the C library keeps of it is in pieces, which tensors of other shapes do not fit into: the
    process grows step by step, or from one model to the next.
    """
    trim = _from_c_library("malloc_trim")
    return trim is not None and bool(trim(0))


@contextmanager
def mapped_apart() -> Iterator[None]:
    """Map tensors of 1 MiB and more by themselves within the context (glibc alone).

    What is freed is then gone at once. Attention weights are of another size in every chunk of a
    row, so that the pieces they leave fit no other: with a path of 4,096 tokens an update of
    SmolLM2 takes 2.6 GiB more that way, and 4.9 with a critic of its own.
    """
    limit = _from_c_library("mallopt")
    if limit is None:
        yield
        return
    limit(M_MMAP_THRESHOLD, APART)
    try:
        yield
    finally:
        limit(M_MMAP_THRESHOLD, _usual)


def _from_c_library(name: str) -> Callable[..., Any] | None:
    """Return a function of the C library, None where it has none of that name."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):  # another C library
        return None
