"""The cycle collector leaves what a run found alone, and only for as long as the run."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from turngym.agents.models.random_init import blank_model
from turngym.algos import Budget, EnvConfig, TrainConfig, make_recipe, train
from turngym.algos.training.trainer import Trainer
from turngym.benchmarks.cli import main
from turngym.benchmarks.runtime import threads
from turngym.envs.core.errors import TurngymError
from turngym.envs.utils import garbage_collection
from turngym.envs.utils.garbage_collection import freeze_for_good, settled_heap


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has frozen nothing; all other tests run in one that has."""
    monkeypatch.setattr(garbage_collection, "_frozen_for_good", False)
    gc.unfreeze()
    yield
    gc.freeze()


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


def test_two_runs_side_by_side_leave_the_threshold_as_the_first_one_found_it() -> None:
    before = gc.get_threshold()
    with ExitStack() as one, ExitStack() as other:
        one.enter_context(settled_heap())
        other.enter_context(settled_heap())
        one.close()  # in threads of one process they end in any order
        assert gc.get_threshold() > before, "the other one still runs"
    assert gc.get_threshold() == before


def test_what_is_frozen_for_good_stays_so_and_runs_freeze_nothing_more() -> None:
    freeze_for_good()
    before = gc.get_freeze_count()
    assert before > 0
    with settled_heap():
        assert gc.get_threshold() > (700, 10, 10)
        kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
        assert gc.get_freeze_count() <= before  # some of it may have died meanwhile
    assert gc.get_freeze_count() <= before
    del kept


def bandit_config(model: Path, seed: int) -> TrainConfig:
    return TrainConfig(
        env=EnvConfig(id="Bandit-v0", settings={}),
        model=str(model),
        recipe=make_recipe("grpo", {"groups_per_step": 2, "rollout.n": 2}, small=True),
        budget=Budget(steps=1),
        max_tokens=3,
        seed=seed,
        device="cpu",
    )


def test_a_run_collects_again_once_it_is_built_and_keeps_no_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank_model(gym.make("Bandit-v0"), tmp_path / "model")
    engines: list[weakref.ref[Any]] = []
    seen: list[tuple[bool, bool]] = []
    run, built = Trainer.run, Trainer.__init__

    def watched_run(self: Trainer) -> Any:
        engines.append(weakref.ref(self.engine))
        seen.append((gc.isenabled(), gc.get_freeze_count() > 0))
        return run(self)

    def watched_build(self: Trainer, *given: Any, **options: Any) -> None:
        assert not gc.isenabled(), "what is built stays: there is nothing to look for"
        assert all(engine() is None for engine in engines), "the memory of earlier runs is free"
        built(self, *given, **options)

    monkeypatch.setattr(Trainer, "run", watched_run)
    monkeypatch.setattr(Trainer, "__init__", watched_build)
    for seed in range(2):
        train(bandit_config(tmp_path / "model", seed), tmp_path / str(seed))
        assert gc.isenabled()
    assert seen == [(True, True)] * 2


class PressesCtrlC:
    """Ctrl-C while the collector runs, as part of a cycle; Python runs this where it frees it."""

    def __init__(self) -> None:
        self.cycle = self

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_an_earlier_run_is_collected_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank_model(gym.make("Bandit-v0"), tmp_path / "model")
    kept: list[Trainer] = []
    run = Trainer.run

    def kept_run(self: Trainer) -> Any:
        kept.append(self)
        return run(self)

    monkeypatch.setattr(Trainer, "run", kept_run)
    train(bandit_config(tmp_path / "model", 0), tmp_path / "first")
    gc.disable()  # else it may come upon the cycle by itself, before the run collects
    try:
        PressesCtrlC()
        with pytest.raises(KeyboardInterrupt):
            train(bandit_config(tmp_path / "model", 1), tmp_path / "second")
    finally:
        gc.enable()
    assert len(kept) == 1


def test_a_run_that_cannot_begin_leaves_the_collector_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(TurngymError):
        train(bandit_config(tmp_path / "nothing", 0), tmp_path / "run")
    assert gc.isenabled()


def test_a_command_leaves_the_process_that_calls_it_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A notebook may call it: what is small models' alone must not stay for its next cells."""
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    before, seen = dict(os.environ), {}

    def run(*words: Any) -> None:
        threads.prepare(small=True)
        seen.update(os.environ)

    monkeypatch.setattr(main, "run_command", run)
    assert main.main(["train"]) == 0
    assert (seen["TOKENIZERS_PARALLELISM"], seen["GOMP_SPINCOUNT"]) == ("false", "7")
    assert dict(os.environ) == before
    assert gc.get_freeze_count() == 0
