"""Means of several runs, with bootstrap intervals that keep the runs apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...algos.result import Estimate
from ...envs.errors import BadValueError

RESAMPLES = 2000
Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], float]
"""Of the means of the strata."""


def interquartile_mean(values: Sequence[float] | Floats) -> float:
    """Mean of the middle half: a quarter is cut at each end.

    Where a quarter is not a whole number of values, the fraction that remains weighs less, so that
    no value jumps in or out when one more is added.

    Raises:
        BadValueError: No values, or one that is not finite.
    """
    ordered = np.sort(_finite(values, "interquartile mean"))
    n = len(ordered)
    # Value i covers the share [i / n, (i + 1) / n]; what of it lies in the middle half counts.
    edges = np.arange(n + 1) / n
    weights = np.clip(edges[1:], 0.25, 0.75) - np.clip(edges[:-1], 0.25, 0.75)
    return float(weights @ ordered / weights.sum())


def stratified(
    strata: Sequence[Sequence[float] | Floats],
    statistic: Statistic | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """A statistic of the strata's means with its 95 % percentile bootstrap interval.

    Each stratum (a training seed, say) is resampled by itself and counts the same, however many
    values it has. The same strata always give the same interval.

    Args:
        strata: Values, one sequence per stratum.
        statistic: Of the strata's means; left out: their mean.
        resamples: Bootstrap samples.
        seed: Of the resampling.

    Raises:
        BadValueError: No strata, an empty one, or a value that is not finite.
    """
    runs = {str(i): [values] for i, values in enumerate(strata)}
    return two_stage(runs, statistic, resamples, seed)


def two_stage(
    worlds: Mapping[str, Sequence[Sequence[float] | Floats]],
    statistic: Statistic | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """A statistic of the worlds' means, resampling runs within worlds and episodes within runs.

    Worlds are given, not drawn: they are never resampled. Of each world, as many runs as it has are
    drawn with replacement, and of every drawn run as many episodes. With one run per world the
    interval covers the choice of tasks alone.

    Args:
        worlds: Of each world its runs, of each run its episodes' values.
        statistic: Of the worlds' means; left out: their mean.
        resamples: Bootstrap samples.
        seed: Of the resampling.

    Raises:
        BadValueError: Nothing to take a mean of, or a value that is not finite.
    """
    if not worlds or not all(worlds.values()):
        raise BadValueError("bootstrap: there is a world without a run; leave it out.")
    take = statistic or _mean
    rng = np.random.default_rng(seed)
    point = np.empty(len(worlds))
    drawn = np.empty((resamples, len(worlds)))
    for at, runs in enumerate(worlds.values()):
        arrays = [_finite(run, "bootstrap") for run in runs]
        point[at] = np.mean([run.mean() for run in arrays])
        drawn[:, at] = _drawn(arrays, rng, resamples)
    mean = float(take(point))
    if bool((drawn == point).all()):
        return Estimate(mean=mean, low95=mean, high95=mean)
    low, high = np.percentile([float(take(row)) for row in drawn], [2.5, 97.5])
    return Estimate(mean=mean, low95=float(min(low, mean)), high95=float(max(high, mean)))


def _drawn(runs: Sequence[Floats], rng: np.random.Generator, resamples: int) -> Floats:
    """Means of resampled runs of resampled episodes, one per bootstrap sample."""
    if len(runs) == 1:
        return _means(runs[0], rng, resamples)
    total = np.zeros(resamples)
    for _ in runs:
        # A run that is drawn twice brings other episodes the second time.
        fresh = np.stack([_means(run, rng, resamples) for run in runs])
        chosen = rng.integers(len(runs), size=resamples)
        total += fresh[chosen, np.arange(resamples)]
    return total / len(runs)


def _means(values: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    if values.max() == values.min():
        return np.full(resamples, values.mean())
    out = np.empty(resamples)
    block = max(1, 1_000_000 // len(values))  # a million draws at a time
    for at in range(0, resamples, block):
        rows = min(block, resamples - at)
        out[at : at + rows] = values[rng.integers(len(values), size=(rows, len(values)))].mean(1)
    return out


def _finite(values: Sequence[float] | Floats, who: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not bool(np.isfinite(array).all()):
        raise BadValueError(
            f"{who}: got {array.tolist()!r}; expected finite numbers, at least one."
        )
    return array


def _mean(values: Floats) -> float:
    return float(values.mean())
