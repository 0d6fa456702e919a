"""From rollouts to credit: the part of a training step between playing and updating."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...envs.core.errors import BadValueError
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

    Raises:
        TypeError: The credit rule returned something else than credits.
        BadValueError: It gave an advantage that is no finite number.
    """
    shaped = shaped_by_first(recipe.shapers, forest, ranks or Channel())
    annotations: dict[str, list[Floats]] = {}
    for annotate in recipe.used_annotators:
        annotations |= annotate(shaped, scorer)
    annotations |= tasks.annotations(shaped)
    credits = recipe.credit(shaped, annotations)
    _check_credits(recipe, credits, [*chain(*annotations.values())])
    return Credited(shaped, annotations, credits)


def _check_credits(recipe: Recipe, credits: Any, given: Iterable[Any]) -> None:
    """Refuse what would be blamed on the learning rate, or on whoever reads it first.

    Advantages made of what is not finite itself are left to the loss, which asks for smaller steps.
    """
    rule = f"recipe {recipe.name!r}: {type(recipe.credit).__name__}"
    if not isinstance(credits, Credits):
        raise TypeError(
            f"{rule} returned a {type(credits).__name__}; expected Credits(advantages=...), with "
            "one array [action tokens] per path."
        )
    for at, advantages in enumerate(credits.advantages):
        if not np.isfinite(advantages).all() and all(np.isfinite(one).all() for one in given):
            raise BadValueError(
                f"{rule} gave path {at} the advantages {advantages!r:.200}; expected finite "
                "numbers (a mean of no values, or a division by a deviation of 0, is none)."
            )


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
