"""Starting models that several suites and claims share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .suite import TaughtStart

LETTERS_SHAPE: Mapping[str, int] = {
    "hidden": 64,
    "layers": 2,
    "heads": 2,
    "inner": 128,
    "context": 512,
}
"""Shape of a model of 0.1 million parameters, for environments of letters."""
KNOWS_PLACES: Mapping[str, Any] = {"lr": 2e-3, "mistakes": 0.55, "err_steps": 80}
"""Errs a little less: who knows no places yet would settle on one letter for all doors."""
LOOKS: Mapping[str, Any] = {"lr": 2e-3, "reader": "looker", "read_steps": 30, "err_steps": 0}
"""Has seen a player who looks and then names what it saw, too briefly to do the same."""
READS_LABELS: Mapping[str, Any] = {"lr": 2e-3, "mistakes": 0.5, "err_steps": 120}
"""Follows the labels now and then: asking at random only costs, and is unlearned at once."""


def letters_start(count: int, world: Mapping[str, Any], **changes: Any) -> TaughtStart:
    """Return a start that writes all letters about equally often.

    It imitates, for a few steps and from random weights, an expert that errs so often that all
    letters are about equally likely; so an episode at the start is a walk, not noise.

    Args:
        count: Number of letters that can be written.
        world: Settings of the environment at micro size in which the expert plays.
        changes: Changes to the settings of the start.
    """
    return TaughtStart(
        settings={
            **LETTERS_SHAPE,
            "init_range": 0.1,
            "vocab_size": 280,
            "texts": 50,
            "batch": 32,
            "read_steps": 0,
            "read_least": 0.0,
            "held_out": 1,
            "warmup_steps": 5,
            "err_steps": 40,
            "err_lr": 2e-3,
            "mistakes": round(1 - 1 / count, 6),
            **changes,
        },
        world={"size": "micro", **world},
    )
