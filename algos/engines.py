"""The engine of a run, by its configuration."""

from __future__ import annotations

from typing import Any

from ..agents.engine import TrainingEngine
from ..agents.transformers_engine import TransformersEngine
from ..envs.errors import BadValueError
from .config import TrainConfig


def make_engine(config: TrainConfig, policy: Any, tokenizer: Any) -> TrainingEngine:
    """The engine that plays a run's rollouts.

    Args:
        config: Of the run.
        policy: The learner's model.
        tokenizer: Its tokenizer.

    Raises:
        BadValueError: The engine cannot sample from this model.
        MissingExtraError: vLLM is not installed.
    """
    if config.engine == "vllm":
        from ..agents.vllm_engine import VllmEngine  # vLLM takes a quarter of a minute to import

        engine = VllmEngine(
            config.model,
            tokenizer,
            max_batch=config.max_batch,
            dtype=config.engine_dtype,
            max_context=config.max_context,
            settings=config.vllm,
        )
        if config.vllm.prove_sync:
            engine.prove_sync(policy)
        return engine
    return TransformersEngine(
        policy,
        tokenizer,
        max_batch=config.max_batch,
        dtype=config.engine_dtype,
        max_context=config.max_context,
    )


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
