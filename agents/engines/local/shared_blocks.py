"""Which blocks of keys and values the rows of a batch have in common.

Agents of one environment begin with the same instructions, and the rollouts of a group with the
same question. With a large model a decode step is bound by the memory's bandwidth, most of it for
keys and values, so a block that several rows have is read for all of them together, from one place.
Rows with the same tokens have the same keys and values, to the bit if one was copied from the
other, otherwise up to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .kv_cache import Ids


class SharedBlocks(NamedTuple):
    """How to read blocks that several rows have; the first axis is that of ``order``.

    Attributes:
        order: Places in the batch ``[rows]``, those with a common beginning next to each other.
        depth: First blocks of each that another one has too ``[rows]``.
        source: Row of the pool that each block is read from ``[rows, blocks]``; only the first
            ``depth`` columns count.
    """

    order: Ids
    depth: Ids
    source: Ids


def find_shared_blocks(tokens: Ids, lengths: Ids, rows: Ids, block: int) -> SharedBlocks:
    """Find the full blocks at the beginning of some rows that hold the same tokens.

    Args:
        tokens: Of the pool's rows ``[rows of the pool, positions]``.
        lengths: How many of them are cached ``[rows of the pool]``.
        rows: Those of the batch.
        block: Positions of a block.
    """
    lengths = lengths[rows]
    ids = tokens[rows, : int(lengths.max())]  # a copy
    ids[np.arange(ids.shape[1]) >= lengths[:, None]] = -1
    order = np.array(sorted(range(len(rows)), key=lambda i: ids[i].tobytes()), dtype=np.int64)
    ids, lengths = ids[order], lengths[order]
    differs = np.column_stack([ids[1:] != ids[:-1], np.ones(len(ids) - 1, dtype=bool)])
    common = np.minimum(differs.argmax(axis=1), np.minimum(lengths[1:], lengths[:-1])) // block
    before, after = np.append(0, common), np.append(common, 0)
    begins = before[:, None] <= np.arange(max(common, default=0))
    places = np.arange(len(rows))[:, None]
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=0)
    return SharedBlocks(order, np.maximum(before, after), rows[order][first])
