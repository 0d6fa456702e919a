"""Paths as rows of token ids, cut into mini batches and micro batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....envs.core.errors import BadValueError
from ...core.forest import Forest
from ..attention.packing import number_tokens

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
NOT_SAMPLED = 1.0
"""Stands for the log-probability of a token that nobody sampled: no token has more than 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One path, ready for the model.

    Attributes:
        ids: Observation and action tokens in order ``[n]``.
        at: Position in ``ids`` of every action token ``[n_act]``, ascending, never 0.
        turns: Index of each action token's turn within the path ``[n_act]``.
        sampled: Log-probabilities in nats as the engine sampled them ``[n_act]``.
        numbers: Number of every token ``[n]``, equal where rows share one; see
            :func:`~turngym.algos.learner.attention.packing.number_tokens`.
        group: Group of the path in the forest.
        tree: Tree of the path in its group.
    """

    ids: Ids
    at: Ids
    turns: Ids
    sampled: Floats
    numbers: Ids
    group: int = 0
    tree: int = 0

    @property
    def n_act(self) -> int:
        """Trained tokens."""
        return len(self.at)


def rows_of(forest: Forest) -> list[Row]:
    """Return one row per path of the forest, in its order.

    Raises:
        BadValueError: A path starts with an action: its first token has no context.
    """
    rows = []
    for path, numbers in zip(forest, number_tokens(forest), strict=True):
        pieces: list[Ids] = []
        at: list[Ids] = []
        turns: list[Ids] = []
        length = 0
        line = forest.turns(path)
        if len(line[0].obs_ids) == 0:
            raise BadValueError(
                f"path {path}: its first turn has no observation tokens, so the first action token "
                "has no context to be predicted from; render the prompt to at least one token."
            )
        for index, turn in enumerate(line):
            pieces += [turn.obs_ids, turn.act_ids]
            start = length + len(turn.obs_ids)
            length = start + len(turn.act_ids)
            at.append(np.arange(start, length, dtype=np.int64))
            turns.append(np.full(length - start, index, dtype=np.int64))
        rows.append(
            Row(
                np.concatenate(pieces).astype(np.int64, copy=False),
                np.concatenate(at),
                np.concatenate(turns),
                np.concatenate([turn.logprobs for turn in line]),
                numbers,
                path.group,
                path.tree,
            )
        )
    return rows


def distinct_tokens(rows: Sequence[Row]) -> int:
    """Count the tokens of these rows, shared ones once."""
    return len(np.unique(np.concatenate([row.numbers for row in rows]))) if rows else 0


def mini_batches(rows: Sequence[Row], count: int, rng: np.random.Generator) -> list[list[int]]:
    """Split rows into at most ``count`` batches of whole groups, in random order.

    A group stays together because its paths are compared with each other and share tokens.

    Args:
        rows: All rows of the update.
        count: Optimiser steps.
        rng: Draws the order of the groups.
    """
    of_group: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        of_group.setdefault(row.group, []).append(i)
    groups = list(of_group.values())
    order = rng.permutation(len(groups)) if count > 1 else np.arange(len(groups))
    parts = np.array_split(order, count)
    return [[i for g in part for i in groups[g]] for part in parts if len(part)]


def micro_batches(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Group rows of similar length so that ``rows x longest`` stays within ``token_budget``.

    A row longer than the budget gets a micro batch of its own.

    Args:
        lengths: Tokens per row.
        token_budget: Most tokens of one padded micro batch.

    Returns:
        Lists of row indices, longest rows first: running out of memory happens at once or never.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batches: list[list[int]] = []
    width = 0
    for i in order:
        if not batches or (len(batches[-1]) + 1) * width > token_budget:
            batches.append([])
            width = lengths[i]
        batches[-1].append(i)
    return batches


def whole_micro_batches(
    rows: Sequence[Row],
    chosen: Sequence[int],
    token_budget: int,
    width: Callable[[int], int] | None = None,
) -> list[list[int]]:
    """Yield micro batches that never cut a tree, and a group only where it is too large.

    Args:
        rows: All rows.
        chosen: Indices of the rows to cut up.
        token_budget: Most tokens of a micro batch; a larger tree gets one of its own.
        width: Columns of padded rows by the length of the longest; None counts distinct tokens.

    Returns:
        Lists of row indices, the largest micro batch first.
    """

    def size(unit: Sequence[int]) -> int:
        mine = [rows[i] for i in unit]
        if width is None:
            return distinct_tokens(mine)
        return len(mine) * width(max(len(r.ids) for r in mine))

    units: list[tuple[int, list[int]]] = []
    for group in _parted(chosen, [rows[i].group for i in chosen]):
        tokens = size(group)
        if tokens <= token_budget:
            units.append((tokens, group))
        else:
            trees = _parted(group, [rows[i].tree for i in group])
            units += [(size(tree), tree) for tree in trees]
    units.sort(key=lambda unit: -unit[0])
    batches: list[list[int]] = []
    filled: list[int] = []
    longest: list[int] = []
    openings: list[dict[int, Row]] = []
    for tokens, unit in units:
        reach = max(len(rows[i].ids) for i in unit)
        begins = {int(rows[i].numbers[0]): rows[i] for i in unit}
        for b, batch in enumerate(batches):
            wide = max(longest[b], reach)
            together = (
                filled[b] + tokens - _shared_tokens(begins, openings[b])
                if width is None
                else width(wide) * (len(batch) + len(unit))
            )
            if together <= token_budget:
                batch += unit
                filled[b], longest[b] = together, wide
                openings[b] |= begins
                break
        else:
            batches.append(list(unit))
            filled.append(tokens)
            longest.append(reach)
            openings.append(begins)
    return batches


def _shared_tokens(some: Mapping[int, Row], others: Mapping[int, Row]) -> int:
    """Count the tokens that contexts have in common; both are rows by their first token's number.

    Different units are other groups, or trees of one group, and share beginnings alone.
    """
    count = 0
    for first in some.keys() & others.keys():
        a, b = some[first].numbers, others[first].numbers
        n = min(len(a), len(b))
        differs = np.flatnonzero(a[:n] != b[:n])
        count += int(differs[0]) if len(differs) else n
    return count


def _parted(items: Sequence[int], by: Sequence[int]) -> list[list[int]]:
    parts: dict[int, list[int]] = {}
    for item, key in zip(items, by, strict=True):
        parts.setdefault(key, []).append(item)
    return list(parts.values())
