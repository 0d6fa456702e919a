"""Rollouts of a training run on a Ray cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ...envs.core.errors import BadValueError, EngineFault
from ..runs.process_group import shared_channel
from ..runs.run_dir import Closing
from ..training.config import TrainConfig
from .engine import RemoteEngine
from .joining import import_ray, join_ray
from .pool import ActorPool

STORE_BYTES = 256 * 2**20
"""Least object store of a Ray that is started here; a running cluster has its own."""


class RayRollouts(Closing):
    """Makes the engine of a run out of rollout actors; a context manager that ends them.

    Joins the cluster at ``address``, or starts Ray on this machine, behind a token. Every node must
    have turngym installed, and find the model under the name that the run's configuration gives it.

    Args:
        actors: Rollout actors.
        address: Of a running cluster (``"auto"``, ``"ray://..."``); None starts one here.
        cpus: Processors of each actor.
        gpus: GPUs, or the share of one, of each actor.
        prepare: Called first in each actor's process, as to register environments.

    Raises:
        BadValueError: A number out of range.
        MissingExtraError: Ray is not installed.
    """

    def __init__(
        self,
        actors: int,
        *,
        address: str | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        if actors < 1 or cpus < 0 or gpus < 0:
            raise BadValueError(
                f"Ray: {actors} rollout actors with {cpus} processors and {gpus} GPUs each; "
                "expected at least one actor, and nothing below 0."
            )
        self._ray = import_ray("rollouts on Ray", address)
        self._count, self._prepare = actors, prepare
        self._options = {"num_cpus": cpus, "num_gpus": gpus, "scheduling_strategy": "SPREAD"}
        self._address = address
        self._own = False
        self.pool: ActorPool | None = None

    def __call__(self, config: TrainConfig, policy: Any, tokenizer: Any) -> RemoteEngine:  # noqa: ARG002 - the actors load both
        """Return a run's engine, replacing :func:`~turngym.algos.training.engines.make_engine`.

        In a run of several learner processes each calls it, and the first one joins the cluster.

        Raises:
            EngineFault: There is no cluster, no actor could be started, or GPUs are missing.
        """
        ranks = shared_channel()
        if ranks.rank == 0:
            # in several processes the policy has its file's format yet, and may be widened
            self._connect(sum(p.numel() * max(4, p.element_size()) for p in policy.parameters()))
            self.pool = self._started(config)
        return RemoteEngine(self.pool, ranks)

    def _started(self, config: TrainConfig) -> ActorPool:
        from .actor import RolloutActor, loader

        remote = self._ray.remote(**self._options)(RolloutActor)
        pickled = self._ray.cloudpickle.dumps(config)
        load = partial(loader, self._ray.cloudpickle.loads, pickled, self._prepare)
        at_once = max(1, config.max_batch // max(1, config.recipe.rollout.max_paths))
        return ActorPool(self._ray, lambda: remote.remote(load), self._count, at_once)

    def close(self) -> None:
        """End the actors, and Ray where it was started here."""
        if self.pool is not None and self._ray.is_initialized():
            self.pool.close()
        self.pool = None
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()

    def _connect(self, weights: int) -> None:
        """Join or start Ray; its object store holds ``weights`` bytes of three versions."""
        self._own = not self._ray.is_initialized()
        if not self._own:
            return
        here: dict[str, Any] = {}
        if self._address is None:
            needed = math.ceil(self._count * self._options["num_cpus"])  # Ray takes whole ones
            here = {"num_cpus": max(1, needed), "include_dashboard": False}
            here["object_store_memory"] = max(STORE_BYTES, 3 * weights)
        join_ray(self._ray, self._address, **here)
        wanted = self._count * self._options["num_gpus"]
        if here and wanted > (found := self._ray.cluster_resources().get("GPU", 0.0)):
            raise EngineFault(
                f"Ray: {self._count} rollout actors want {wanted:g} GPUs, and this machine has "
                f"{found:g}; ask for fewer per actor, or join a cluster by its address."
            )
