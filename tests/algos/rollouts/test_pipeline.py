"""Playing ahead of the updates: which weights play what, equal numbers, restarts, refusals."""

from __future__ import annotations

import _thread
import asyncio
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.training_runs import (
    Killed,
    config,
    final_weights,
    kill_after,
    numbers,
    run,
    same,
    small,
)

from turngym.agents.engines.base import EngineStats
from turngym.algos.core.forest import Forest, Group
from turngym.algos.recipes import make_recipe
from turngym.algos.recipes.grpo import grpo
from turngym.algos.rollouts.collect import RolloutBatch
from turngym.algos.rollouts.pipeline import (
    AsyncPipeline,
    Rollouts,
    SyncPipeline,
    load_pending,
    save_pending,
)
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget
from turngym.algos.training.engines import check_overlap
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, DataError


class Weights:
    """An engine that knows nothing but its version."""

    shares_weights = False

    def __init__(self) -> None:
        self.version = 0
        self.model: Any = None

    def sync(self, model: Any, version: int) -> None:
        self.model, self.version = model, version

    def rest(self) -> None:
        """Nothing."""


def rollouts(name: str = "a", kept: bool = True) -> Rollouts:
    groups = [Group(f"{name}/{i}", "train/0") for i in range(3)]
    forest = Forest.of(groups)
    played = RolloutBatch(
        all=forest, trained=forest if kept else Forest.of(groups[1:]), rounds=2, filtered=not kept
    )
    stats = EngineStats(prompt_tokens=8, cached_tokens=6, sampled_tokens=3)
    return Rollouts(played=played, warning="word", stats=stats, seconds={"rollout": 0.5})


def test_an_interrupt_inside_a_task_does_not_come_up_again_at_the_end() -> None:
    async def interrupted() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def play(step: int) -> Any:
        async def one() -> None:
            await asyncio.gather(interrupted(), asyncio.sleep(10))

        await asyncio.gather(one(), asyncio.sleep(10))

    pipeline = SyncPipeline(play, Weights())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        pipeline.take(0, None)
    pipeline.close()
    pipeline.close()


def test_a_signal_as_asyncio_begins_to_handle_it_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """asyncio forgets that it came, and says only that the work was cancelled."""
    install = signal.signal
    former = install(signal.SIGINT, signal.default_int_handler)

    def and_it_comes(number: int, handler: Any) -> Any:
        before = install(number, handler)
        if handler is not signal.default_int_handler:
            signal.raise_signal(number)
        return before

    async def play(step: int) -> Any:
        await asyncio.sleep(10)

    pipeline = SyncPipeline(play, Weights())  # type: ignore[arg-type]
    monkeypatch.setattr(signal, "signal", and_it_comes)
    try:
        with pytest.raises(KeyboardInterrupt):
            pipeline.take(0, None)
    finally:
        install(signal.SIGINT, former)
    pipeline.close()


@pytest.mark.parametrize("wakes", [True, False])
def test_inside_a_running_event_loop_as_in_a_notebook(wakes: bool) -> None:
    """Also where a signal comes just before the wait that it should end, and does not wake it."""
    ended: list[int] = []

    main = threading.main_thread().ident
    assert main is not None

    async def play(step: int) -> Rollouts:
        try:
            if step == 2:
                if wakes:
                    signal.pthread_kill(main, signal.SIGINT)
                else:
                    _thread.interrupt_main()
                await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.3)  # closing what was open takes a while
            ended.append(step)
        return rollouts(str(step))

    async def cell() -> None:
        pipeline = SyncPipeline(play, Weights())  # type: ignore[arg-type]
        assert pipeline.take(1, None).played.all.groups[0].uid == "1/0"
        former = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                pipeline.take(2, None)
        finally:
            signal.signal(signal.SIGINT, former)
        assert ended == [1, 2]  # what was interrupted has ended
        pipeline.close()
        pipeline.close()

    asyncio.run(cell())


