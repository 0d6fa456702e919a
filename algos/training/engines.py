"""Build the engine and the episode runners of a run."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import torch

from ...agents.engines.base import CopiedEngine, Sampling, TrainingEngine, check_engine
from ...agents.engines.factory import build_engine
from ...agents.rendering.factory import Renderer
from ...envs.core.errors import BadValueError
from ..core.forest import Group
from ..core.kinds import play_group
from ..core.protocols import Rollout, Start
from ..evaluation.evaluate import EvalSet
from ..learner.importance_weights import USUAL_CAP, why_no_importance
from ..learner.learner import Learner
from ..rollouts import EpisodeRunner
from ..rollouts.partial import PartialRollouts
from ..runs.process_group import Channel, Ranks, SharedCounter
from .config import TrainConfig
from .policy import own_device

EngineMaker = Callable[[TrainConfig, Any, Any], TrainingEngine]
"""Builds an engine from the configuration, the learner's model and its tokenizer."""
_LISTS = itertools.count()
"""Numbers the lists of groups that processes have shared out; the first process's counts."""


@runtime_checkable
class GroupEngine(Protocol):
    """An engine that plays whole groups elsewhere, such as in the actors of a Ray cluster."""

    def make_runner(self, eval_set: str, env: gym.Env[Any, Any], *given: Any) -> EpisodeRunner:
        """Return the runner; ``eval_set`` is empty for training, ``given`` as EpisodeRunner's."""
        ...


class RankRunner(EpisodeRunner):
    """Plays some of the groups and gathers the others from the other processes.

    Every process must ask for the same groups in the same order.

    Args:
        ranks: The processes.
        given: Arguments of :class:`~turngym.algos.rollouts.EpisodeRunner`.

    Attributes:
        side_by_side: Groups that this process plays at a time, and takes the next one from the
            common list when one of them is done, so that no engine waits for the slowest; None
            deals the list out beforehand, which a run repeats to the bit.
    """

    def __init__(self, ranks: Channel, *given: Any) -> None:
        super().__init__(*given)
        self.ranks = ranks
        self.side_by_side: int | None = None

    async def groups(
        self, rollout: Rollout, starts: Sequence[Start], tick: Callable[[], None] = lambda: None
    ) -> list[Group]:
        """Return one group per start; ``tick`` is called for those that this process plays."""
        if self.side_by_side is None:
            mine = await super().groups(rollout, self.ranks.mine(starts), tick)
            played = self.ranks.in_order(mine)
        else:
            taken = await self._taken(rollout, starts, tick, self.side_by_side)
            found = {at: group for part in self.ranks.everyone(taken) for at, group in part.items()}
            played = [found[at] for at in range(len(starts))]
        self.fault = next((f for f in self.ranks.everyone(self.fault) if f), "")
        return played

    async def _taken(
        self, rollout: Rollout, starts: Sequence[Start], tick: Callable[[], None], lanes: int
    ) -> dict[int, Group]:
        """Play groups from the common list until it is empty; return them by their place."""
        counter = SharedCounter(f"groups/{self.ranks.from_first(next(_LISTS))}")
        done: dict[int, Group] = {}

        async def lane() -> None:
            while (at := counter.take()) < len(starts):
                done[at] = await play_group(rollout, self, starts[at])
                tick()

        await asyncio.gather(*(lane() for _ in range(lanes)))
        return done


def make_engine(config: TrainConfig, policy: Any, tokenizer: Any) -> TrainingEngine:
    """Return the engine that samples a run's rollouts.

    Args:
        config: Configuration of the run.
        policy: The learner's model.
        tokenizer: Its tokenizer.

    Raises:
        BadValueError: The engine cannot sample from this model.
        MissingExtraError: The engine's package is not installed.
    """
    device = None  # where the policy is, unless it waits in main memory to be cut up
    if next(policy.parameters()).device.type != own_device(config.device).type:
        device = own_device(config.device)
    return build_engine(config.model, tokenizer, config, learner=policy, device=device)


