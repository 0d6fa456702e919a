"""Means with intervals, pass@k and pass^k, and paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import numpy.typing as npt

from ..envs.errors import BadValueError
from .schema.result import Estimate

RESAMPLES = 2000
PERMUTATIONS = 9999
_BLOCK = 500
Floats = npt.NDArray[np.float64]


def bootstrap_mean(samples: Sequence[Sequence[float]]) -> Estimate:
    """Mean of the samples' means with a 95 % percentile interval; the same for the same samples.

    Each sample (the tasks of a world) is resampled by itself, so which worlds there are is not
    left to chance, and every world weighs the same.

    Args:
        samples: At least one, none of them empty.

    Raises:
        BadValueError: A sample is empty, or there is none.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if not arrays or any(len(array) == 0 for array in arrays):
        raise BadValueError("bootstrap_mean: a sample is empty; expected at least one value each.")
    mean = float(np.mean([array.mean() for array in arrays]))
    if all(array.max() == array.min() for array in arrays):
        return Estimate(mean=mean, low=mean, high=mean)
    from scipy.stats import bootstrap  # slow to import

    def statistic(*data: Floats, axis: int) -> Floats:
        return np.mean([part.mean(axis=axis) for part in data], axis=0)

    interval = bootstrap(
        arrays,
        statistic,
        n_resamples=RESAMPLES,
        batch=_BLOCK,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Estimate(mean=mean, low=float(interval.low), high=float(interval.high))


def student_mean(values: Sequence[float]) -> Estimate:
    """Mean of a few runs with Student's 95 % interval.

    Raises:
        BadValueError: Fewer than two values.
    """
    if len(values) < 2:
        raise BadValueError(f"student_mean: {len(values)} value; an interval needs two or more.")
    from scipy.stats import t

    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    half = float(t.ppf(0.975, len(sample) - 1)) * float(sample.std(ddof=1)) / len(sample) ** 0.5
    return Estimate(mean=mean, low=mean - half, high=mean + half)


def pass_at(successes: int, trials: int, k: int) -> float:
    """Unbiased chance that at least one of ``k`` fresh trials is solved."""
    _check_k(successes, trials, k)
    return 1.0 - comb(trials - successes, k) / comb(trials, k)


def pass_all(successes: int, trials: int, k: int) -> float:
    """Unbiased chance that all of ``k`` fresh trials are solved (pass^k)."""
    _check_k(successes, trials, k)
    return comb(successes, k) / comb(trials, k)


def _check_k(successes: int, trials: int, k: int) -> None:
    if not (0 <= successes <= trials and 1 <= k <= trials):
        raise BadValueError(
            f"pass@k: {successes} successes, {trials} trials, k = {k}; expected 0 <= successes <= "
            "trials and 1 <= k <= trials."
        )


def sign_flip_p(differences: Sequence[float], weights: Sequence[float]) -> float:
    """Two-sided paired permutation test: are the weighted differences as often up as down?

    Args:
        differences: One per task, of two entries that played the same tasks.
        weights: Of the tasks, so that the sum of the products is the difference of the means.
    """
    part = np.asarray(differences, dtype=np.float64) * np.asarray(weights, dtype=np.float64)
    part = part[part != 0.0]
    if len(part) < 2:  # a single sign is as likely up as down
        return 1.0
    from scipy.stats import permutation_test

    # With one sample per call, `samples` permutes by changing signs.
    found = permutation_test(
        (part,),
        lambda x, axis: np.sum(x, axis=axis),
        permutation_type="samples",
        n_resamples=PERMUTATIONS,
        batch=_BLOCK,
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
