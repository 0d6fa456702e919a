"""The cycle collector leaves what a run found alone, and only for as long as the run."""

from __future__ import annotations

import gc

import pytest

from turngym.algos.training.trainer import settled_heap


def test_left_alone_within_and_not_after() -> None:
    before, threshold = gc.get_freeze_count(), gc.get_threshold()
    with settled_heap():
        assert gc.get_freeze_count() > before
        assert gc.get_threshold() > threshold
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == threshold


def test_given_back_after_a_fault() -> None:
    with pytest.raises(RuntimeError), settled_heap():
        raise RuntimeError
    assert gc.get_freeze_count() == 0
