"""What Python's cycle collector need not walk through in the middle of a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settled_heap() -> Iterator[None]:
    """Within, what exists already (libraries, worlds, the model) is left out of collections.

    A full collection walks over all of it, some hundreds of thousands of objects, and takes as
    long as a whole rollout of a small model.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
