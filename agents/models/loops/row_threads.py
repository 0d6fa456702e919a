"""Compiled loops over rows on as many threads as torch has."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch

ROWS = 128
"""Rows that one thread computes at least, unless said otherwise."""


def share_rows(kernel: Callable[..., None], rows: int, *arguments: Any, piece: int = ROWS) -> None:
    """Call ``kernel(first, stop, *arguments)`` for parts of the rows that make up all of them.

    Args:
        kernel: A loop that runs without Python's lock.
        rows: How many there are.
        arguments: Given to every call.
        piece: Rows that a call has at least; bounds between calls are multiples of it.
    """
    pieces = -(-rows // piece)
    threads = min(torch.get_num_threads(), pieces)
    if threads <= 1:
        kernel(0, rows, *arguments)
        return
    cuts = [min(rows, piece * (pieces * i // threads)) for i in range(threads + 1)]
    first, *parts = itertools.pairwise(cuts)
    others = [_pool(os.getpid()).submit(kernel, *part, *arguments) for part in parts]
    kernel(*first, *arguments)
    for other in others:
        other.result()


@lru_cache(maxsize=1)
def _pool(_process: int) -> ThreadPoolExecutor:
    """Return the threads of this process: a fork has none of its parent's."""
    return ThreadPoolExecutor(thread_name_prefix="rows")
