"""Sizes and time spans in formatting."""

from __future__ import annotations

import pytest

from turngym.leaderboard.site import formatting


@pytest.mark.parametrize(
    ("size", "said"),
    [(12, "12 bytes"), (1536, "1.5 KiB"), (64 * 2**20, "64 MiB"), (2**30, "1 GiB")],
)
def test_memory(size: int, said: str) -> None:
    assert formatting.memory(size) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (20, "20 seconds"),
        (60, "1 minute"),
        (5400, "1.5 hours"),
        (3600, "1 hour"),
        (172_800, "2 days"),
    ],
)
def test_lasting(seconds: float, said: str) -> None:
    assert formatting.lasting(seconds) == said