@pytest.mark.parametrize("max_lag", [0, 1, 2, 3])
def test_each_step_is_played_with_weights_of_exactly_the_allowed_age(max_lag: int) -> None:
    engine = Weights()
    seen: dict[int, tuple[int, Any]] = {}

    async def play(step: int) -> Rollouts:
        await asyncio.sleep(0.002 * (step % 3))
        seen[step] = engine.version, engine.model
        return rollouts()

    stage = AsyncPipeline(play, engine, max_lag)  # type: ignore[arg-type]
    learner = SimpleNamespace(updates=0)
    for step in range(1, 8):
        stage.take(step, 7)
        learner.updates = step  # changes in place, as weights do
        stage.hand_over(step, learner)
    newest = stage.call(lambda: _version(engine))
    stage.close()
    assert newest == 7
    assert {s: v for s, (v, _) in seen.items()} == {s: max(0, s - 1 - max_lag) for s in range(1, 8)}
    if max_lag > 1:  # what was queued is a copy: later updates do not reach it
        assert all(model.updates == version for version, model in seen.values() if model)


@pytest.mark.parametrize("samples", [True, False])
def test_weights_reach_an_engine_that_does_not_sample_for_an_evaluation_alone(
    samples: bool,
) -> None:
    engine, seen = Weights(), []

    async def play(step: int) -> Rollouts:
        seen.append(engine.version)
        return rollouts()

    stage = SyncPipeline(play, engine, samples=samples)  # type: ignore[arg-type]
    for step in range(1, 4):
        stage.take(step, 4)
        stage.hand_over(step, step)
    assert seen == ([0, 1, 2] if samples else [0, 0, 0])
    assert stage.call(lambda: _version(engine)) == 3
    stage.take(4, 4)
    stage.close()
    assert (engine.version, engine.model) == (3, 3)


async def _version(engine: Weights) -> int:
    return engine.version


def test_nothing_is_begun_after_the_last_step() -> None:
    begun: list[int] = []

    async def play(step: int) -> Rollouts:
        begun.append(step)
        return rollouts()

    stage = AsyncPipeline(play, Weights(), 3)  # type: ignore[arg-type]
    stage.take(1, 2)
    stage.take(2, 2)
    assert list(stage.pending(0)) == [1, 2]  # no update has used them
    stage.hand_over(2, None)
    assert list(stage.pending(0)) == [1]
    assert stage.pending(2) == {}
    stage.close()
    assert begun == [1, 2]


def test_after_a_failure_nothing_runs_with_wrong_weights() -> None:
    begun: list[int] = []

    class Broken(Weights):
        def sync(self, model: Any, version: int) -> None:
            raise RuntimeError("no weights")

    async def play(step: int) -> Rollouts:
        begun.append(step)
        return rollouts()

    stage = AsyncPipeline(play, Broken(), 1)  # type: ignore[arg-type]
    stage.take(1, None)
    stage.hand_over(1, None)
    with pytest.raises(RuntimeError, match="no weights"):
        stage.take(2, None)
    with pytest.raises(RuntimeError, match="no weights"):
        stage.take(3, None)
    stage.close()
    assert begun == [1, 2]


def test_closing_cancels_what_is_being_played() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def play(step: int) -> Rollouts:
        if step == 1:
            return rollouts()
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    stage = AsyncPipeline(play, Weights(), 2)  # type: ignore[arg-type]
    stage.take(1, None)
    assert begun.wait(20)
    assert list(stage.pending(0)) == [1]  # what the newest weights play is not waited for
    assert stage.unfinished(0) == []
    assert stage.unfinished(1) == [2, 3]
    stage.close()
    assert cancelled.is_set()


def test_closing_just_as_a_step_ends_is_closing() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def play(step: int) -> Rollouts:
        loops.append(asyncio.get_running_loop())
        return rollouts()

    stage = AsyncPipeline(play, Weights(), 1)  # type: ignore[arg-type]
    lock, seen = stage._lock, threading.Event()

    class Late:
        """The worker is at the end of its step when it is closed."""

        def __enter__(self) -> None:
            if threading.current_thread() is not threading.main_thread():
                if loops:
                    seen.wait(20)
                lock.acquire()
                return
            until = time.monotonic() + 1
            while not (loops and loops[0].is_closed()) and time.monotonic() < until:
                time.sleep(0.01)
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            if threading.current_thread() is threading.main_thread():
                seen.set()

    stage._lock = Late()  # type: ignore[assignment]
    stage._plays[1] = stage._submit(lambda: stage._timed(1))
    stage.close()
    assert stage._plays[1].done()


