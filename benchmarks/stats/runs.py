"""Few runs: whether the mean of one number per training seed lies above a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...envs.errors import BadValueError


class OverRuns(NamedTuple):
    """Differences of runs with the same seeds.

    Attributes:
        n: Runs.
        mean: Mean difference.
        low95: Lower end of Student's 95 % interval.
        high95: Upper end.
        p_value: Two-sided, against the bound; 1 where all differences equal it.
    """

    n: int
    mean: float
    low95: float
    high95: float
    p_value: float


def over_runs(differences: Sequence[float], bound: float = 0.0) -> OverRuns:
    """Student's t over runs, for numbers that a run has only one of.

    Args:
        differences: Ours minus theirs, one per seed.
        bound: What the mean is tested against.

    Raises:
        BadValueError: Less than two runs, or a value that is not finite.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2 or not bool(np.isfinite(values).all()):
        raise BadValueError(
            f"comparison over runs: {values.tolist()}; expected at least two finite numbers."
        )
    mean = float(values.mean())
    if bool((values == values[0]).all()):
        return OverRuns(len(values), mean, mean, mean, 1.0 if mean == bound else 0.0)
    from scipy.stats import ttest_1samp  # slow to import

    test: Any = ttest_1samp(values, bound)
    ends: Any = test.confidence_interval(0.95)
    return OverRuns(len(values), mean, float(ends.low), float(ends.high), float(test.pvalue))
