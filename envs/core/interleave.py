"""The order of several data sets in one split: shares that hold in every prefix.

The sets are merged by due time: the j-th turn (from 0) of a set of share w is due at
``(j + 1/2) / w``, and turns are taken in the order of their due times. So among the first t tasks
a set has had ``w * t`` turns, give or take half the number of sets. Each set is walked through in
its own order first, and in a new one every time it starts again. A set that is a mixture itself
keeps the pattern in which its parts take turns: only tasks of one part change places.

Without weights a set's share is its size, and every row comes once. With weights the split ends
as soon as every row of every set has come at least once; by then the sets that are small for
their weight have come several times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .errors import BadValueError, UnknownNameError
from .settings import check_number

MAX_TASKS = 50_000_000
"""Tasks of a weighted split; more are refused."""


class Mixture:
    """The order of several data sets' rows in one split.

    Args:
        sizes: Rows per data set, each at least 1.
        weights: Share of each, above 0, in any unit; None for the sizes.
        parts: Per data set a number per row ``[rows]``: rows of one number may change places when
            the set starts again. None for a set, or for all of them: all rows may.

    Raises:
        BadValueError: The weights are so uneven that the split gets too long.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        weights: Sequence[float] | None = None,
        parts: Sequence[npt.NDArray[np.int64] | None] | None = None,
    ) -> None:
        self.sizes = tuple(sizes)
        self._parts = [None if part is None else _renumber(part) for part in parts or ()]
        self._parts += [None] * (len(self.sizes) - len(self._parts))
        shares = np.asarray(sizes if weights is None else weights, dtype=np.float64)
        shares /= shares.sum()
        rows = np.asarray(sizes)
        over = float(((rows - 0.5) / shares).max())
        if over > MAX_TASKS:
            raise BadValueError(
                f"SearchQA: with these weights it takes {over:,.0f} tasks until each of the "
                f"{rows.sum():,} questions has come; expected at most {MAX_TASKS:,}. Give the "
                "set with the smallest weight a larger one, or fewer questions."
            )
        if weights is None:
            counts = rows
        else:  # the turns that are due by then, those at the very end included
            counts = np.maximum(rows, np.floor(over * shares + 0.5 + 1e-9).astype(np.int64))
        label = np.repeat(np.arange(len(rows), dtype=np.int32), counts)
        turn = np.concatenate([np.arange(count, dtype=np.int64) for count in counts])
        order = np.lexsort((label, (turn + 0.5) / shares[label]))
        self._set, self._turn = label[order], turn[order]
        self._places = [np.flatnonzero(self._set == i) for i in range(len(rows))]
        self._orders: dict[tuple[int, int], npt.NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self._set)

    def place(self, index: int) -> tuple[int, int, int]:
        """Return (data set, row, complete passes through the set before) of a task."""
        which = int(self._set[index])
        walk, at = divmod(int(self._turn[index]), self.sizes[which])
        return which, at if walk == 0 else int(self._order(which, walk)[at]), walk

    def index(self, which: int, row: int, walk: int) -> int | None:
        """Return the task whose :meth:`place` is these three; None if there is none."""
        at = row if walk == 0 else int(np.flatnonzero(self._order(which, walk) == row)[0])
        turn = walk * self.sizes[which] + at
        places = self._places[which]
        return int(places[turn]) if turn < len(places) else None

    def walks(self, which: int) -> int:
        """Return how often a data set is begun."""
        return math.ceil(len(self._places[which]) / self.sizes[which])

    def blocks(self) -> npt.NDArray[np.int64]:
        """Return a number per task, equal for tasks that may change places.

        They are of the same walk through the same set, and of one block there.
        """
        walks, at = np.divmod(self._turn, np.asarray(self.sizes)[self._set])
        counts = [1 if part is None else int(part.max()) + 1 for part in self._parts]
        found = walks * sum(counts) + np.cumsum([0, *counts[:-1]])[self._set]
        for places, part in zip(self._places, self._parts, strict=True):
            if part is not None:  # every walk keeps the pattern of the first one
                found[places] += part[at[places]]
        return found

    def _order(self, which: int, walk: int) -> npt.NDArray[np.int64]:
        if (which, walk) not in self._orders:
            rng = np.random.Generator(np.random.PCG64([which, walk]))
            part = self._parts[which]
            self._orders[which, walk] = (
                rng.permutation(self.sizes[which]) if part is None else shuffle_blocks(rng, part)
            )
        return self._orders[which, walk]


def read_walk(count: str) -> int:
    """Return the walk of a task that comes again, from the number in its id ``...#2``.

    Returns:
        Complete passes through its set before, at least 1; 0 where ``count`` is no such number.
    """
    if not (count.isascii() and count.isdigit()) or len(count) > len(str(MAX_TASKS)):
        return 0
    walk = int(count) - 1
    return walk if walk > 0 and count == str(walk + 1) else 0


def shuffle_blocks(
    rng: np.random.Generator, blocks: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return an order of tasks in which only those of one block have changed places.

    Args:
        rng: Where the order is drawn from.
        blocks: A number per task ``[tasks]``.
    """
    order = np.empty(len(blocks), dtype=np.int64)
    order[np.argsort(blocks, kind="stable")] = np.lexsort((rng.random(len(blocks)), blocks))
    return order


def _renumber(part: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the same blocks, numbered from 0."""
    return np.unique(part, return_inverse=True)[1].astype(np.int64)


def check_weights(
    weights: object, names: Sequence[str], where: str = "SearchQA"
) -> list[float] | None:
    """Return the weights in the order of the names.

    Raises:
        BadValueError: Not a mapping, a weight that is not positive, or a missing one.
        UnknownNameError: A weight of a set that does not exist.
    """
    if weights is None:
        return None
    if not isinstance(weights, Mapping):
        raise BadValueError(
            f"{where}: weights is {weights!r}; expected a number per data set, as in "
            f"{dict.fromkeys(names, 1)}."
        )
    for name, weight in weights.items():
        if name not in names:
            raise UnknownNameError("data set", name, names, f"{where}: weights")
        if weight == 0:
            raise BadValueError(
                f"{where}: the weight of {name} is {weight}; expected a number above 0. A set "
                "that should not come is left out of data."
            )
        check_number(f"the weight of {name}", weight, where, above=0)
    if missing := [name for name in names if name not in weights]:
        raise BadValueError(
            f"{where}: weights has none for {', '.join(missing)}; expected one per data set: "
            f"{', '.join(names)}."
        )
    return [float(weights[name]) for name in names]
