"""From rollouts to credit: the part of a training step between playing and updating."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...envs.core.errors import BadValueError
from ..core.forest import Forest
from ..core.kinds import Streams, check_shaped
from ..core.protocols import Annotator, Credits, Floats, Scorer, Shaper, TaskSource
from ..core.recipe import Recipe
from ..runs.process_group import Channel

_TURN_ARRAYS = ("obs_ids", "act_ids", "logprobs", "entropies", "rewards")


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
        TypeError: A shaper, an annotator or the credit rule returned something else than it should.
        BadValueError: It gave arrays that do not fit the paths, or an advantage that is no finite
            number, or a shaper or the credit rule changed what it was given.
        UnknownNameError: The credit rule read an annotation that it does not name in ``needs``.
    """
    before = _checksums(forest, {}) if recipe.shapers else {}
    shaped = shaped_by_first(recipe.shapers, forest, ranks or Channel())
    if recipe.shapers:
        _check_untouched(f"recipe {recipe.name!r}: a shaper", before, _checksums(forest, {}))
    annotations: dict[str, list[Floats]] = Streams()
    for annotate in recipe.used_annotators:
        given = annotate(shaped, scorer)
        _check_annotations(recipe, annotate, given, shaped)
        annotations |= given
    for name, rows in tasks.annotations(shaped).items():
        _check_rows(f"{type(tasks).__name__} gave {name!r}", rows, len(shaped.paths))
        annotations[name] = rows
    read = dict(annotations)
    before = _checksums(shaped, read)
    credits = recipe.credit(shaped, annotations)
    rule = f"recipe {recipe.name!r}: {type(recipe.credit).__name__}"
    _check_untouched(rule, before, _checksums(shaped, read))
    _check_credits(rule, credits, shaped, [*chain(*annotations.values())])
    return Credited(shaped, annotations, credits)


def _check_annotations(recipe: Recipe, annotator: Annotator, given: Any, forest: Forest) -> None:
    who = f"recipe {recipe.name!r}: {type(annotator).__name__}"
    if not isinstance(given, Mapping) or annotator.provides - set(given):
        got = sorted(given) if isinstance(given, Mapping) else type(given).__name__
        raise TypeError(
            f"{who} returned {got}; expected a dictionary of {sorted(annotator.provides)}, with a "
            "list of one array per path under each name."
        )
    for name, rows in given.items():
        _check_rows(f"{who} gave {name!r}", rows, len(forest.paths))


def _check_rows(who: str, rows: Any, paths: int) -> None:
    """Refuse what is not one flat array of numbers per path."""
    if not isinstance(rows, (list, tuple)) or len(rows) != paths:
        got = type(rows).__name__ + (f" of {len(rows)}" if isinstance(rows, Sized) else "")
        raise TypeError(f"{who} as a {got}; expected a list of one array per path, {paths}.")
    for at, row in enumerate(rows):
        if not isinstance(row, np.ndarray) or row.ndim != 1 or row.dtype.kind not in "fiub":
            raise TypeError(
                f"{who} for path {at} as {row!r:.100}, a {type(row).__name__}; expected a NumPy "
                "array with one dimension, of one number per action token."
            )


def _check_credits(rule: str, credits: Any, forest: Forest, given: Iterable[Any]) -> None:
    """Refuse what would be blamed on the learning rate, or on whoever reads it first.

    Advantages made of what is not finite itself are left to the loss, which asks for smaller steps.
    """
    if not isinstance(credits, Credits):
        raise TypeError(
            f"{rule} returned a {type(credits).__name__}; expected Credits(advantages=...), with "
            "one array [action tokens] per path."
        )
    rows = {"advantages": credits.advantages, **credits.extra}
    if len(credits.value_targets):
        rows["value_targets"] = credits.value_targets
    for name, arrays in rows.items():
        _check_rows(f"{rule} gave {name!r}", arrays, len(forest.paths))
        for at, (path, array) in enumerate(zip(forest, arrays, strict=True)):
            if len(array) != forest.n_act(path):
                raise BadValueError(
                    f"{rule} gave {name!r} for path {at} as {len(array)} values; expected one for "
                    f"each of its {forest.n_act(path)} action tokens."
                )
    for at, advantages in enumerate(credits.advantages):
        if not np.isfinite(advantages).all() and all(np.isfinite(one).all() for one in given):
            raise BadValueError(
                f"{rule} gave path {at} the advantages {advantages!r:.200}; expected finite "
                "numbers (a mean of no values, or a division by a deviation of 0, is none)."
            )


def _checksums(forest: Forest, annotations: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """Return a checksum of all arrays of each name, and of the trees' numbers of turns."""
    sizes = [np.array([len(tree.turns) for tree in group.trees]) for group in forest.groups]
    turns = [turn for group in forest.groups for tree in group.trees for turn in tree.turns]
    arrays: dict[str, Sequence[Any]] = {"turns": sizes}
    arrays |= {name: [getattr(turn, name) for turn in turns] for name in _TURN_ARRAYS}
    return {
        name: zlib.crc32(b"".join([np.asarray(row).tobytes() for row in rows]))
        for name, rows in (arrays | dict(annotations)).items()
    }


def _check_untouched(who: str, before: dict[str, int], after: dict[str, int]) -> None:
    """Refuse a part that wrote into what the update, the logs and other recipes read."""
    for name, checksum in before.items():
        if after.get(name) != checksum:
            raise BadValueError(
                f"{who} changed {name!r} in place, which the update and the logs read too; "
                "expected arrays and lists of its own (array.copy(), list(turns))."
            )


def shaped_by_first(shapers: Sequence[Shaper], forest: Forest, ranks: Channel) -> Forest:
    """Return the forest after all shapers, as the first process has it.

    They run in one process: a language model as judge may answer differently in another.
    """
    if not shapers:
        return forest
    if ranks.rank == 0:
        for shape in shapers:
            before, forest = forest, shape(forest)
            check_shaped(shape, before, forest)
    return ranks.from_first(forest)
