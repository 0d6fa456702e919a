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


def estimate_of_means(samples: Sequence[Sequence[float]]) -> Estimate:
    """Mean of the samples' means, each of the same weight, with an interval as of :func:`estimate`.

    Every sample is resampled by itself: which samples there are is not left to chance. One sample
    gives what :func:`estimate` gives.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if len(arrays) < 2:
        return estimate(arrays[0].tolist() if arrays else [])
    mean = float(np.mean([array.mean() for array in arrays]))
    if all(array.max() == array.min() for array in arrays):
        return Estimate(mean=mean, low95=mean, high95=mean)
    rng = np.random.default_rng(0)
    total = np.zeros(RESAMPLES)
    for array in arrays:  # a row at a time: sets of ten thousand would fill the memory
        for i in range(RESAMPLES):
            total[i] += array[rng.integers(len(array), size=len(array))].mean()
    low, high = np.percentile(total / len(arrays), [2.5, 97.5])
    return Estimate(mean=mean, low95=float(min(low, mean)), high95=float(max(high, mean)))
