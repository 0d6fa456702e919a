"""A rollout actor: an engine, the run's environments, and episode runners for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...agents.engines.base import EngineStats
from ...agents.rendering.factory import make_renderer
from ...agents.scripted import text_env
from ...envs.core.errors import EpisodeError
from ..core.kinds import play_group
from ..rollouts import EpisodeRunner
from ..runs.process_group import Ranks
from ..runs.progress import Silent
from ..training.config import TrainConfig
from ..training.engines import make_engine, make_runner
from ..training.policy import load_policy
from .work import Packed, PlayedGroup, Work, unpack_weights


class RolloutActor:
    """Plays groups; its calls run concurrently in one event loop, so the engine batches them.

    Args:
        load: Gives the run's configuration, after whatever this process must import first.
    """

    def __init__(self, load: Callable[[], TrainConfig]) -> None:
        config = load()
        env = config.env.prototype
        self._policy, tokenizer = load_policy(config, Silent())
        self._engine = make_engine(config, self._policy, tokenizer)
        renderer = make_renderer(tokenizer, tools=text_env(env).tools)
        given = config, self._engine, renderer, env
        self._runners: dict[str, EpisodeRunner] = {"": make_runner(*given, None, Ranks())}
        for what in (e.make() for e in config.evals):
            self._runners[what.name] = make_runner(*given, what, Ranks())
        self._reported = EngineStats()
        self._busy = 0

    async def limits(self) -> tuple[int, int]:
        """Return the maximum tokens of context and action, and the size of the vocabulary."""
        return self._engine.max_context, self._engine.vocabulary

    async def take(self, version: int, weights: Packed | None) -> None:
        """Take new weights; None for those of the starting model."""
        if weights is not None:
            unpack_weights(weights, self._policy)
        self._engine.sync(self._policy, version)

    async def play(self, work: Work) -> PlayedGroup:
        """Play one group.

        Raises:
            EpisodeError: The weights here are of another version.
        """
        if self._engine.version != work.version:
            raise EpisodeError(
                f"rollout actor: group {work.start.uid} belongs to version {work.version} of the "
                f"weights, but {self._engine.version} is here."
            )
        runner = self._runners[work.scene]
        self._busy += 1
        try:
            group = await play_group(work.rollout, runner, work.start)
        finally:
            self._busy -= 1
            if not self._busy:
                self._engine.rest()
        stats, self._reported = self._engine.stats - self._reported, self._engine.stats
        return PlayedGroup(group, runner.fault, stats)


def loader(
    unpickle: Callable[[bytes], Any], config: bytes, prepare: Callable[[], None] | None
) -> TrainConfig:
    """Load the configuration in an actor's process after running ``prepare``."""
    if prepare is not None:
        prepare()
    return unpickle(config)
