"""The hand-over of weights on a device that works through queues, as a GPU does.

The device here does nothing before somebody waits for it. An engine that reads weights on a queue
of its own then sees those of before an update, unless the hand-over waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from turngym.algos.core.forest import Forest
from turngym.algos.learner.scoring import scoring
from turngym.algos.rollouts.collect import RolloutBatch
from turngym.algos.rollouts.pipeline import AsyncPipeline, Rollouts, SyncPipeline
from turngym.algos.rollouts.streams import CudaStreams, NoStreams, Streams, streams_for

CPU = torch.device("cpu")


class Queue:
    """A stream: work in order, done when it is waited for."""

    def __init__(self, device: Any = None) -> None:
        self.work: list[Callable[[], None]] = []

    def run(self, count: int | None = None) -> None:
        n = len(self.work) if count is None else count
        todo, self.work = self.work[:n], self.work[n:]
        for one in todo:
            one()


class Device:
    """What of ``torch.cuda`` is used, over queues; each thread has its current one."""

    def __init__(self) -> None:
        self.default = Queue()
        self.queues = [self.default]
        self._here = threading.local()

    def Stream(self, device: Any) -> Queue:
        self.queues.append(Queue())
        return self.queues[-1]

    @contextmanager
    def stream(self, queue: Queue) -> Iterator[None]:
        before = self.current_stream()
        self._here.queue = queue
        try:
            yield
        finally:
            self._here.queue = before

    def current_stream(self, device: Any = None) -> Queue:
        return getattr(self._here, "queue", self.default)

    def Event(self) -> Event:
        return Event()

    def synchronize(self, device: Any = None) -> None:
        for queue in self.queues:
            queue.run()

    def ask(self, work: Callable[[], None]) -> None:
        self.current_stream().work.append(work)


class Event:
    def record(self, queue: Queue) -> None:
        self.queue, self.done = queue, False
        queue.work.append(self._reached)

    def _reached(self) -> None:
        self.done = True

    def synchronize(self) -> None:
        while not self.done:
            self.queue.run(1)


class QueuedEngine:
    """Copies weights on the current stream, or on one of its own as vLLM does."""

    shares_weights = False

    def __init__(self, device: Device, own: bool) -> None:
        self.device = device
        self.queue = device.Stream(None) if own else None
        self.version, self.weights = 0, [0, 0]
        self.waits: list[Queue] = []

    def sync(self, model: list[int], version: int) -> None:
        def take() -> None:
            self.weights = list(model)

        (self.queue or self.device.current_stream()).work.append(take)
        self.version = version

    def sample(self) -> list[int]:
        """Wait for its own queue alone, as every sampled token does."""
        queue = self.queue or self.device.current_stream()
        self.waits.append(queue)
        queue.run()
        return self.weights

    def rest(self) -> None:
        """Nothing."""


def train(
    device: Device, streams: Streams, max_lag: int | None, own: bool
) -> tuple[dict[int, list[int]], QueuedEngine]:
    """Run five steps; return the weights that each was played with."""
    engine = QueuedEngine(device, own)
    seen: dict[int, list[int]] = {}

    async def play(step: int) -> Rollouts:
        seen[step] = engine.sample()
        forest = Forest.of([])
        return Rollouts(played=RolloutBatch(all=forest, trained=forest, rounds=1, filtered=False))

    stage: Any = (
        SyncPipeline(play, engine, streams)  # type: ignore[arg-type]
        if max_lag is None
        else AsyncPipeline(play, engine, max_lag, None, streams)  # type: ignore[arg-type]
    )
    weights = [0, 0]

    def write(place: int, value: int) -> Callable[[], None]:
        def work() -> None:
            weights[place] = value

        return work

    for step in range(1, 6):
        stage.take(step, 5)
        for place in (0, 1):  # two tensors, written one after the other when the device gets there
            device.ask(write(place, step))
        stage.hand_over(step, weights)
    stage.close()
    return seen, engine


def right(max_lag: int | None) -> dict[int, list[int]]:
    lag = max_lag or 0
    return {s: [max(0, s - 1 - lag)] * 2 for s in range(1, 6)}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("max_lag", [None, 0, 1])
def test_a_step_is_played_with_whole_weights_of_its_own_version(
    max_lag: int | None, own: bool
) -> None:
    device = Device()
    seen, _ = train(device, CudaStreams(None, device), max_lag, own)
    assert seen == right(max_lag)


@pytest.mark.parametrize("max_lag", [None, 1])
def test_without_order_an_engine_on_its_own_stream_reads_other_weights(
    max_lag: int | None,
) -> None:
    seen, _ = train(Device(), NoStreams(), max_lag, own=True)  # what it was with vLLM
    assert seen != right(max_lag)


def test_the_engine_waits_for_its_own_work_alone() -> None:
    device = Device()
    _, engine = train(device, NoStreams(), 1, own=False)
    assert set(engine.waits) == {device.default}  # as it was: behind the learner's micro batches
    device = Device()
    _, engine = train(device, CudaStreams(None, device), 1, own=False)
    assert len(set(engine.waits)) == 1
    assert device.default not in engine.waits


def test_a_cpu_has_nothing_to_order() -> None:
    assert isinstance(streams_for(CPU, beside=False), NoStreams)


def test_a_learner_beside_does_not_change_how_a_cpu_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Settings of torch are the process's, and the learner's own hold while it computes."""
    monkeypatch.setattr(scoring, "_is_medium_exact", lambda: True)

    def playing() -> tuple[Any, ...]:
        with streams_for(CPU, beside=True).playing():
            kernels = (
                torch.backends.cuda.flash_sdp_enabled(),
                torch.backends.cuda.math_sdp_enabled(),
            )
            return torch.get_float32_matmul_precision(), *kernels

    alone = playing()
    with scoring.quick_cpu_maths(CPU), ThreadPoolExecutor(1) as engine:
        assert engine.submit(playing).result() == alone
