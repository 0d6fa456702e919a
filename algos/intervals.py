"""Means with their bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .result import Estimate

RESAMPLES = 2000


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and 95 % percentile bootstrap interval of a sample; always the same for the same one.

    Equal values, a single one or none give an interval of no width (0 for none): resampling
    cannot widen them.
    """
    if len(values) == 0:
        return Estimate(mean=0.0, low95=0.0, high95=0.0)
    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    if sample.max() == sample.min():
        return Estimate(mean=mean, low95=mean, high95=mean)
    from scipy.stats import bootstrap  # slow to import

    interval = bootstrap(
        (sample,),
        np.mean,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Estimate(mean=mean, low95=float(interval.low), high95=float(interval.high))
