"""Settings of the process that only a command may choose: threads, other libraries' bars."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep Python's garbage collector from running within the context.

    Importing torch and transformers makes a million objects that all stay; looking through them
    again and again for garbage takes a quarter of the imports' time.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def prepare(small: bool) -> None:
    """Call once before models are loaded.

    Args:
        small: The model has a few million parameters: one thread is then as fast as several, and
            unlike them does not collapse when other programs use the cores. ``OMP_NUM_THREADS``
            overrules it.
    """
    with no_collection():
        import torch
        from transformers.utils import logging

        import_module("transformers.modeling_utils")  # what every model imports
    gc.freeze()  # later collections need not look through the libraries either

    logging.disable_progress_bar()
    if small and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
