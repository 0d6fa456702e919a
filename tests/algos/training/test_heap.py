"""The cycle collector leaves what a run found alone, and only for as long as the run."""

from __future__ import annotations

import gc

import pytest

from turngym.algos.training.trainer import settled_heap


def test_left_alone_within_and_not_after() -> None:
    before, threshold = gc.get_freeze_count(), gc.get_threshold()
    with settled_heap() as settle:
        assert not gc.isenabled(), "what is built stays: there is nothing to look for"
        settle()
        assert gc.isenabled()
        assert gc.get_freeze_count() > before
        assert gc.get_threshold() > threshold
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == threshold


def test_given_back_after_a_fault() -> None:
    with pytest.raises(RuntimeError), settled_heap():
        raise RuntimeError
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_it_stays_off_where_the_caller_had_it_off() -> None:
    gc.disable()
    try:
        with settled_heap() as settle:
            settle()
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
