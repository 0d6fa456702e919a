"""Groups are played and measured in worker processes, a few groups at a time in each.

A group's snapshots live where it was played, so playing and measuring are one job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...agents.engines.base import Sampling, TrainingEngine
from ...agents.rendering.factory import Renderer, make_renderer
from ...agents.scripted import text_env
from ...algos.core.forest import Forest, Group
from ...algos.core.protocols import GroupFilter, Rollout, Start
from ...algos.rollouts import EpisodeRunner
from ...algos.runs.progress import Silent
from ...algos.training.config import TrainConfig
from ...algos.training.engines import make_engine
from ...algos.training.policy import load_policy
from ...envs.utils.system import count_cores
from ..runtime.threads import begin_worker
from ..runtime.worker_pool import WorkerPool
from .resampling import ResampleSettings, resample_group
from .truth import MeasuredGroup, RecordingRunner, TruthSettings, Work, measure_group


@dataclass(frozen=True, kw_only=True)
class Job:
    """Groups to play and measure.

    Attributes:
        rollout: The recipe's own.
        temperature: Of sampling.
        starts: One per group.
        truth: How truth is measured; None plays alone.
        random: Whether transitions are random.
        keeps: A group is measured where one of these keeps it; empty measures every group.
        resample: How anchor turns are resampled; None for not at all.
        resampled: Which of the groups have anchors; empty for none.
    """

    rollout: Rollout
    temperature: float
    starts: tuple[Start, ...]
    truth: TruthSettings | None
    random: bool
    keeps: tuple[GroupFilter, ...] = ()
    resample: ResampleSettings | None = None
    resampled: tuple[bool, ...] = ()


class Bench:
    """The environment, the model and the engine of one process.

    Args:
        config: Names environment and model; of its recipe only which demonstrations turns hold.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.env = config.env.prototype
        self.policy, self.tokenizer = load_policy(config, Silent())
        self.renderer: Renderer = make_renderer(self.tokenizer, tools=text_env(self.env).tools)

    @cached_property
    def engine(self) -> TrainingEngine:
        """What samples; made when it is first needed."""
        return make_engine(self.config, self.policy, self.tokenizer)

    def runner(self, temperature: float, kind: type[EpisodeRunner] = EpisodeRunner) -> Any:
        """Return a runner that samples at this temperature."""
        sampling = Sampling(max_tokens=self.config.max_tokens, temperature=temperature)
        made = kind(self.env, self.engine, self.renderer, sampling, self.config.max_context)
        made.record_gold = text_env(self.env).has_gold
        made.hints = self.config.recipe.hints
        return made

    def run(self, job: Job) -> list[MeasuredGroup]:
        """Do a job.

        Raises:
            RandomTransitionError: A step drew random numbers, but ``job.random`` is off.
        """
        if job.truth is None:
            return asyncio.run(play_job(self.runner(job.temperature), job))
        runner: RecordingRunner = self.runner(job.temperature, RecordingRunner)
        try:
            return asyncio.run(run_job(runner, job))
        finally:
            runner.forget()


async def play_job(runner: EpisodeRunner, job: Job) -> list[MeasuredGroup]:
    """Play the groups of a job and measure nothing."""
    runner.record_states = True
    groups = await runner.groups(job.rollout, job.starts)
    return [
        MeasuredGroup(start=start, group=group, truths={}, work=Work())
        for start, group in zip(job.starts, groups, strict=True)
    ]


async def run_job(runner: RecordingRunner, job: Job) -> list[MeasuredGroup]:
    """Play and measure the groups of a job, concurrently."""
    assert job.truth is not None
    truth = job.truth
    groups = await runner.groups(job.rollout, job.starts)

    async def one(start: Start, group: Group, again: bool) -> MeasuredGroup:
        returns = list(Forest.of([group]).endings()[0].values())
        if job.keeps and not any(keep.keeps(np.array(returns)) for keep in job.keeps):
            return MeasuredGroup(start=start, group=group, truths={}, work=Work())
        measured = await measure_group(runner, start, group, truth, job.random)
        if job.resample is None or not again:
            return measured
        return await resample_group(runner, job.rollout, measured, job.resample, job.random)

    again = job.resampled or (False,) * len(groups)
    rows = zip(job.starts, groups, again, strict=True)
    return list(await asyncio.gather(*(one(*row) for row in rows)))


class Crew(Protocol):
    """Runs jobs somewhere."""

    @property
    def workers(self) -> int:
        """Number of jobs that run at a time."""
        ...

    def run(self, jobs: Sequence[Job]) -> Iterator[list[MeasuredGroup]]:
        """Yield the results of the jobs as they end."""
        ...


class OwnProcess(Crew):
    """Runs jobs here, one after the other.

    Args:
        bench: Where they are run.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    @property
    def workers(self) -> int:
        """One."""
        return 1

    def run(self, jobs: Sequence[Job]) -> Iterator[list[MeasuredGroup]]:
        """Yield the results of the jobs in order."""
        for job in jobs:
            yield self._bench.run(job)


class Processes(Crew):
    """Runs jobs in processes of their own.

    Args:
        pool: Of workers that hold a bench each.
        workers: Their number.
    """

    def __init__(self, pool: WorkerPool, workers: int) -> None:
        self._pool = pool
        self._workers = workers

    @property
    def workers(self) -> int:
        """Number of processes."""
        return self._workers

    def run(self, jobs: Sequence[Job]) -> Iterator[list[MeasuredGroup]]:
        """Yield the results of the jobs as they end; one that fails cancels those that wait."""
        waiting = [self._pool.submit(_run, job) for job in jobs]
        try:
            for done in as_completed(waiting):
                yield done.result()
        except BrokenExecutor:
            raise
        except Exception:
            for future in waiting:
                future.cancel()
            raise


@contextmanager
def hire(bench: Bench, workers: int) -> Iterator[Crew]:
    """Hold a crew of so many processes, which an exception ends; of one it is this process.

    Args:
        bench: This process's own.
        workers: Number of processes.
    """
    if workers == 1:
        yield OwnProcess(bench)
        return
    threads = max(1, count_cores() // workers)
    with WorkerPool(workers, _begin, bench.config, threads) as pool:
        yield Processes(pool, workers)


_OWN: list[Bench] = []


def _begin(config: TrainConfig, threads: int) -> None:
    """Set up a worker process."""
    begin_worker(threads)
    _OWN.append(Bench(config))


def _run(job: Job) -> list[MeasuredGroup]:
    return _OWN[0].run(job)
