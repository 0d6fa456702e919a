"""Ways to close a process off, for tests: full protection, and what stands in for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from turngym.envs.tools.python import process, protections
from turngym.envs.tools.python.process import Ended, Limits

FULL = ("namespaces", "seccomp")
STAND_IN = ("landlock", "seccomp")
QUICK = Limits(timeout_s=20.0, memory_bytes=256 << 20, disk_bytes=4 << 20)


def need(layers: Sequence[str]) -> None:
    """Skip, with the machine's own reason, where a layer cannot be put up."""
    for layer in layers:
        if fault := protections.find_fault(layer):
            pytest.skip(f"{layer}: {fault}")


class Sandbox:
    """Runs code behind some layers, and knows which processes it started."""

    def __init__(self, layers: Sequence[str], patch: pytest.MonkeyPatch) -> None:
        self.layers = layers
        self.sessions: list[int] = []
        launch = process._launch

        def noted(*given):
            started = launch(*given)
            self.sessions.append(started.pid)
            return started

        patch.setattr(process, "_launch", noted)

    def __call__(self, code: str, **limits: float) -> Ended:
        return process.run_sandboxed(code, self.layers, Limits(**{**vars(QUICK), **limits}))

    def out(self, code: str, **limits: float) -> str:
        """Stdout of code that ends well."""
        ended = self(code, **limits)
        assert (ended.status, ended.why) == (0, "itself"), ended.err.decode()
        return ended.out.decode()

    def error(self, code: str, **limits: float) -> str:
        """The last line of stderr of code that fails."""
        ended = self(code, **limits)
        assert ended.status > 0, ended
        return ended.err.decode().strip().splitlines()[-1]

    def left_alive(self) -> list[int]:
        """Processes of the sessions that were started."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[3]) in self.sessions and fields[0] != "Z":
                found.append(int(stat.parent.name))
        return found
