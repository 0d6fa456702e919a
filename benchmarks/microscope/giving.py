"""Give a subject's credit: parts of a user's own that raise are named."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...algos.core.forest import Forest
from ...algos.training.credit_step import Credited, assign_credit
from ...envs.core.errors import BadValueError, TurngymError
from ..matrix.jobs import describe_error
from .credits import TurnCredit, TurnIndex, turn_credit
from .playing import Sample, Subject

_PACKAGE = Path(__file__).resolve().parents[2]


class OwnPartError(TurngymError):
    """A part of a recipe raised: a shaper, an annotator, the credit rule or the loss."""


@contextmanager
def named_parts(name: str) -> Iterator[None]:
    """Say which part of the recipe ``name`` raised, and where.

    Raises:
        OwnPartError: In place of whatever is not turngym's own error.
    """
    try:
        yield
    except (TurngymError, OSError):
        raise
    except Exception as error:
        steps = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        parts = [code for code, _ in steps if code.co_name == "__call__"]
        own = [code for code in parts if not code.co_filename.startswith(str(_PACKAGE))]
        part = next(iter(own or parts), None)
        if part is None and isinstance(error, TypeError):  # what a part returned was refused
            raise OwnPartError(f"credit: {error}") from error
        if part is None:
            raise
        *_, line = (line for code, line in steps if code.co_filename == part.co_filename)
        kind = part.co_qualname.removesuffix(".__call__").rpartition(".")[2]
        raise OwnPartError(
            f"credit: recipe {name!r}: {kind} raised {describe_error(error)} "
            f"({Path(part.co_filename).name}, line {line})."
        ) from error


def give_credit(subject: Subject, forest: Forest) -> Credited:
    """Shape, annotate and give credit, as in training."""
    with named_parts(subject.name):
        return assign_credit(subject.recipe, forest, subject.learner, subject.tasks)


def credit_of(subject: Subject, credited: Credited, index: TurnIndex) -> TurnCredit:
    """Return what the recipe's credit says about each turn."""
    with named_parts(subject.name):
        return turn_credit(subject.recipe, credited, index)


def credit_by_batch(subject: Subject, sample: Sample, index: TurnIndex) -> TurnCredit:
    """Return the credit of a sample, given in each training batch for itself, as in training."""
    parts = []
    for forest in sample.parts():
        one = give_credit(subject, forest)
        if one.forest.paths:
            parts.append(credit_of(subject, one, TurnIndex.of(one.forest)))
    sizes = [len(part.mean) for part in parts]
    if sum(sizes) != len(index.places):
        raise BadValueError(
            f"credit: the shapers of recipe {subject.name!r} take turns away, which a batch at a "
            "time cannot be put together again."
        )
    return TurnCredit(
        mean=np.concatenate([part.mean for part in parts]),
        coefficients=[row for part in parts for row in part.coefficients],
        within=float(np.average([part.within for part in parts], weights=sizes)),
    )
