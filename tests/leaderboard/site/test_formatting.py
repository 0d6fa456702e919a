"""Sizes, time spans, counts and the starts of texts in formatting."""

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


def test_counted() -> None:
    counts = [formatting.counted(n, "turn") for n in (0, 1, 2)]
    assert counts == ["0 turns", "1 turn", "2 turns"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("short\n as it is. ", "short as it is."),
        ("exactly twenty chars", "exactly twenty chars"),
        ("exactly twenty-one ch", "exactly twenty-one…"),
        ("a sentence. Then another", "a sentence. Then…"),
        ("the first one, the second", "the first one, the…"),
        ("one sentence of it. And", "one sentence of it…"),
        ("x" * 30, "x" * 19 + "…"),
    ],
)
def test_a_text_is_shortened_at_a_word(text: str, said: str) -> None:
    assert formatting.shorten(text, 20) == said
    assert len(said) <= 21
