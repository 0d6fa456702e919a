"""Settings of the process that only a command may choose: threads, other libraries' bars."""

from __future__ import annotations

import os


def prepare(small: bool) -> None:
    """Call once before models are loaded.

    Args:
        small: The model has a few million parameters: one thread is then as fast as several, and
            unlike them does not collapse when other programs use the cores. ``OMP_NUM_THREADS``
            overrules it.
    """
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    if small and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