# ---------------------------------------------------------------- whole runs


def test_a_thread_without_lag_gives_the_numbers_of_the_plain_run(
    tiny_model: Path, tmp_path: Path
) -> None:
    run(config(tiny_model), tmp_path / "plain")
    threaded = config(tiny_model, max_lag=0)
    run(threaded, tmp_path / "thread")
    assert numbers(tmp_path / "plain") == numbers(tmp_path / "thread")
    assert same(final_weights(tmp_path / "plain"), final_weights(tmp_path / "thread"))


def test_lag_is_counted_and_bounded(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model, max_lag=1, importance_cap=2.0)
    run(setup, tmp_path)
    rows = [r for r in read_metrics(tmp_path / "metrics.jsonl") if "update/loss" in r]
    assert [r["rollout/lag_max"] for r in rows] == [0.0, 1.0, 1.0, 1.0]
    assert (
        rows[0]["update/logprob_diff_mean_nats"] < 1e-4 < rows[1]["update/logprob_diff_mean_nats"]
    )
    assert rows[0]["update/importance_mean"] == pytest.approx(1.0, abs=1e-4)
    assert rows[0]["engine/prefix_hit_frac"] > 0.3  # three chains of one prompt
    assert rows[0]["engine/read_again_frac"] < 0.2
    assert all("time/wait_s" in r for r in rows)
    (ahead,) = tmp_path.glob("checkpoints/step-000004/trainer/ahead")
    assert not list(ahead.iterdir())


@pytest.mark.parametrize(("max_lag", "kill_at"), [(1, 3), (2, 2)])
def test_a_killed_run_goes_on_with_what_was_played_ahead(
    tiny_model: Path, tmp_path: Path, max_lag: int, kill_at: int
) -> None:
    setup = config(tiny_model, max_lag=max_lag, evals=(), budget=Budget(steps=5))
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "killed") as trainer:
        kill_after(trainer, kill_at)
        with pytest.raises(Killed):
            trainer.run()
    ahead = tmp_path / "killed" / "checkpoints" / "step-000002" / "trainer" / "ahead"
    kept = sorted(p.name for p in ahead.glob("*.json"))
    assert kept == [f"step-{s:06d}.json" for s in range(3, 3 + max_lag)]
    run(setup, tmp_path / "killed")
    for key in ("rollout/tokens", "rollout/return_mean", "rollout/lag_max", "update/loss"):
        one, two = (
            [r[key] for r in numbers(tmp_path / name) if key in r]
            for name in ("straight", "killed")
        )
        assert one == pytest.approx(two, rel=1e-4)


# ---------------------------------------------------------------- files, refusals


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_played_ahead_survives_in_files(tmp_path: Path, kept: bool) -> None:
    folder = tmp_path / "ahead"
    save_pending(folder, {4: rollouts("a", kept), 5: rollouts("b"), 7: rollouts("c")})
    back = load_pending(folder, 3)
    assert list(back) == [4, 5]
    assert [g.uid for g in back[4].played.trained.groups] == (
        ["a/0", "a/1", "a/2"] if kept else ["a/1", "a/2"]
    )
    assert back[4].stats == rollouts().stats
    assert (back[4].warning, back[4].seconds) == ("word", {"rollout": 0.5})
    assert load_pending(folder, 5) == {}
    (folder / "step-000005.json").write_text('{"trained": [9]}')
    with pytest.raises(DataError, match="Delete"):
        load_pending(folder, 4)


def test_settings_that_contradict_each_other_are_refused(tiny_model: Path) -> None:
    with pytest.raises(BadValueError, match="max_lag is -1"):
        config(tiny_model, max_lag=-1)
    with pytest.raises(BadValueError, match="BetaTracker chooses tasks"):
        config(tiny_model, max_lag=1, recipe=make_recipe("spo", {}, small=True))
    with pytest.raises(BadValueError, match=r"importance_cap is 0\.5"):
        config(tiny_model, importance_cap=0.5)
    engine: Any = SimpleNamespace(shares_weights=True)
    check_overlap(engine, None)
    check_overlap(engine, 0)
    with pytest.raises(BadValueError, match="learner's own module"):
        check_overlap(engine, 1)
    assert config(tiny_model, recipe=small(grpo), max_lag=1).max_lag == 1
