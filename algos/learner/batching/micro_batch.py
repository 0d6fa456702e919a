"""One micro batch on the device: padded rows, or distinct tokens packed into one sequence."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ...core.forest import Ids
from ..attention.packing import OPENING, Pack
from ..attention.tree_attention import How, TreeLayout
from .rows import Row, distinct_tokens, micro_batches, whole_micro_batches

P = TypeVar("P")

SHARE_BELOW = 0.8
"""Distinct by padded tokens below which a pack is cheaper than padded rows."""
CACHED_TOKENS = 2**22
"""Most tokens whose micro batches are kept through a step: about 64 bytes each."""


COLUMN_GRAIN = 64
"""Padded rows on CUDA have a multiple of so many columns."""


def round_up(count: int) -> int:
    """Return ``count`` or up to a sixteenth more.

    There are sixteen such values between a power of two and the next. Products on a CPU are
    prepared once for every shape, in up to a millisecond and half a megabyte that stay: packs have
    few lengths.
    """
    grain = 2 ** max(0, count.bit_length() - 5)
    return -(-count // grain) * grain


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """How wide padded rows are: some kernels prepare themselves anew for every new shape.

    Attributes:
        grain: Columns are a multiple of this; None: one of the lengths of :func:`round_up`, and so
            is the number of rows.
        limit: Most columns, unless a row is longer: the model's context; None for no limit.
    """

    grain: int | None = 1
    limit: int | None = None

    @classmethod
    def on(cls, device: torch.device, limit: int | None) -> Columns:
        """Return the widths for a device: a CPU computes little more than what is there."""
        return cls(grain=None if device.type == "cpu" else COLUMN_GRAIN, limit=limit)

    def of(self, longest: int) -> int:
        """Return the columns of rows of which the longest has so many tokens."""
        grain = self.grain
        wide = round_up(longest) if grain is None else -(-longest // grain) * grain
        return wide if self.limit is None else max(longest, min(wide, self.limit))

    def rows(self, count: int) -> int:
        """Return the rows of so many paths; those that no path has are padding."""
        return count if self.grain is not None else round_up(count)


@dataclass(frozen=True, slots=True, eq=False)
class MicroBatch:
    """Paths of one forward pass. ``m`` action tokens are scored, ``n`` stand in the paths.

    On a CPU there may be more at the end of each, which no path has: tokens of a pack, padded rows,
    scored tokens.

    Attributes:
        ids: ``[rows, columns]`` int64; one row when packed.
        before: Where each scored token is predicted, in the flattened ``ids`` ``[m]``.
        targets: The scored tokens ``[m]``.
        path: Path of every action token ``[n]``.
        column: Its place among its path's action tokens ``[n]``.
        pick: Which scored token it is ``[n]``; None when they are the first ones in their order.
        last: Position of each path's last action token in the flattened ``ids`` ``[paths]``.
        width: Most action tokens of a path.
        positions: Positions ``[1, columns]`` when packed.
        layout: What sees what when packed.
    """

    ids: Tensor
    before: Tensor
    targets: Tensor
    path: Tensor
    column: Tensor
    pick: Tensor | None
    last: Tensor
    width: int
    positions: Tensor | None = None
    layout: TreeLayout | None = None

    @classmethod
    def padded(
        cls,
        rows: Sequence[Row],
        pad_id: int,
        device: torch.device,
        widths: Columns | None = None,
    ) -> MicroBatch:
        """Build rows of equal length, padded on the right; ``widths`` None adds no column."""
        widths = widths or Columns()
        columns = widths.of(max(len(row.ids) for row in rows))
        ids = np.full((widths.rows(len(rows)), columns), pad_id, np.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = row.ids
        at = np.concatenate([i * columns + row.at for i, row in enumerate(rows)])
        fill = _filled if widths.grain is None else np.asarray
        return cls._on(
            device,
            ids=ids,
            before=fill(at - 1),
            targets=fill(ids.ravel()[at]),
            last=np.array([i * columns + row.at[-1] for i, row in enumerate(rows)]),
            rows=rows,
        )

    @classmethod
    def packed(
        cls,
        rows: Sequence[Row],
        device: torch.device,
        how: How | None = None,
        opening: int = 0,
    ) -> MicroBatch:
        """Pack every distinct token once.

        Args:
            rows: The paths.
            device: Where the model is.
            how: The attention; None for the fastest.
            opening: First tokens of every path that are left out: they are context alone, none of
                them predicts a scored token.
        """
        pack = Pack.of([row.ids for row in rows], [row.numbers for row in rows])
        in_paths = [line[row.at] for line, row in zip(pack.paths, rows, strict=True)]
        scored, pick = np.unique(np.concatenate(in_paths), return_inverse=True)
        layout = TreeLayout.of(pack, device, how)
        layout.opening = opening  # the first tokens of the pack, as all others come after them
        fill = _filled if layout.how == "blocks" else np.asarray
        return cls._on(
            device,
            ids=fill(pack.ids[opening:])[None],
            before=fill(pack.parents[scored] - opening),
            targets=fill(pack.ids[scored]),
            last=np.array([line[-1] for line in in_paths]) - opening,
            rows=rows,
            pick=pick,
            positions=fill(pack.depths[opening:])[None],
            layout=layout,
        )

    @classmethod
    def _on(
        cls, device: torch.device, *, rows: Sequence[Row], layout: Any = None, **arrays: Any
    ) -> MicroBatch:
        counts = np.array([row.n_act for row in rows])
        arrays["path"] = np.repeat(np.arange(len(rows)), counts)
        arrays["column"] = np.concatenate([np.arange(n) for n in counts])
        placed = {name: torch.from_numpy(a).to(device) for name, a in arrays.items()}
        placed.setdefault("pick", None)  # pyright: ignore[reportArgumentType]
        return cls(**placed, layout=layout, width=int(counts.max()))

    @property
    def row_columns(self) -> int:
        """Columns that plain attention squares; 0 when packed."""
        return 0 if self.layout else self.ids.shape[1]

    def inputs(self) -> dict[str, Any]:
        """Return the arguments of the model's forward."""
        given: dict[str, Any] = {"input_ids": self.ids, "use_cache": False}
        if self.layout is not None:
            given |= {"position_ids": self.positions, "tree_layout": self.layout}
        return given

    def at(self, states: Tensor, where: Tensor) -> Tensor:
        """Gather entries ``[k, ...]`` of ``[rows, columns, ...]`` at flat positions ``[k]``."""
        return states.flatten(0, 1).index_select(0, where)

    def read_positions(self) -> Tensor:
        """Return the distinct flat positions that scored tokens are predicted at, ascending.

        Some others are among them on a CPU, so that their number is one of :func:`round_up`.
        """
        needed = self.before.unique()
        more = min(round_up(len(needed)), self.ids.numel()) - len(needed)
        if needed.device.type != "cpu" or not more:
            return needed
        free = torch.ones(self.ids.numel(), dtype=torch.bool)
        free[needed] = False
        return torch.cat([needed, free.nonzero()[:more, 0]]).sort().values

    def in_paths(self, scored: Tensor) -> Tensor:
        """Return values ``[m]`` of the scored tokens for each action token of the paths ``[n]``."""
        if self.pick is None:
            return scored[: len(self.path)]
        return scored.index_select(0, self.pick)

    def spread(self, scored: Tensor) -> Tensor:
        """Spread values ``[m]`` to ``[paths, width]``, 0 on padding; shared gradients add up."""
        table = scored.new_zeros(len(self.last), self.width)
        return table.index_put((self.path, self.column), self.in_paths(scored))

    def table(self, per_path: Sequence[Any], fill: float = 0.0) -> Tensor:
        """Stack arrays ``[n_act]`` per path (numpy) into a float tensor ``[paths, width]``."""
        out = torch.full((len(self.last), self.width), fill, dtype=torch.float32)
        for i, values in enumerate(per_path):
            out[i, : len(values)] = torch.as_tensor(values, dtype=torch.float32)
        return out.to(self.ids.device)


