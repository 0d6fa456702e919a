"""The benchmark matrix: every recipe on every environment under one budget, and its report."""

from .cell import Cell, CellResult
from .run import run_matrix
from .suite import Suite
from .suites import SUITES

__all__ = ["SUITES", "Cell", "CellResult", "Suite", "run_matrix"]
