"""The suites of the board: their definitions, and the frozen JSON files with every digest."""

from __future__ import annotations

from .definitions import DRAFTS, draft
from .files import load_suite, suite_ids, write_suite

__all__ = ["DRAFTS", "draft", "load_suite", "suite_ids", "write_suite"]
