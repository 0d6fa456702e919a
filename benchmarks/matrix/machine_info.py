"""Describe this machine and its GPUs, and check whether a suite can run on it."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ...agents.models.device_memory import card_share, share_of
from ...algos.runs.provenance import versions
from ...envs.core.errors import BadValueError
from ...envs.core.plugins import plugin_versions
from ...envs.utils.system import count_cores, memory_bytes
from .cell import CellResult, Machine
from .suite import Suite

PLUGIN = "plugin "
"""Begins the names of plugins among a machine's versions, which are hashes of their source."""


def this_machine(device: str = "cpu") -> Machine:
    """Describe this machine and its software.

    Args:
        device: The device that was used; a GPU is only named if it was used.
    """
    import torch

    found = versions([], 0)
    packages = {name: version for name, version in found["packages"].items() if version}
    commit = found["git_commit"]  # 40 signs, and a mark where files differ
    on_gpu = device != "cpu" and torch.cuda.is_available()
    return Machine(
        system=platform.platform(),
        processor=processor(),
        cores=count_cores(),
        memory_gb=memory_gb(),
        gpu=torch.cuda.get_device_name(0) if on_gpu else "",
        threads=torch.get_num_threads(),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        versions={
            "python": str(found["python"]),
            **packages,
            **({"git": commit[:12] + commit[40:]} if commit else {}),
            **{f"{PLUGIN}{name}": digest for name, digest in found["plugins"].items()},
        },
    )


def other_plugins(results: Iterable[CellResult]) -> list[str]:
    """Return how many results were computed with other source of the plugins that are loaded.

    Returns:
        A sentence for each such plugin.
    """
    before: Counter[str] = Counter()
    now = plugin_versions()
    for result in results:
        known = {} if result.machine is None else result.machine.versions
        before.update(n for n, digest in now.items() if known.get(PLUGIN + n, digest) != digest)
    kept = (
        "than there is now, and kept: a digest holds names and settings alone. After a change that "
        "matters give the suite another version, and another folder."
    )
    return [
        f"{count} finished cell{'s were' if count > 1 else ' was'} computed with another {name} "
        f"{kept}"
        for name, count in sorted(before.items())
    ]


def processor() -> str:
    """Return the processor's name as reported by the system."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def memory_gb() -> float:
    """Return the machine's memory; 0 where the system does not tell."""
    return round(memory_bytes() / 1024**3, 1)


def visible_gpus() -> list[str]:
    """Return the GPUs visible to this process, named as in ``CUDA_VISIBLE_DEVICES``."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    given = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    named = [name for name in given if name]
    return named[:count] if named else [str(i) for i in range(count)]


def check_gpus(suite: Suite, gpus: list[str], workers: int | None = None) -> None:
    """Check that this machine has the GPUs that a suite needs.

    Args:
        suite: The suite.
        gpus: Those that are visible.
        workers: Processes that share them; None is one on each.

    Raises:
        BadValueError: There is no GPU, or its memory, or a worker's share of it, is too small.
    """
    if not suite.gpu_memory_gb:
        return
    need = f"suite {suite.name!r} needs GPUs with {suite.gpu_memory_gb:g} GB"
    if not gpus:
        raise BadValueError(
            f"{need}; torch sees none on this machine. Run on a machine with GPUs, or use "
            "--suite standard."
        )
    import torch

    for i in range(len(gpus)):
        found = torch.cuda.get_device_properties(i)
        memory = found.total_memory / 1024**3 * card_share()
        beside = max(1, len(range(i, workers or 1, len(gpus))))
        if memory >= suite.gpu_memory_gb > memory * share_of(1 / beside):
            most = max(
                n for n in range(1, beside) if memory * share_of(1 / n) >= suite.gpu_memory_gb
            )
            raise BadValueError(
                f"{need} for each worker; {found.name} has {memory:.0f} GB for {beside} of them. "
                f"Give at most --workers {most * len(gpus)}."
            )
        if memory < suite.gpu_memory_gb:
            raise BadValueError(
                f"{need}; {found.name} has {memory:.0f} GB. Leave it out of CUDA_VISIBLE_DEVICES, "
                "or use --suite standard."
            )
