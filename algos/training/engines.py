"""The engine of a run, by its configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym

from ...agents.engines.base import Sampling, TrainingEngine
from ...agents.engines.factory import build_engine
from ...agents.rendering.factory import Renderer
from ...envs.core.errors import BadValueError
from ..evaluation.evaluate import EvalSet
from ..rollouts import EpisodeRunner
from ..rollouts.rank_runner import RankRunner
from ..runs.process_group import Ranks
from .config import TrainConfig

EngineMaker = Callable[[TrainConfig, Any, Any], TrainingEngine]
"""Makes an engine from the run, the learner's model and its tokenizer."""


@runtime_checkable
class GroupEngine(Protocol):
    """An engine that has whole groups played elsewhere, as by the actors of a Ray cluster."""

    def make_runner(self, eval_set: str, env: gym.Env[Any, Any], *given: Any) -> EpisodeRunner:
        """Return who plays; an empty ``eval_set`` means training, ``given`` is EpisodeRunner's."""
        ...


def make_engine(config: TrainConfig, policy: Any, tokenizer: Any) -> TrainingEngine:
    """Return the engine that plays a run's rollouts.

    Args:
        config: Of the run.
        policy: The learner's model.
        tokenizer: Its tokenizer.

    Raises:
        BadValueError: The engine cannot sample from this model.
        MissingExtraError: The engine's package is not installed.
    """
    return build_engine(config.model, tokenizer, config, learner=policy)


def make_runner(
    config: TrainConfig,
    engine: TrainingEngine,
    renderer: Renderer,
    env: gym.Env[Any, Any],
    what: EvalSet | None,
    ranks: Ranks,
) -> EpisodeRunner:
    """Who plays a run's training groups, or the episodes of an evaluation set.

    Args:
        config: Of the run.
        engine: Of :func:`make_engine`.
        renderer: Text to ids.
        env: The training environment.
        what: The evaluation set; None for training.
        ranks: The processes of the run, which share the groups.
    """
    temperature = config.recipe.temperature if what is None else config.eval_temperature
    sampling = Sampling(max_tokens=config.max_tokens, temperature=temperature)
    given = env if what is None else what.env, engine, renderer, sampling, config.max_context
    if isinstance(engine, GroupEngine):
        return engine.make_runner("" if what is None else what.name, given[0], *given[2:])
    return EpisodeRunner(*given) if ranks.alone else RankRunner(ranks.runner, *given)


def check_overlap(engine: TrainingEngine, max_lag: int | None) -> None:
    """Refuse to play while training where that would change what is sampled.

    Raises:
        BadValueError: Engine and learner hold the same weights.
    """
    if max_lag and engine.shares_weights:
        raise BadValueError(
            f"training: max_lag is {max_lag}, but {type(engine).__name__} samples from the "
            "learner's own module, which changes in the middle of an action. Give the engine a "
            "copy, or leave max_lag out."
        )
