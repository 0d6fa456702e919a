"""Indexes on disk over passage files of any size: built in blocks, resumable, memory-mapped.

``build_index`` makes one, ``open_index`` and ``open_indexes`` search it. BM25 needs the core
install alone; dense kinds live in :mod:`turngym.agents.retrieval` and are found by name.
"""

from .factory import open_index, open_indexes
from .hybrid import Hybrid
from .manifest import Manifest, read_manifest

__all__ = ["Hybrid", "Manifest", "open_index", "open_indexes", "read_manifest"]
