"""The Python tool: runs snippets and returns their output."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from ...core.errors import BadValueError, EnvFault
from ...core.settings import check_integer, check_number
from ...utils.system import count_cores
from . import protections
from .process import Ended, Limits, run_sandboxed

NO_OUTPUT = "The code ran and printed nothing. Print what you want to see."
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]{6,16}\b")
_MIB = 1 << 20


class PythonResult(NamedTuple):
    """The result of one snippet.

    Attributes:
        text: What the model sees: stdout of code that ended well, else the end of stderr.
        ok: The code ended by itself, with exit status 0.
    """

    text: str
    ok: bool


@dataclass(frozen=True, kw_only=True)
class PythonTool:
    """Runs Python snippets, each in a process of its own that can reach nothing.

    As ``serve`` of a :class:`~turngym.envs.core.episode.Call` it runs the snippets of many
    episodes side by side. Code sees the standard library alone (no installed packages), UTC, an
    empty temporary folder as its working directory that vanishes with it, and no input. The value
    of a last bare expression is printed. Memory addresses in the output (``<… at 0x…>``) are
    blanked and strings hash alike, so code without clock or chance gives the same text again.

    Full protection is namespaces and a system call filter, see
    :data:`~turngym.envs.tools.python.protections.REQUIRED`; both work without being root.

    Attributes:
        timeout_s: Seconds that the code may run, on the clock; the same on the processor.
        memory_mb: Address space in MiB; past it Python raises MemoryError.
        disk_mb: MiB in the temporary folder.
        max_output_chars: Characters of output that are shown; more is cut, with a notice.
        allow_weaker: Run on a Linux machine that lacks a protection too; a warning says which.

    Raises:
        BadValueError: A value out of range, a protection that this machine lacks, or a system that
            is not Linux.
    """

    timeout_s: float = 10.0
    memory_mb: int = 512
    disk_mb: int = 16
    max_output_chars: int = 2000
    allow_weaker: bool = False

    def __post_init__(self) -> None:
        check_number("timeout_s", self.timeout_s, "PythonTool", min=0.1, max=3600)
        check_integer("memory_mb", self.memory_mb, "PythonTool", min=64, max=1 << 20)
        check_integer("disk_mb", self.disk_mb, "PythonTool", min=1, max=1 << 10)
        check_integer("max_output_chars", self.max_output_chars, "PythonTool", min=100, max=500_000)
        if not isinstance(self.allow_weaker, bool):
            raise BadValueError(
                f"PythonTool: allow_weaker is {self.allow_weaker!r}; expected True or False."
            )
        if other := protections.find_other_system():  # where weaker protection is none at all
            raise BadValueError(
                f"PythonTool {other}; run it in a virtual machine or a container of Linux."
            )
        if not (absent := protections.find_missing()):
            return
        lacking = protections.describe_missing(absent)
        if not self.allow_weaker:
            raise BadValueError(
                f"PythonTool: this machine lacks {lacking}. Run it where the kernel allows this, "
                "or accept weaker protection with allow_weaker=True."
            )
        warnings.warn(f"PythonTool runs without {lacking}.", RuntimeWarning, stacklevel=3)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the protections that this machine lacks."""
        return tuple(protections.find_missing())

    def __call__(self, requests: Sequence[str]) -> list[PythonResult | EnvFault]:
        """Return one result per snippet; a fault for one whose process failed to start."""
        for request in requests:
            if not isinstance(request, str):
                raise BadValueError(
                    f"PythonTool: a request is a {type(request).__name__}; expected code as text."
                )
        if len(requests) < 2:
            return [self._result(request) for request in requests]
        with ThreadPoolExecutor(min(len(requests), count_cores())) as pool:
            return list(pool.map(self._result, requests))

    def _result(self, code: str) -> PythonResult | EnvFault:
        limits = Limits(
            timeout_s=float(self.timeout_s),
            memory_bytes=self.memory_mb * _MIB,
            disk_bytes=self.disk_mb * _MIB,
        )
        # never what a look at the machine gave: a tool that came here in a pickle must fail instead
        layers = protections.choose_layers() if self.allow_weaker else tuple(protections.REQUIRED)
        try:
            ended = run_sandboxed(code, layers, limits)
        except EnvFault as fault:
            return fault
        return PythonResult(self._text(ended), ended.why == "itself" and ended.status == 0)

    def _text(self, ended: Ended) -> str:
        if ended.why == "timeout" or -ended.status == signal.SIGXCPU:
            return f"The code was stopped: it ran longer than {self.timeout_s:g} seconds."
        out, err = _read(ended.out), _read(ended.err)
        if ended.why == "output":
            return f"{out[: self.max_output_chars]}\n[The code was stopped: too much output.]"
        if ended.status == 0:
            return self._head(out) if out.strip() else NO_OUTPUT
        if ended.status < 0:
            return f"The code was killed by {_signal(-ended.status)}."
        return self._tail(err) if err.strip() else f"The code ended with status {ended.status}."

    def _head(self, text: str) -> str:
        if (over := len(text) - self.max_output_chars) <= 0:
            return text
        return f"{text[: self.max_output_chars]}\n[{over} more characters were cut.]"

    def _tail(self, text: str) -> str:
        if (over := len(text) - self.max_output_chars) <= 0:
            return text
        return f"[{over} characters before this were cut.]\n{text[-self.max_output_chars :]}"


def _read(output: bytearray) -> str:
    text = output.decode("utf-8", "replace").replace("\r\n", "\n").rstrip()
    return _ADDRESS.sub("0x…", text)


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
