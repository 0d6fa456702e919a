"""Shapers run in one process alone: a language model as judge may answer differently."""

from __future__ import annotations

from collections.abc import Sequence

from ..contracts import Shaper
from ..forest import Forest
from .ranks import Channel


def shaped_by_first(shapers: Sequence[Shaper], forest: Forest, ranks: Channel) -> Forest:
    """The forest after all shapers, as the first process has it."""
    if not shapers:
        return forest
    if ranks.rank == 0:
        for shape in shapers:
            forest = shape(forest)
    return ranks.from_first(forest)
