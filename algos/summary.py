"""The result file of a run, from its counters and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .checkpoint import Progress
from .config import TrainConfig
from .evaluate import EvalSet
from .result import RunResult, scores_at


def result_of(
    config: TrainConfig,
    digests: tuple[str, str],
    done: Progress,
    rows: Sequence[Mapping[str, Any]],
    sets: Sequence[EvalSet],
) -> RunResult:
    """What a run came to.

    Args:
        config: Of the run.
        digests: Of the configuration and of the starting model.
        done: Its counters.
        rows: Its metrics.
        sets: What it was evaluated on.
    """
    where = {s.name: (s.world.name, s.split) for s in sets}
    return RunResult(
        recipe=config.recipe.name,
        env_id=config.env.id,
        seed=config.seed,
        config_digest=digests[0],
        model_digest=digests[1],
        steps=done.step,
        sampled_tokens=done.tokens,
        env_turns=done.turns,
        seconds=done.seconds,
        before=scores_at(rows, 0, where),
        after=scores_at(rows, done.step, where),
    )
