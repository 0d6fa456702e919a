"""Rollouts that are played while the learner trains, at most so many updates behind.

One worker thread does everything that needs the engine, strictly in order: step s is played with
the weights after update ``s - 1 - max_lag`` exactly, never newer, so that a run does not depend on
who was faster. With ``max_lag`` 0 this is playing and training in turn.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ..agents.engine import TrainingEngine
from .clock import Clock
from .stage import Play, Rollouts

T = TypeVar("T")


class Ahead:
    """Plays in a thread; see :class:`~turngym.algos.stage.Stage`.

    Args:
        play: Plays a step.
        engine: Samples for it; nobody else may use it.
        max_lag: Updates that a step's weights may be behind those that it trains.
        ready: Rollouts of the next steps that were played before, as of a resumed run.
    """

    def __init__(
        self,
        play: Play,
        engine: TrainingEngine,
        max_lag: int,
        ready: Mapping[int, Rollouts] | None = None,
    ) -> None:
        self._play = play
        self._engine = engine
        self._max_lag = max_lag
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rollouts")
        self._plays: dict[int, Future[Rollouts]] = {}
        for step, rollouts in (ready or {}).items():
            self._plays[step] = future = Future()
            future.set_result(rollouts)
        self._sync: Future[float] | None = None
        self._broken: BaseException | None = None
        self._closed = False
        self._task: asyncio.Task[Any] | None = None
        self._lock = threading.Lock()

    def take(self, step: int, last: int | None) -> Rollouts:
        """Begin all steps that may be begun, and wait for this one."""
        newest = step + self._max_lag if last is None else min(step + self._max_lag, last)
        for s in range(step, newest + 1):
            if s not in self._plays:
                self._plays[s] = self._submit(lambda s=s: self._timed(s))
        rollouts = self._plays[step].result()
        if self._sync is not None:  # the learner must not change what is being read
            rollouts.seconds["sync"] = self._sync.result()
            self._sync = None
        del self._plays[step]
        return rollouts

    def hand_over(self, version: int, model: Any) -> None:
        """Queue the weights behind what is being played with older ones."""
        if self._max_lag > 1:  # the learner goes on before the engine's turn comes
            model = copy.deepcopy(model)
        self._sync = self._submit(lambda: self._take_weights(version, model))

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run it behind all that is queued, which ends with the newest weights."""
        return self._submit(lambda: self._run(work())).result()

    def ahead(self, *, wait: bool) -> dict[int, Rollouts]:
        """See :meth:`~turngym.algos.stage.Stage.ahead`; failed ones are left out."""
        out = {}
        for step, future in sorted(self._plays.items()):
            if not wait and not future.done():
                break
            if future.cancelled() or future.exception() is not None:
                break
            out[step] = future.result()
        return out

    def close(self) -> None:
        """Cancel what is being played and end the thread."""
        with self._lock:
            self._closed = True
            task = self._task
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        return self._worker.submit(self._guarded, work)

    def _guarded(self, work: Callable[[], T]) -> T:
        """After a failure nothing that was queued behind it runs: its weights would be wrong."""
        if self._broken is not None:
            raise self._broken
        try:
            return work()
        except BaseException as fault:
            self._broken = fault
            raise

    def _timed(self, step: int) -> Rollouts:
        clock = Clock()
        done = self._run(self._play(step))
        done.seconds["rollout"] = clock.lap("rollout")
        return done

    def _take_weights(self, version: int, model: Any) -> float:
        clock = Clock()
        self._engine.sync(model, version)
        return clock.lap("sync")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            with self._lock:
                if self._closed:
                    work.close()
                    raise CancelledError
                self._task = asyncio.current_task()
            return await work

        try:
            return asyncio.run(main())
        finally:
            with self._lock:
                self._task = None
