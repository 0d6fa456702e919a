"""Which layers of protection this machine offers, found by putting each up once."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache

from ...core.errors import BadValueError, EnvFault
from .filters import MACHINES
from .process import Limits, run_sandboxed

REQUIRED: Mapping[str, str] = {
    "namespaces": (
        "a network of its own without any device, a file system of its own, and processes that "
        "end with it"
    ),
    "seccomp": "refusal of sockets, new processes, tracing and all calls that code need not make",
}
"""The layers of full protection, and what each gives."""
SUBSTITUTES: Mapping[str, str] = {"landlock": "namespaces"}
"""A layer that does part of another's work: landlock closes the files, and nothing else."""
_TRIAL = Limits(timeout_s=30.0, memory_bytes=1 << 29, disk_bytes=1 << 20)


def choose_layers() -> tuple[str, ...]:
    """Return the layers to put up here: the required ones that work, or their substitutes."""
    absent = find_missing()
    found = [name for name in REQUIRED if name not in absent]
    substitutes = [name for name, of in SUBSTITUTES.items() if of in absent]
    found += [name for name in substitutes if find_fault(name) is None]
    return tuple(found)


def find_missing() -> dict[str, str]:
    """Return the required layers that this machine refuses, and why."""
    if _find_fault(tuple(REQUIRED)) is None:
        return {}
    faults = {name: find_fault(name) for name in REQUIRED}
    return {name: fault for name, fault in faults.items() if fault is not None}


def find_fault(layer: str) -> str | None:
    """Return why a layer cannot be put up on this machine; None when it can."""
    return _find_fault((layer,))


def describe_missing(absent: Mapping[str, str]) -> str:
    """Describe missing layers: what each would give, why it is missing, what stands in."""
    parts = []
    for name, fault in absent.items():
        stand_in = [s for s, of in SUBSTITUTES.items() if of == name and s in choose_layers()]
        closed = f"; {stand_in[0]} closes the files in its place" if stand_in else ""
        parts.append(f"{name} ({REQUIRED[name]}): {fault}{closed}")
    return "; ".join(parts)


def find_other_system() -> str | None:
    """Return why no process of the tool can start on this system; None on Linux."""
    return None if sys.platform.startswith("linux") else f"needs Linux, this is {sys.platform}"


@cache
def _find_fault(names: tuple[str, ...]) -> str | None:
    if other := find_other_system():
        return other
    import os

    if "seccomp" in names and (machine := os.uname().machine) not in MACHINES:
        return f"system calls are known for {', '.join(MACHINES)}, this is {machine}"
    try:
        ended = run_sandboxed("print(1)", names, _TRIAL)
    except (EnvFault, BadValueError) as fault:
        return str(fault)
    if (ended.status, bytes(ended.out)) != (0, b"1\n"):
        said = ended.err.decode("utf-8", "replace").strip()[-300:]
        return f"code does not run behind it: {ended.why}, status {ended.status}, {said!r}"
    return None
