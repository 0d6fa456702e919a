"""Which engine plays, and how far behind the learner it may be; readable without torch."""

from __future__ import annotations

from typing import Literal, get_args

from ..agents.vllm_settings import VllmSettings
from ..envs.errors import BadValueError, UnknownNameError

EngineName = Literal["transformers", "vllm"]


def check_lag(engine: str, vllm: VllmSettings, max_lag: int | None, cap: float | None) -> None:
    """Refuse settings that do not fit together.

    Args:
        engine: Name of the engine.
        vllm: Its settings, where it is vLLM.
        max_lag: Updates that rollouts may be behind; None plays and trains in turn.
        cap: Where importance weights are cut off; None for none.

    Raises:
        UnknownNameError: No such engine.
        BadValueError: A value out of range, or two that contradict each other.
    """
    if engine not in get_args(EngineName):
        raise UnknownNameError("engine", engine, get_args(EngineName), "training")
    if engine != "vllm" and vllm != VllmSettings():
        raise BadValueError(
            f"training: settings of vLLM were given, but the engine is {engine!r}; choose "
            "engine='vllm' or leave them out."
        )
    if max_lag is not None and max_lag < 0:
        raise BadValueError(f"training: max_lag is {max_lag}; expected 0 or more, or none.")
    if max_lag and vllm.sleep:
        raise BadValueError(
            f"training: max_lag is {max_lag}, so the engine plays while the learner trains, but "
            "vllm.sleep takes its memory away meanwhile. Switch one of them off."
        )
    if cap is not None and not cap >= 1:
        raise BadValueError(
            f"training: importance_cap is {cap}; expected at least 1, or none for no weights."
        )
