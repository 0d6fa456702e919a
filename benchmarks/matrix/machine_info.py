"""What a result was computed with."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from ...algos.versions import versions
from .cell import Machine


def this_machine(device: str = "cpu") -> Machine:
    """This machine and the software on it.

    Args:
        device: What was computed on; a GPU is only named where it was used.
    """
    import torch

    found = versions([], 0)
    packages = {name: version for name, version in found["packages"].items() if version}
    commit = found["git_commit"]  # 40 signs, and a mark where files differ
    on_gpu = device != "cpu" and torch.cuda.is_available()
    return Machine(
        system=platform.platform(),
        processor=processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=memory_gb(),
        gpu=torch.cuda.get_device_name(0) if on_gpu else "",
        threads=torch.get_num_threads(),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        versions={
            "python": str(found["python"]),
            **packages,
            **({"git": commit[:12] + commit[40:]} if commit else {}),
        },
    )


def processor() -> str:
    """Name of the processor, as the system tells it."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def memory_gb() -> float:
    """Memory of the machine."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return round(size / 1024**3, 1)