def engine_of(
    maker: EngineMaker, config: TrainConfig, policy: Any, tokenizer: Any
) -> TrainingEngine:
    """Return the engine that a maker builds.

    Raises:
        BadValueError: The maker is no function, or what it returned no engine.
    """
    if not callable(maker):
        raise BadValueError(
            f"training: engine is {maker!r:.100}; expected a function of configuration, model and "
            "tokenizer. An engine by name is TrainConfig(engine=...)."
        )
    engine = maker(config, policy, tokenizer)
    check_engine(engine, getattr(maker, "__qualname__", type(maker).__name__))
    return engine


def make_runner(
    config: TrainConfig,
    engine: TrainingEngine,
    renderer: Renderer,
    env: gym.Env[Any, Any],
    what: EvalSet | None,
    ranks: Ranks,
) -> EpisodeRunner:
    """Return the runner of the training groups, or of the episodes of an evaluation set.

    Args:
        config: Configuration of the run.
        engine: The engine from :func:`make_engine`.
        renderer: Converts text to token ids.
        env: The training environment.
        what: The evaluation set, None for training.
        ranks: The processes of the run, which share the groups.
    """
    temperature = config.recipe.temperature if what is None else config.eval_temperature
    sampling = Sampling(max_tokens=config.max_tokens, temperature=temperature)
    given = env if what is None else what.env, engine, renderer, sampling, config.max_context
    given += (what is None and config.recipe.reads_states,)
    if isinstance(engine, GroupEngine):
        return engine.make_runner("" if what is None else what.name, given[0], *given[2:])
    if ranks.alone:
        runner = EpisodeRunner(*given)
    else:
        runner = RankRunner(ranks.runner, *given)
        if config.device != "cpu" and torch.cuda.is_available():
            paths = 1 if what is not None else config.recipe.rollout.max_paths
            runner.side_by_side = max(1, config.max_batch // max(1, paths))
    runner.record_gold = what is None and config.recipe.reads_gold
    runner.hints = config.recipe.hints if what is None else None
    return runner


def make_partial(
    config: TrainConfig, engine: TrainingEngine, ranks: Ranks
) -> PartialRollouts | None:
    """Return what plays a run's steps where these leave groups unfinished; None where they do not.

    Raises:
        BadValueError: Groups are played by actors.
    """
    if config.partial_rollouts is None:
        return None
    if isinstance(engine, GroupEngine):
        # an actor forgets a group that it has answered, so that any other can take its place; a
        # step that ends between two turns would send every group through the queue once per turn
        raise BadValueError(
            f"training: partial_rollouts is {config.partial_rollouts}, but groups are played by "
            "actors, which keep no group from one step to the next: each plays it to its end. "
            "Play them in the learner's processes, whose engine may be servers (--engine http), "
            "or leave partial_rollouts out."
        )
    return PartialRollouts(config.partial_rollouts, ranks.runner)


def usual_cap(config: TrainConfig) -> float | None:
    """Return the cap of importance weights: partial rollouts have one without being asked."""
    if config.importance_cap is None and config.partial_rollouts is not None:
        return None if why_no_importance(config.recipe) else USUAL_CAP
    return config.importance_cap


def check_overlap(engine: TrainingEngine, max_lag: int | None) -> None:
    """Refuse to sample while training with an engine that shares the learner's weights.

    Raises:
        BadValueError: Engine and learner hold the same weights.
    """
    if max_lag and engine.shares_weights:
        raise BadValueError(
            f"training: max_lag is {max_lag}, but {type(engine).__name__} samples from the "
            "learner's own module, which changes in the middle of an action. Give the engine a "
            "copy, or leave max_lag out."
        )


def settle(engine: TrainingEngine, learner: Learner) -> None:
    """Let an engine on the learner's GPU decide how much memory it takes.

    Raises:
        BadValueError: The learner leaves no room for a single context.
    """
    if isinstance(engine, CopiedEngine) and learner.models.tokens.device.type == "cuda":
        engine.settle(learner.bytes_beside_engine(), in_turn=learner.offload is not None)
