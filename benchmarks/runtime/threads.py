"""Settings of a process that only a command may choose: threads, other libraries' bars, its end."""

from __future__ import annotations

import atexit
import gc
import os
from importlib import import_module

from ...algos.learner.freed_memory import keep_memory
from ...envs.core.plugins import load_inherited
from ...envs.utils.garbage_collection import uncollected
from ...envs.utils.system import count_cores
from ...leaderboard.verification.process_limits import die_with_parent


def prepare(small: bool) -> None:
    """Call once before models are loaded.

    Args:
        small: The model has a few million parameters: one thread is then as fast as several, and
            unlike them does not collapse when other programs use the cores. Larger ones take no
            more than a container has processor time for. ``OMP_NUM_THREADS`` overrules both. What
            larger models import is left until something asks for it.
    """
    with uncollected():
        import torch

        if not small:
            import_module("transformers.modeling_utils")  # what every large model imports
            import_module("transformers.utils.logging").disable_progress_bar()
    atexit.register(gc.freeze)  # the last collection would take a second
    keep_memory()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), 1 if small else count_cores()))


def begin_worker(threads: int) -> None:
    """Call first in a process of a pool, which would wait for work for ever without its parent.

    Args:
        threads: Of torch, unless ``OMP_NUM_THREADS`` says another number.
    """
    die_with_parent()
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", threads)))
    load_inherited()


def prepare_for(model: str) -> None:
    """Call once before the model of a folder or hub name is loaded, see :func:`prepare`."""
    from ...agents.models.loading import is_small

    prepare(small=is_small(model))
