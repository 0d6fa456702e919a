"""Python's garbage collector, kept from looking through what stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from .process_setting import ProcessSetting

_COLLECT = 10_000, 20, 20
"""Objects and collections between collections of the heap's generations, in a settled heap."""
_frozen_for_good = False


def freeze_for_good() -> None:
    """Freeze all that is there for as long as the process lives, once for all later runs.

    For processes that make many short runs. Each would give back the whole heap when it ends,
    libraries too, and the next full collection would walk over it; now only what it made itself.
    """
    global _frozen_for_good
    gc.freeze()
    _frozen_for_good = True


@contextmanager
def thawed_heap() -> Iterator[None]:
    """Give the collector back, at the end, what was kept from it within."""
    try:
        yield
    finally:
        if not _frozen_for_good:
            gc.unfreeze()


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
        if not _frozen_for_good:
            gc.freeze()  # before it is on again: it would look through all of it once
    finally:
        if running:
            gc.enable()


@contextmanager
def settled_heap() -> Iterator[None]:
    """Freeze long-lived objects (libraries, environments, the model) so that GC skips them.

    A full collection walks over all of it, some hundreds of thousands of objects, and takes as
    long as a whole rollout of a small model. Turns live until their step is over, so that looking
    for unused ones every few hundred objects finds none: it is done less often, too.
    """
    if not _frozen_for_good:
        gc.freeze()
    try:
        with _THRESHOLD.held():
            yield
    finally:
        if not _frozen_for_good:
            gc.unfreeze()


_THRESHOLD = ProcessSetting(
    gc.get_threshold, lambda counts: gc.set_threshold(*counts), lambda: _COLLECT
)
