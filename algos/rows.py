"""Paths as rows of token ids, cut into micro batches that waste little padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..envs.errors import BadValueError
from .forest import Forest

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One path, ready for the model.

    Attributes:
        ids: Observation and action tokens in order ``[n]``.
        at: Position in ``ids`` of every action token ``[n_act]``, ascending, never 0.
        turns: Index of each action token's turn within the path ``[n_act]``.
        sampled: Log-probabilities in nats as the engine sampled them ``[n_act]``.
    """

    ids: Ids
    at: Ids
    turns: Ids
    sampled: Floats

    @property
    def n_act(self) -> int:
        """Trained tokens."""
        return len(self.at)


def rows_of(forest: Forest) -> list[Row]:
    """One row per path of the forest, in its order.

    Raises:
        BadValueError: A path starts with an action: its first token has no context.
    """
    rows = []
    for path in forest:
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
            )
        )
    return rows


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
