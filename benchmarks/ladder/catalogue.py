"""All suites of the ladder, and those of real environments beside it, by name."""

from __future__ import annotations

from collections.abc import Mapping

from ..matrix.suite import Suite
from .stale_suites import LADDER_STALE_GRID
from .suites import (
    HOUSEHOLD,
    HOUSEHOLD_CRITICS,
    LADDER,
    LADDER_EDGE_RATES,
    LADDER_EQUAL_RATES,
    LADDER_FULL,
    LADDER_RATES,
    LADDER_STATE,
    LADDER_WIDE_RATES,
    RETAIL_SCALE,
    SCIENCE_TURNS,
    SEPARATING,
    TURNS,
)

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        LADDER,
        LADDER_FULL,
        LADDER_STATE,
        LADDER_RATES,
        LADDER_EDGE_RATES,
        LADDER_EQUAL_RATES,
        LADDER_STALE_GRID,
        LADDER_WIDE_RATES,
        SEPARATING,
        HOUSEHOLD,
        HOUSEHOLD_CRITICS,
        SCIENCE_TURNS,
        RETAIL_SCALE,
        TURNS,
    )
}
