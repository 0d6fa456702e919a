"""Pipelines of rollouts: alternating with updates, or ahead of them in a thread.

Ahead of them, one worker thread does everything that needs the engine, strictly in order: step s
is played with the weights after update ``s - 1 - max_lag`` exactly, never newer, so that a run does
not depend on who was faster. With ``max_lag`` 0 this is playing and training in turn. Rollouts that
no update has trained on yet are part of a checkpoint: after a restart nobody has the weights any
more that played them.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ...agents.engines.base import EngineStats, TrainingEngine
from ...envs.core.errors import DataError
from ..core.forest import Forest
from ..core.forest_io import load_forest, save_forest
from ..runs.run_dir import read_json, write_json
from ..runs.timer import Clock
from .collect import RolloutBatch
from .event_loop import EventLoop
from .streams import NoStreams, Streams

T = TypeVar("T")
Play = Callable[[int], Coroutine[Any, Any, "Rollouts"]]


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """The rollouts of one step, with their timing and warnings.

    Attributes:
        played: The groups.
        warning: Message about failed environments; empty if none.
        stats: What the engine counted meanwhile.
        seconds: By stage: ``rollout``, and ``sync`` of the weights before it.
    """

    played: RolloutBatch
    warning: str = ""
    stats: EngineStats = field(default_factory=EngineStats)
    seconds: dict[str, float] = field(default_factory=dict)


class Pipeline(Protocol):
    """Plays the steps in order; it owns the engine while it exists."""

    def take(self, step: int, last: int | None) -> Rollouts:
        """Return the rollouts of a step; none after step ``last`` are begun."""
        ...

    def hand_over(self, version: int, model: Any) -> None:
        """Pass on the weights after an update."""
        ...

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something else on the engine, under the newest weights that were handed over."""
        ...

    def unfinished(self, done: int) -> list[int]:  # noqa: ARG002 - a default
        """Return the steps after ``done`` that weights older than the newest still play."""
        return []

    def pending(self, done: int) -> dict[int, Rollouts]:  # noqa: ARG002 - a default
        """Return rollouts that the updates after step ``done`` will use, by step.

        Waits for those of :meth:`unfinished`. What the newest weights play can be played again,
        and is there only if it is complete.
        """
        return {}

    def close(self) -> None:
        """Stop what is being played."""
        ...


class SyncPipeline(Pipeline):
    """Plays a step on demand, while the caller waits.

    Args:
        play: Plays a step.
        engine: Samples for it.
        streams: Orders the hand-over of weights; None where a call returns when its work is done.
        samples: Whether the engine samples what is played; where an expert plays, weights reach it
            for an evaluation alone.
    """

    def __init__(
        self,
        play: Play,
        engine: TrainingEngine,
        streams: Streams | None = None,
        *,
        samples: bool = True,
    ) -> None:
        self._play = play
        self._samples = samples
        self._engine = engine
        self._streams = streams or NoStreams()
        self._loop = EventLoop()
        self._new: tuple[int, Any] | None = None

    def take(self, step: int, last: int | None) -> Rollouts:  # noqa: ARG002 - nothing is begun
        """Hand over the newest weights where they sample, then play."""
        clock = Clock()
        if self._samples:
            self._sync()
        clock.lap("sync")
        done = self._run(self._play(step))
        self._engine.rest()
        clock.lap("rollout")
        done.seconds.update(clock.laps)
        return done

    def hand_over(self, version: int, model: Any) -> None:
        """Load the weights into the engine before it samples again."""
        self._new = version, model

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run it at once."""
        self._sync()
        return self._run(work())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end.

        Raises:
            KeyboardInterrupt: For a signal, also one that comes just as asyncio begins to handle
                it, which that forgets: it ends the work as cancelled, and nobody else cancels it.
        """
        try:
            return self._loop.run(work)
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def close(self) -> None:
        """Close the event loop.

        Where the shell made this process ignore Ctrl-C, asyncio does not handle it, and SIGTERM is
        thrown into the middle of a task: it comes up again in those that wait for that one.
        """
        with suppress(KeyboardInterrupt):
            self._loop.close()

    def _sync(self) -> None:
        if self._new is not None:
            version, model = self._new
            self._streams.wait_for(self._streams.mark())  # an engine may read on another stream
            self._engine.sync(model, version)
            self._streams.finish()
            self._new = None


