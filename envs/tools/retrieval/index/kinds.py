"""The kinds of index: what builds each, what opens it, and what checks its settings.

Everything is named by entry points, so that the dense kinds, which need further packages, cost
nothing until one is used. Those are the only names of :mod:`turngym.agents` in this folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class IndexKind(NamedTuple):
    """A kind of index, by entry points.

    Attributes:
        build: Function of a plan and a number of passages that finishes the index.
        open: Class of a folder, a manifest and a corpus that searches it.
        check: Function of the kind and the given settings that returns all settings.
        blocks: Class whose objects add arrays to each block of passages; empty for none.
    """

    build: str
    open: str
    check: str
    blocks: str = ""


_DENSE = IndexKind(
    build="turngym.agents.retrieval.dense_build:build_dense",
    open="turngym.agents.retrieval.dense:DenseIndex",
    check="turngym.agents.retrieval.dense_build:checked_settings",
)
INDEX_KINDS: Mapping[str, IndexKind] = {
    "bm25": IndexKind(
        build=".bm25_build:build_bm25",
        open=".bm25:Bm25Index",
        check=".bm25_build:check_bm25_settings",
        blocks=".bm25_build:PostingBlocks",
    ),
    "flat": _DENSE,
    "hnsw": _DENSE,
    "ivfpq": _DENSE,
}


def load_entry(entry: str) -> Any:
    """Return what an entry point ``module:name`` means; modules with a dot are of this folder."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module, __package__), name)
