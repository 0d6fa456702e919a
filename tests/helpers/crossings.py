"""Stand-ins for what a GPU has: copies to it and back that are counted, and graphs that replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from turngym.agents.engines import transfers
from turngym.agents.engines.local.decode_graphs import Recorder


class Waits(TorchDispatchMode):
    """Counts how often the host asks for a number, which on a GPU it has to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@dataclass
class Crossings:
    """Copies from main memory to the device and back."""

    there: int = 0
    back: int = 0

    @classmethod
    def recorded(cls, monkeypatch: pytest.MonkeyPatch) -> Crossings:
        """Let the main memory be a device that arrays cross to; return what counts the copies."""
        seen = cls()

        def upload(host: torch.Tensor, _: torch.device, into: torch.Tensor | None) -> torch.Tensor:
            seen.there += 1
            if into is None:
                return host.clone()
            into[: len(host)].copy_(host)
            return into

        def download(found: torch.Tensor) -> Any:
            seen.back += 1
            return found.clone().numpy()

        monkeypatch.setattr(transfers, "packs", lambda _: True)
        monkeypatch.setattr(transfers, "pinned_bytes", lambda n: torch.empty(n, dtype=torch.uint8))
        monkeypatch.setattr(transfers, "upload", upload)
        monkeypatch.setattr(transfers, "download", download)
        return seen


@dataclass
class Graphs:
    """Captures work by remembering it: a replay does it again over the same memory.

    Attributes:
        addresses: Where everything is that captured work reads beside its arrays.
        captured: Times that something was captured.
        replayed: Times that something was replayed.
    """

    addresses: Callable[[], list[int]]
    captured: int = 0
    replayed: int = 0

    def recorder(self) -> Recorder:
        def record(work: Callable[[], torch.Tensor]) -> Any:
            self.captured += 1
            out, at = work().clone().fill_(float("nan")), self.addresses()

            def replay() -> None:
                assert self.addresses() == at  # a graph reads where things were
                self.replayed += 1
                out.copy_(work())

            return replay, out

        return record
