"""Searching a dense index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...envs.core.errors import DataError, MissingExtraError
from ...envs.tools.retrieval.base import Hit
from ...envs.tools.retrieval.index.disk_index import DiskIndex
from ...envs.tools.retrieval.index.files import map_array
from ...envs.tools.retrieval.index.manifest import Manifest
from .dense_build import EMBEDDINGS, FAISS, make_encoder
from .encoder import encoder_digest

_BLOCK = 65_536


class DenseIndex(DiskIndex):
    """Passages by inner product of unit vectors: exact (``flat``) or approximate by faiss.

    Equal scores keep the order of the corpus. A query without any character finds nothing.

    Args:
        folder: The index.
        manifest: Its facts.
        corpus: Where the passage file is now, if it was moved.

    Raises:
        MissingExtraError: Without faiss or sentence-transformers.
        DataError: The passage file is missing or another one; or the encoder is not there, is
            another one, or gives vectors of another dimension.
    """

    def __init__(self, folder: Path, manifest: Manifest, corpus: str | Path | None = None) -> None:
        try:
            import faiss
        except ImportError:
            raise MissingExtraError("A dense index", "faiss-cpu", "dense") from None
        super().__init__(folder, manifest, corpus)
        self._faiss = faiss
        settings = manifest.settings
        self._index: Any = None
        if manifest.kind == "flat":
            self._vectors = map_array(self.folder / EMBEDDINGS)
            dim = self._vectors.shape[1]
        else:
            self._index = self._read()
            dim = self._index.d
        self._encoder = make_encoder(settings)
        if self._encoder.dim != dim:
            raise DataError(
                f"{folder}: holds vectors of dimension {dim}, but the encoder "
                f"{settings['encoder']} gives {self._encoder.dim}; build the index again."
            )
        if encoder_digest(settings["encoder"]) != settings["encoder_digest"]:
            raise DataError(
                f"{folder}: was built with another encoder than {settings['encoder']} is now; put "
                "the old one back, or build the index again."
            )

    def _search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found: list[list[Hit]] = [[] for _ in queries]
        asked = [i for i, query in enumerate(queries) if query.strip()]
        if not asked:
            return found
        vectors = self._encoder.encode([queries[i] for i in asked], "query")
        scores, numbers = self.nearest(vectors, min(k, len(self)))
        for i, row, near in zip(asked, scores, numbers, strict=True):
            found[i] = [
                self.passages.hit(int(n), float(s))
                for s, n in zip(row, near, strict=True)
                if n >= 0
            ]
        return found

    def nearest(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and numbers ``[queries, k]`` of the nearest passages; number -1 is none."""
        if self._index is not None:
            return self._index.search(vectors, k)
        best_scores = np.full((len(vectors), k), -np.inf, dtype=np.float32)
        best = np.full((len(vectors), k), -1, dtype=np.int64)
        for start in range(0, len(self._vectors), _BLOCK):
            block = np.asarray(self._vectors[start : start + _BLOCK], dtype=np.float32)
            scores, near = self._faiss.knn(
                vectors, block, min(k, len(block)), metric=self._faiss.METRIC_INNER_PRODUCT
            )
            scores = np.concatenate([best_scores, scores], axis=1)
            near = np.concatenate([best, near + start], axis=1)
            order = np.lexsort((near, -scores), axis=1)[:, :k]
            best_scores = np.take_along_axis(scores, order, axis=1)
            best = np.take_along_axis(near, order, axis=1)
        return best_scores, best

    def _read(self) -> Any:
        path = self.folder / FAISS
        flags = self._faiss.IO_FLAG_MMAP | self._faiss.IO_FLAG_READ_ONLY
        try:
            if self.manifest.kind == "ivfpq":
                index: Any = self._faiss.read_index(str(path), flags)
                index.nprobe = min(int(self.manifest.settings["probes"]), index.nlist)
                return index
            index = self._faiss.read_index(str(path))
        except RuntimeError as error:
            raise DataError(f"{path}: cannot be read ({error}); build the index again.") from None
        index.hnsw.efSearch = int(self.manifest.settings["ef_search"])
        return index
