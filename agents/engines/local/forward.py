"""What the engine needs from a model: feed new tokens of cached rows, get the next logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from ..sampling import Draws
from .kv_cache import CacheShape, KvPool

Ids = npt.NDArray[np.int64]
Repeat = Callable[[KvPool, Ids, Ids], None]
GRAIN = 64
"""Widths are rounded up to a multiple of this on CUDA, so that shapes repeat from step to step."""


def grain_for(device: torch.device) -> int:
    """Return what widths are rounded up to a multiple of: 1 (not at all) on a CPU."""
    return 1 if device.type == "cpu" else GRAIN


def round_up(n: int, grain: int) -> int:
    """Return the smallest multiple of ``grain`` that is not below ``n``."""
    return -(-n // grain) * grain


@dataclass(frozen=True, slots=True)
class Piece:
    """New tokens of one row.

    Attributes:
        row: Place of the row in the pool.
        start: Tokens of the row that are in the cache already.
        ids: What to feed, at least one.
    """

    row: int
    start: int
    ids: Ids


class Forward(Protocol):
    """A model behind the key-value pool. Lengths in the pool are the caller's to update."""

    @property
    def wants_front(self) -> bool:
        """Whether :meth:`decode` costs as much as if all rows up to the last one took part.

        The caller should then keep its rows in the front of the pool.
        """
        ...

    @property
    def mixes(self) -> bool:
        """Whether single tokens of running rows may be fed beside prompts without padding them."""
        ...

    @property
    def captures(self) -> bool:
        """Whether decode steps cost far less than a pass with prompts, whatever is in them."""
        ...

    @property
    def repeat(self) -> Repeat | None:
        """Copies what :meth:`decode` wrote into rows to others; None where that gains nothing.

        It takes the pool, rows that were decoded ``[k]``, and the rows of the same lengths where
        their last token goes ``[k]``; those that are their own source are left.
        """
        ...

    @property
    def shape(self) -> CacheShape:
        """What one cached token costs."""
        ...

    @property
    def vocabulary(self) -> int:
        """Number of logits."""
        ...

    def feed(self, pool: KvPool, pieces: Sequence[Piece]) -> torch.Tensor:
        """Run the pieces; float32 logits ``[pieces, vocabulary]`` after the last token of each."""
        ...

    def decode(
        self, pool: KvPool, rows: Ids, tokens: Ids, draws: Draws | None = None
    ) -> torch.Tensor:
        """Feed one token to each of some rows of the pool at their lengths.

        Args:
            pool: The cache.
            rows: ``[k]``, no two alike.
            tokens: ``[k]``.
            draws: How they will be sampled; what that needs goes to a device with the rest.

        Returns:
            Float32 logits ``[k, vocabulary]``.
        """
        ...

    def load(self, model: Any) -> None:
        """Take new weights of the same architecture from ``model``."""
        ...


@dataclass(frozen=True, slots=True)
class Ragged:
    """Index maps of pieces of unequal lengths ``[k]``, none longer than ``width`` tokens.

    Attributes:
        ids: All tokens, one piece after the other, ``[total]``.
        positions: Position of each token in its row ``[total]``.
        rows: Row of each token ``[total]``.
        square: Place in ``ids`` of token t of piece i ``[k, width]``; padding repeats the last.
        places: Where each token of ``ids`` lies in the flattened square ``[total]``.
        last: Place in ``ids`` of the last token of each piece ``[k]``.
        starts: First position of each piece ``[k]``.
        end: Maximum positions that a piece reaches.
    """

    ids: Ids
    positions: Ids
    rows: Ids
    square: Ids
    places: Ids
    last: Ids
    starts: Ids
    end: int

    @classmethod
    def of(cls, pieces: Sequence[Piece], grain: int = 1) -> Ragged:
        """Lay pieces out, their width rounded up to a multiple of ``grain``."""
        sizes = np.array([len(p.ids) for p in pieces])
        starts = np.array([p.start for p in pieces])
        ends = sizes.cumsum()
        within = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
        owner = np.repeat(np.arange(len(pieces)), sizes)
        width = round_up(int(sizes.max()), grain)
        column = np.minimum(np.arange(width)[None], sizes[:, None] - 1)
        return cls(
            ids=np.concatenate([p.ids for p in pieces]).astype(np.int64, copy=False),
            positions=np.repeat(starts, sizes) + within,
            rows=np.repeat(np.array([p.row for p in pieces]), sizes),
            square=(ends - sizes)[:, None] + column,
            places=owner * width + within,
            last=ends - 1,
            starts=starts,
            end=int((starts + sizes).max()),
        )


def visible(positions: torch.Tensor, n: int, window: int | None = None) -> torch.Tensor:
    """True where a key ``0..n-1`` may be seen from ``positions``: ``[..., n]``.

    Args:
        positions: Of queries.
        n: Keys.
        window: How many of them a query sees, its own the last; None for all.
    """
    keys = torch.arange(n, device=positions.device)
    seen = keys <= positions[..., None]
    return seen if window is None else seen & (keys > positions[..., None] - window)


@dataclass(frozen=True, slots=True)
class Front:
    """The first rows of the pool, among them the asked ones; the others ride along.

    Attributes:
        tokens: One for each row of the front, any for those that ride along, ``[count]``.
        end: Maximum tokens that an asked row holds, the new one included.
        asked: Places of the asked rows, None where the front is just these in their order.
    """

    tokens: Ids
    end: int
    asked: Ids | None

    @classmethod
    def of(cls, pool: KvPool, rows: Ids, tokens: Ids) -> Front:
        """Return the front that reaches the last of ``rows``."""
        count = min(-(-(int(rows.max()) + 1) // 8) * 8, pool.rows)
        fed = np.zeros(count, dtype=np.int64)
        fed[rows] = tokens
        alike = len(rows) == count and bool((rows == np.arange(count)).all())
        return cls(fed, int(pool.lengths[rows].max()) + 1, None if alike else rows)
