"""Python's garbage collector, kept from looking through what stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector off within, and behind that from all that was made there.

    Libraries, environments and models are a million objects that all stay; looking through them
    again and again while they are made takes a quarter of that time. After an error nothing is
    kept from it.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()  # before it is on again: it would look through all of it once
    finally:
        if running:
            gc.enable()
