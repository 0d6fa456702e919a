"""Which GPUs there are, and whether a suite can run here."""

from __future__ import annotations

import os

from ...envs.errors import BadValueError
from .suite import Suite


def visible_gpus() -> list[str]:
    """GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    given = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    named = [name for name in given if name]
    return named[:count] if named else [str(i) for i in range(count)]


def check_gpus(suite: Suite, gpus: list[str]) -> None:
    """Refuse a suite that this machine is too small for.

    Raises:
        BadValueError: It needs a GPU, or one with more memory.
    """
    if not suite.gpu_memory_gb:
        return
    need = f"suite {suite.name!r} needs GPUs with {suite.gpu_memory_gb:g} GB"
    if not gpus:
        raise BadValueError(
            f"{need}; torch sees none on this machine. Run it on one that has them, or take "
            "--suite standard."
        )
    import torch

    for i in range(len(gpus)):
        found = torch.cuda.get_device_properties(i)
        memory = found.total_memory / 1024**3
        if memory < suite.gpu_memory_gb:
            raise BadValueError(
                f"{need}; {found.name} has {memory:.0f} GB. Leave it out of CUDA_VISIBLE_DEVICES, "
                "or take --suite standard."
            )
