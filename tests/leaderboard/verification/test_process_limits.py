"""Limits of processes on systems that refuse some of them."""

from __future__ import annotations

import sys

import pytest

from turngym.leaderboard.verification.process_limits import bound_memory

resource = pytest.importorskip("resource")


def test_a_system_that_refuses_every_bound_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(what: int, limits: tuple[int, int]) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(ValueError, match="exceeds"):
        bound_memory(2**40)
    monkeypatch.setattr(sys, "platform", "darwin")
    bound_memory(2**40)
