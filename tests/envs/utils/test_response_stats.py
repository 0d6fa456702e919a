"""Phrases that take something back, counted."""

from __future__ import annotations

import pytest

from turngym.envs.utils.response_stats import (
    compute_response_metrics,
    count_self_corrections,
    count_waits,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Wait, that gives 7.", 1),
        ("wait wait. Hold on, let me re-check.", 4),
        ("Please wait for the parcel; the waiter waits.", 0),
        ("I have to wait. We wait until noon; hold on to it.", 0),
        ("Actually, I made a small mistake. On second thought, it is 8.", 3),
        ("He actually made a cake. That is right.", 0),
        ("That's wrong; scratch that. Hmm.", 3),
        ("Let me double-check and let me recalculate.", 2),
        ("Correction: 5. I was wrong", 2),
        ("", 0),
    ],
)
def test_phrases(text: str, count: int) -> None:
    assert count_self_corrections([text]) == count
    assert count_self_corrections([text, text]) == 2 * count


def test_waits_are_the_plain_word() -> None:
    assert count_waits(["Wait, please wait for it.", "waiting", "WAIT"]) == 3


def test_measures_of_what_was_written() -> None:
    assert compute_response_metrics(["one two", "Wait, three"]) == {
        "response_chars": 18.0,
        "response_words": 4.0,
        "waits": 1.0,
        "self_corrections": 1.0,
    }
    assert set(compute_response_metrics([]).values()) == {0.0}