def _filled(values: Ids) -> Ids:
    """Return values with zeros behind them, as many as :func:`round_up` wants."""
    return np.pad(values, (0, round_up(len(values)) - len(values)))


class BatchCache:
    """The micro batches of one list of rows: a step scores and trains the same ones several times.

    Reference, old log-probabilities and every epoch cut and place the same rows; a pack's masks
    and blocks are worked out once for all of them. Kept until other rows come, up to
    ``CACHED_TOKENS`` tokens.
    """

    def __init__(self) -> None:
        self._rows: Sequence[Row] = ()
        self._parts: dict[Hashable, Any] = {}
        self._batches: dict[Hashable, MicroBatch] = {}
        self._tokens = 0

    def clear(self) -> None:
        """Forget all rows and micro batches."""
        self.__init__()

    def parts(self, rows: Sequence[Row], key: Hashable, work: Callable[[], P]) -> P:
        """Return what ``work`` returns, from the last time where these rows had that key."""
        if rows is not self._rows:
            self.clear()
            self._rows = rows
        if key not in self._parts:
            self._parts[key] = work()
        return self._parts[key]

    def batch(self, key: Hashable, work: Callable[[], MicroBatch]) -> MicroBatch:
        """Return the micro batch ``key`` of the rows of :meth:`parts`."""
        if key in self._batches:
            return self._batches[key]
        made = work()
        # one plain mask has the square of its tokens, which nobody wants to keep
        if not (made.layout and made.layout.how == "mask"):
            self._tokens += made.ids.numel()
            if self._tokens <= CACHED_TOKENS:
                self._batches[key] = made
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How rows become micro batches.

    Attributes:
        token_budget: Most tokens of one forward pass: distinct ones packed, else padded ones.
        pad_id: Token id that fills padding.
        device: Where the models are.
        shared: Whether distinct tokens may be packed.
        whole_trees: Never cut a tree, padded or not: the loss compares its paths.
        always: Whether distinct tokens are packed even where that saves few: a model that computes
            packs best.
        fitting: Most tokens of a micro batch whose longest row has so many; None for no limit
            but ``token_budget``.
        columns: How wide padded rows are.
        cache: What was made of the rows before.
    """

    token_budget: int
    pad_id: int
    device: torch.device
    shared: bool
    whole_trees: bool = False
    always: bool = False
    fitting: Callable[[int], int] | None = None
    columns: Columns = Columns()
    cache: BatchCache = field(default_factory=BatchCache, repr=False)

    def __call__(
        self, rows: Sequence[Row], chosen: Sequence[int], opening: int = 0
    ) -> Iterator[tuple[list[int], MicroBatch]]:
        """Yield row indices and tensors of every micro batch of the rows ``chosen``.

        Args:
            rows: All rows.
            chosen: Indices of those that are wanted.
            opening: What :meth:`opening` returned, to leave it out.
        """
        if self.fitting is not None and len(chosen):
            limit = self.fitting(max(len(rows[i].ids) for i in chosen))
            limited = replace(self, token_budget=min(self.token_budget, limit), fitting=None)
            yield from limited(rows, chosen)
            return
        pack, parts = self._parts(rows, chosen)
        packed = functools.partial(self._packed, opening=opening)
        for part in parts:
            mine = [rows[i] for i in part]
            make = packed if pack else self._padded
            yield part, self.cache.batch((pack, opening, *part), functools.partial(make, mine))

    def opening(self, rows: Sequence[Row], chosen: Sequence[int]) -> int:
        """Count the tokens that all micro batches would compute again and could have in common.

        They are the first ones of all paths, before anything scored; 0 where they are few, where
        there is one micro batch, or where rows are padded.
        """
        if self.fitting is not None or not len(chosen):
            return 0
        pack, parts = self._parts(rows, chosen)
        if not pack or len(parts) < 2:
            return 0
        first = rows[chosen[0]].numbers
        count = min(int(rows[i].at[0]) - 1 for i in chosen)
        for i in chosen:
            differs = np.flatnonzero(rows[i].numbers[:count] != first[:count])
            count = int(differs[0]) if len(differs) else count
        return count if count >= OPENING else 0

    def _parts(self, rows: Sequence[Row], chosen: Sequence[int]) -> tuple[bool, list[list[int]]]:
        how = self.token_budget, self.shared, self.whole_trees, self.always
        return self.cache.parts(rows, (*how, tuple(chosen)), lambda: self._cut(rows, chosen))

    def _packed(self, rows: Sequence[Row], opening: int) -> MicroBatch:
        return MicroBatch.packed(rows, self.device, opening=opening)

    def _padded(self, rows: Sequence[Row]) -> MicroBatch:
        return MicroBatch.padded(rows, self.pad_id, self.device, self.columns)

    def _cut(self, rows: Sequence[Row], chosen: Sequence[int]) -> tuple[bool, list[list[int]]]:
        """Return whether distinct tokens are packed, and the rows of every micro batch."""
        pack = self.shared and (self.always or self._pays(rows, chosen))
        if pack or self.whole_trees:
            width = None if pack else self.columns.of
            return pack, whole_micro_batches(rows, chosen, self.token_budget, width)
        lengths = [self.columns.of(len(rows[i].ids)) for i in chosen]
        cut = micro_batches(lengths, self.token_budget)
        return pack, [[chosen[i] for i in part] for part in cut]

    def _pays(self, rows: Sequence[Row], chosen: Sequence[int]) -> bool:
        """Whether packing saves enough tokens to be worth its small blocks."""
        mine = [rows[i] for i in chosen]
        lengths = [self.columns.of(len(row.ids)) for row in mine]
        padded = sum(
            len(part) * lengths[part[0]] for part in micro_batches(lengths, self.token_budget)
        )
        return distinct_tokens(mine) <= SHARE_BELOW * padded
