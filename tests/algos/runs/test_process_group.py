"""Shares of rows, messages between processes, stops: everything that needs no second process."""

from __future__ import annotations

import ctypes
import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Forest
from turngym.algos.learner.batching.rows import Row
from turngym.algos.learner.parallel.team import Team, share_rows
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.learner.update_log import UpdateLog
from turngym.algos.runs import process_group
from turngym.algos.runs.interrupts import (
    AgreedInterrupt,
    agreed_stops,
    held_interrupts,
    noted_interrupts,
)
from turngym.algos.runs.process_group import (
    Channel,
    PeerEndedError,
    Ranks,
    join_ranks,
    shared_faults,
)
from turngym.algos.training.credit_step import shaped_by_first
from turngym.envs.core.errors import BadValueError, EngineFault

PLACES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(2, 40)), min_size=1, max_size=30
)


def row(group: int, tree: int, length: int) -> Row:
    one = np.zeros(1, np.int64)
    return Row(np.arange(length), one + length - 1, one, np.zeros(1, np.float32), one, group, tree)


@given(PLACES, st.integers(1, 5))
def test_every_row_is_computed_once_and_no_tree_is_cut(
    places: list[tuple[int, int, int]], world: int
) -> None:
    rows = [row(*place) for place in places]
    chosen = list(range(0, len(rows), 2))
    shares = share_rows(rows, chosen, world)
    assert len(shares) == world
    assert sorted(i for share in shares for i in share) == chosen
    whole_groups = len({rows[i].group for i in chosen}) >= world
    for unit in {(rows[i].group, 0 if whole_groups else rows[i].tree) for i in chosen}:
        holders = {
            rank
            for rank, share in enumerate(shares)
            for i in share
            if (rows[i].group, 0 if whole_groups else rows[i].tree) == unit
        }
        assert len(holders) == 1


@given(st.lists(st.integers(), max_size=20), st.integers(1, 4))
def test_shares_of_a_list_come_together_in_order(items: list[int], world: int) -> None:
    class Together(Channel):
        def everyone(self, mine: Any) -> list[Any]:
            return [list(Channel(rank, world).mine(items)) for rank in range(world)]

    for rank in range(world):
        channel = Together(rank, world)
        assert channel.in_order(channel.mine(items)) == items


def test_equal_groups_are_shared_out_evenly() -> None:
    rows = [row(g, 0, 10) for g in range(8)]
    assert [len(share) for share in share_rows(rows, range(8), 4)] == [2, 2, 2, 2]


def test_one_process_alone_has_everything() -> None:
    ranks, team = join_ranks("auto"), Team()
    assert ranks == Ranks()
    assert ranks.alone
    assert ranks.first
    assert team.alone
    assert ranks.learner.everyone("x") == ["x"]
    assert ranks.learner.from_first("x") == "x"
    policy = object()
    assert team.whole(policy) is policy


def test_half_a_launcher_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadValueError, match="RANK, MASTER_ADDR, MASTER_PORT is not set"):
        join_ranks("auto")


def test_one_card_for_all_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WORLD_SIZE", "2"), ("RANK", "0"), ("MASTER_ADDR", "x")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_PORT", "1")
    with pytest.raises(BadValueError, match="each on a device of its own"):
        join_ranks("cuda:1")


def test_an_engine_server_that_hangs_up_is_no_lost_process(monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, str] = {}
    store = SimpleNamespace(
        compare_set=lambda key, was, text: said.setdefault("fault", text),
        check=lambda keys: bool(said),
        get=lambda key: said["fault"].encode(),
    )
    torn = SimpleNamespace(
        is_initialized=lambda: True,
        get_rank=lambda: 1,
        group=SimpleNamespace(WORLD=None),
        distributed_c10d=SimpleNamespace(_get_default_store=lambda: store),
    )
    monkeypatch.setattr(process_group, "dist", torn)
    monkeypatch.setattr(process_group, "_RUNS", {})
    with pytest.raises(EngineFault, match="no server took"), shared_faults():
        raise EngineFault("engine http: no server took the weights. Connection reset by peer.")
    assert said["fault"].startswith("process 1 raised EngineFault: engine http: no server took")
    with pytest.raises(PeerEndedError, match="process 1 raised EngineFault"), shared_faults():
        raise RuntimeError("[pair.cc:534] Connection closed by peer [127.0.0.1]:1234")


def test_the_8_bit_optimiser_is_refused_for_several_processes() -> None:
    eight = LearnerSettings(optimizer="adamw8bit")
    Team().check(eight)
    Team(Channel(0, 2)).check(LearnerSettings())
    with pytest.raises(BadValueError, match="2 processes share"):
        Team(Channel(0, 2)).check(eight)


def test_metrics_of_processes_add_up() -> None:
    logs = []
    for at in range(2):
        log = UpdateLog()
        log.total_loss, log.parts = 1.0 + at, {"policy": 0.5, f"only_{at}": 2.0}
        log.differences = [np.full(2, at, np.float32)]
        logs.append(log)

    class Together(Channel):
        def everyone(self, mine: Any) -> list[Any]:
            return [
                (log.total_loss, dict(log.parts), log.differences, log._steps_of) for log in logs
            ]

    logs[0].merge(Together(0, 2))
    assert logs[0].total_loss == 3.0
    assert logs[0].parts == {"only_0": 2.0, "only_1": 2.0, "policy": 1.0}
    assert np.concatenate(logs[0].differences).tolist() == [0, 0, 1, 1]


def test_shapers_run_in_the_first_process_alone() -> None:
    forest, shaped = Forest.of([]), Forest.of([])

    class Second(Channel):
        def from_first(self, mine: Any) -> Any:
            assert mine is forest
            return shaped

    def never(forest: Forest) -> Forest:
        raise AssertionError

    assert shaped_by_first([never], forest, Second(1, 2)) is shaped
    assert shaped_by_first([lambda f: shaped], forest, Channel()) is shaped
    assert shaped_by_first([], forest, Second(1, 2)) is forest


def test_an_interrupt_of_several_processes_waits_for_all() -> None:
    class Pair(Channel):
        def everyone(self, mine: Any) -> list[Any]:
            return [mine, False]

    before = signal.getsignal(signal.SIGINT)
    with agreed_stops(Ranks(Pair(0, 2), Pair(0, 2))) as check:
        check()
        with held_interrupts():
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(AgreedInterrupt):
            check()
        with pytest.raises(KeyboardInterrupt) as insisted:  # in this process alone
            signal.raise_signal(signal.SIGINT)
        assert type(insisted.value) is KeyboardInterrupt
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_of_one_process_is_not_held_back() -> None:
    with agreed_stops(Ranks()) as check:
        check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


def test_a_second_signal_is_not_held() -> None:
    with noted_interrupts() as noted:
        signal.raise_signal(signal.SIGINT)
        assert noted.raised
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_that_a_callback_swallowed_comes_again_between_two_steps() -> None:
    """A compiler's callback did: the run went on until it was killed, a minute later."""
    swallow = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))
    with agreed_stops(Ranks()) as check:
        check()
        swallow()
        with pytest.raises(KeyboardInterrupt):
            check()
