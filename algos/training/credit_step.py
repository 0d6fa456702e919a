"""From rollouts to credit: the part of a training step between playing and updating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.forest import Forest
from ..core.protocols import Credits, Floats, Scorer, Shaper, TaskSource
from ..core.recipe import Recipe
from ..runs.process_group import Channel


class Credited(NamedTuple):
    """Rollouts after shaping, with everything that a loss reads of them.

    Attributes:
        forest: The rollouts after the recipe's shapers.
        annotations: Arrays per path by name.
        credits: The output of the recipe's credit rule.
    """

    forest: Forest
    annotations: dict[str, list[Floats]]
    credits: Credits


def assign_credit(
    recipe: Recipe, forest: Forest, scorer: Scorer, tasks: TaskSource, ranks: Channel | None = None
) -> Credited:
    """Shape and annotate the rollouts of a step and give credit, as the recipe says.

    Args:
        recipe: Gives shapers, annotators and the credit rule.
        forest: The rollouts that are trained on.
        scorer: The learner before the update.
        tasks: The run's task source, which may annotate as well.
        ranks: The processes of the run; None for this one alone.
    """
    shaped = shaped_by_first(recipe.shapers, forest, ranks or Channel())
    annotations: dict[str, list[Floats]] = {}
    for annotate in recipe.used_annotators:
        annotations |= annotate(shaped, scorer)
    annotations |= tasks.annotations(shaped)
    return Credited(shaped, annotations, recipe.credit(shaped, annotations))


def shaped_by_first(shapers: Sequence[Shaper], forest: Forest, ranks: Channel) -> Forest:
    """Return the forest after all shapers, as the first process has it.

    They run in one process: a language model as judge may answer differently in another.
    """
    if not shapers:
        return forest
    if ranks.rank == 0:
        for shape in shapers:
            forest = shape(forest)
    return ranks.from_first(forest)
