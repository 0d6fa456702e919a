"""The base of every index on the disk, however it searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....core.fork import Shared
from ....core.settings import check_integer
from ..base import Hit
from .factory import open_index
from .manifest import Manifest
from .passages import Passages


class DiskIndex(Shared, ABC):
    """An index over a passage file; a kind of index adds how it searches.

    Copies and forks share it, pickles carry its path.

    Args:
        folder: The index.
        manifest: Its facts.
        corpus: Where the passage file is now, if it was moved.

    Raises:
        DataError: The passage file is missing, or is not the one that was indexed.
    """

    def __init__(self, folder: Path, manifest: Manifest, corpus: str | Path | None = None) -> None:
        self.folder, self.manifest, self._corpus = Path(folder), manifest, corpus
        self.passages = Passages(self.folder, manifest, corpus)

    def __len__(self) -> int:
        return len(self.passages)

    def __reduce__(self) -> Any:
        return open_index, (str(self.folder.resolve()), self._corpus)

    @property
    def identity(self) -> str:
        """Which index it is, for caches of its answers."""
        return self.manifest.identity

    def row(self, hit: Hit) -> dict[str, Any] | None:
        """Return the corpus row of a hit, as it was written."""
        return self.passages.find(hit.id)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most ``k`` passages for each query, best first.

        Raises:
            BadValueError: ``k`` is below 1.
        """
        check_integer("k", k, f"{type(self).__name__}.search", min=1)
        return self._search(queries, k)

    @abstractmethod
    def _search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Run :meth:`search` with a ``k`` of at least 1."""