class AsyncPipeline(Pipeline):
    """Plays in a thread; see :class:`Pipeline`.

    Args:
        play: Plays a step.
        engine: Samples for it; nobody else may use it.
        max_lag: Updates that a step's weights may be behind those that it trains.
        ready: Rollouts of the next steps that were played before, as of a resumed run.
        streams: Orders engine and learner on one device; None where a call returns when its work
            is done.
    """

    def __init__(
        self,
        play: Play,
        engine: TrainingEngine,
        max_lag: int,
        ready: Mapping[int, Rollouts] | None = None,
        streams: Streams | None = None,
    ) -> None:
        self._streams = streams or NoStreams()
        self._built = self._streams.mark()  # the engine's own weights are on their way
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
        return rollouts  # pending until the update has used them: an interrupt may come before

    def hand_over(self, version: int, model: Any) -> None:
        """Queue the weights behind rollouts that still use older ones."""
        if self._max_lag > 1:  # the learner continues before the engine's turn comes
            model = copy.deepcopy(model)
        self._plays.pop(version, None)
        updated = self._streams.mark()
        self._sync = self._submit(lambda: self._take_weights(version, model, updated))

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run it behind all that is queued, which ends with the newest weights."""
        return self._submit(lambda: self._run(work())).result()

    def unfinished(self, done: int) -> list[int]:
        """Return what still plays with older weights, see :meth:`Pipeline.unfinished`."""
        return [step for step in self._of_older(done) if not self._plays[step].done()]

    def pending(self, done: int) -> dict[int, Rollouts]:
        """Return pending rollouts, without failed ones, see :meth:`Pipeline.pending`."""
        out, older = {}, self._of_older(done)
        for step, future in sorted(self._plays.items()):
            if step <= done:
                continue
            if step not in older and not future.done():
                break
            if future.cancelled() or future.exception() is not None:
                break
            out[step] = future.result()
        return out

    def _of_older(self, done: int) -> list[int]:
        """Return the steps that were begun with weights from before the update ``done``."""
        return [s for s in sorted(self._plays) if 0 < done < s <= done + self._max_lag]

    def close(self) -> None:
        """Cancel running rollouts and end the thread."""
        with self._lock:
            self._closed = True
            if (task := self._task) is not None:  # so long its loop is open
                task.get_loop().call_soon_threadsafe(task.cancel)
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        return self._worker.submit(self._guarded, work)

    def _guarded(self, work: Callable[[], T]) -> T:
        """Skip what is queued behind a failure: its weights would be wrong."""
        if self._broken is not None:
            raise self._broken
        try:
            self._streams.wait_for(self._built)
            with self._streams.playing():
                return work()
        except BaseException as fault:
            self._broken = fault
            raise

    def _timed(self, step: int) -> Rollouts:
        clock = Clock()
        done = self._run(self._play(step))
        done.seconds["rollout"] = clock.lap("rollout")
        return done

    def _take_weights(self, version: int, model: Any, updated: Any) -> float:
        """Take the weights once the update has written them, and before the next one begins."""
        clock = Clock()
        self._streams.wait_for(updated)
        self._engine.sync(model, version)
        self._streams.finish()
        return clock.lap("sync")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            with self._lock:
                if self._closed:
                    work.close()
                    raise CancelledError
                self._task = asyncio.current_task()
            try:
                return await work
            finally:
                with self._lock:
                    self._task = None

        return asyncio.run(main())


def save_pending(folder: Path, rollouts: Mapping[int, Rollouts]) -> None:
    """Write rollouts that no update has used yet.

    Args:
        folder: Made here, theirs alone.
        rollouts: By step.
    """
    folder.mkdir()
    for step, one in rollouts.items():
        played = one.played
        trained = {id(group) for group in played.trained.groups}
        save_forest(_path(folder, step, "jsonl"), played.all)
        about = {
            "trained": [i for i, group in enumerate(played.all.groups) if id(group) in trained],
            "rounds": played.rounds,
            "filtered": played.filtered,
            "share": played.share,
            "unused_tokens": played.unused_tokens,
            "warning": one.warning,
            "stats": asdict(one.stats),
            "seconds": one.seconds,
        }
        write_json(_path(folder, step, "json"), about)


def load_pending(folder: Path, done: int) -> dict[int, Rollouts]:
    """Load the rollouts of the steps right after ``done``, as far as they exist.

    Raises:
        DataError: A file is damaged; delete it to have its step played again.
    """
    out: dict[int, Rollouts] = {}
    step = done + 1
    while _path(folder, step, "json").exists():
        about = read_json(_path(folder, step, "json"))
        forest = load_forest(_path(folder, step, "jsonl"))
        try:
            trained = Forest.of([forest.groups[i] for i in about["trained"]])
            out[step] = Rollouts(
                played=RolloutBatch(
                    all=forest,
                    trained=trained if about["filtered"] else forest,
                    rounds=about["rounds"],
                    filtered=about["filtered"],
                    share=about["share"],
                    unused_tokens=about["unused_tokens"],
                ),
                warning=about["warning"],
                stats=EngineStats(**about["stats"]),
                seconds=about["seconds"],
            )
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                f"{_path(folder, step, 'json')}: no description of rollouts ({error!r}). Delete "
                "it to have the step played again."
            ) from error
        step += 1
    return out


def _path(folder: Path, step: int, kind: str) -> Path:
    return folder / f"step-{step:06d}.{kind}"
