"""How a crawl is scored."""

from __future__ import annotations

import pytest

from turngym.envs.paper_crawler.scores import recall_and_precision, select_rewarded


def test_only_new_papers_that_are_wanted_or_selected_count() -> None:
    """Example 4 of PaSa: alpha 1.5, cost 0.1."""
    wanted = {"p3", "p5"}
    scores = {"p1": 0.99, "p3": 0.20, "p4": 0.81, "p5": 0.70, "p6": 0.50}
    actions = (["p1", "p3", "p4", "p6"], ["p4", "p5", "p3"], ["p5"])
    for given, rewards in ((scores, [2.9, 1.4, -0.1]), (None, [1.4, 1.4, -0.1])):
        queue = ["p1", "p2"]
        for found, reward in zip(actions, rewards, strict=True):
            hits = select_rewarded(found, queue, wanted, given)
            assert 1.5 * len(hits) - 0.1 == pytest.approx(reward)
            queue += found


def test_a_repeated_result_counts_once() -> None:
    assert select_rewarded(["a", "a"], [], {"a"}) == ["a"]


def test_recall_and_precision() -> None:
    """Example 11."""
    scores = {"x": 0.9, "a": 0.8, "b": 0.55, "y": 0.52, "c": 0.3, "z": 0.1}
    got = recall_and_precision(scores, {"a", "b", "c", "d"}, at=(2,))
    assert got == {"crawler_recall": 0.75, "precision": 0.5, "recall": 0.5, "recall_at_2": 0.25}


def test_nothing_wanted_or_found_is_zero() -> None:
    assert set(recall_and_precision({}, {"a"}).values()) == {0.0}
    assert set(recall_and_precision({"a": 0.1}, set()).values()) == {0.0}
