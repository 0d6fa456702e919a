"""What a training step leaves to look at: its rollouts as text, as trees, and token by token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..agents.render import Renderer
from .config import TrainConfig
from .contracts import Scorer
from .forest import Forest
from .forest_io import save_forest
from .kept import SUFFIX, Kept, write_kept
from .transcripts import write_group


def write_rollouts(  # noqa: PLR0913 - three of them only read numbers and ids
    folder: Path,
    config: TrainConfig,
    forest: Forest,
    kept: Kept,
    scorer: Scorer,
    renderer: Renderer,
    tokenizer: Any,
) -> None:
    """Write one step's rollouts into ``folder``.

    Args:
        folder: The run's folder of trajectories.
        config: Of the run.
        forest: All that was played.
        kept: The groups with numbers per token, and the step; no file of them when there are none.
        scorer: The learner, after the step.
        renderer: How text became tokens.
        tokenizer: Of the policy.
    """
    stem = str(folder / f"step-{kept.step:06d}-train")
    write_group(Path(stem + ".txt"), forest, renderer)
    save_forest(Path(stem + ".jsonl"), forest)
    if kept.forest.groups:
        sampled = bool(getattr(config.recipe.rollout, "samples", True))
        about = {"recipe": config.recipe.name, "env": config.env.id, "sampled": sampled}
        write_kept(Path(stem + SUFFIX), replace(kept, about=about), scorer, tokenizer)
