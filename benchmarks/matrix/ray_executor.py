"""Jobs as Ray tasks, on this machine or on a cluster that shares the matrix's folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...algos.ray.joining import import_ray, join_ray
from ...envs.core.plugins import Plugin, load_again, loaded_plugins
from .executors import GRACE_S, Ended
from .jobs import Job, perform


class RayExecutor:
    """Ray tasks, each with a processor and a share of a GPU.

    Joins the cluster at ``address``, or starts Ray here. Workers must see the folder of the matrix
    under the same path and have turngym installed.

    Args:
        workers: Tasks at a time.
        gpus_per_worker: GPUs, or the share of one, of each task; Ray assigns them.
        address: Of a running cluster (``"auto"``, ``"ray://..."``); None starts one here.

    Raises:
        MissingExtraError: Ray is not installed.
        EngineFault: There is no cluster, or Ray does not start.
    """

    def __init__(
        self, workers: int, gpus_per_worker: float = 0.0, address: str | None = None
    ) -> None:
        ray = import_ray("running cells on Ray", address)
        self._ray = ray
        self._own = not ray.is_initialized()
        if self._own:
            here = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
            join_ray(ray, address, **here)
        self._task = ray.remote(num_cpus=1, num_gpus=gpus_per_worker, max_retries=0)(_perform)
        self._running: dict[Any, Job] = {}
        self._slots = workers

    @property
    def slots(self) -> int:
        """Return the number of concurrent tasks."""
        return self._slots

    def submit(self, job: Job) -> None:
        """Start a task."""
        self._running[self._task.remote(job.model_dump_json(), loaded_plugins())] = job

    def wait(self, seconds: float) -> list[Ended]:
        """Wait up to the timeout; return the jobs that ended."""
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running), timeout=seconds)
        return [self._ended(ref) for ref in ready]

    def stop(self) -> None:
        """Interrupt running tasks, wait while they save, and stop Ray if it was started here."""
        for ref in self._running:
            self._ray.cancel(ref)
        if self._running:
            refs = list(self._running)
            self._ray.wait(refs, num_returns=len(refs), timeout=GRACE_S)
        self._running.clear()
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()

    def _ended(self, ref: Any) -> Ended:
        job = self._running.pop(ref)
        try:
            self._ray.get(ref)
        except self._ray.exceptions.RayError as death:
            return Ended(job, f"the Ray task died: {str(death).splitlines()[0]}")
        return Ended(job, "")


def _perform(job: str, plugins: Sequence[Plugin]) -> str:
    """Execute one job in a Ray worker."""
    from ..runtime.threads import prepare

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    prepare(small=True)
    load_again(plugins)
    return perform(Job.model_validate_json(job))
