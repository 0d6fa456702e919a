"""Which process computes which rows: the same answer in every process."""

from __future__ import annotations

from collections.abc import Sequence

from ..rows import Row


def share_rows(rows: Sequence[Row], chosen: Sequence[int], world: int) -> list[list[int]]:
    """The rows ``chosen``, cut into a share per process.

    Groups stay whole, as their rows share tokens; where there are fewer groups than processes,
    trees do, since a loss may compare the paths of one. The longest go first, each to the process
    with the fewest tokens so far.

    Args:
        rows: All rows.
        chosen: Indices of those to share out.
        world: Number of processes.
    """
    whole_groups = len({rows[i].group for i in chosen}) >= world
    units: dict[tuple[int, int], list[int]] = {}
    for i in chosen:
        units.setdefault((rows[i].group, 0 if whole_groups else rows[i].tree), []).append(i)
    sizes = {key: sum(len(rows[i].ids) for i in part) for key, part in units.items()}
    shares: list[list[int]] = [[] for _ in range(world)]
    tokens = [0] * world
    for key in sorted(units, key=lambda key: (-sizes[key], key)):
        least = min(range(world), key=lambda rank: (tokens[rank], rank))
        shares[least] += units[key]
        tokens[least] += sizes[key]
    return [sorted(share) for share in shares]
