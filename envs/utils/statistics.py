"""Means with intervals, tests of one agent against another, and pass@k.

Everything is deterministic: the same numbers always give the same intervals and p-values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from ..core.errors import BadValueError

RESAMPLES = 2000
"""Samples of every bootstrap."""
PERMUTATIONS = 9999
"""Sign patterns that are tried at most; up to 13 tasks that differ have fewer, and all are."""
SAME = 1e-9
"""Values that differ by less, relative to their size above 1, are the same but for rounding."""
_BLOCK = 500
_SIGNS = 1 << 23
"""Most random signs that are drawn at a time, some 550 MB: smaller batches take longer."""
Floats = npt.NDArray[np.float64]


class Estimate(BaseModel):
    """A mean with its 95 % interval."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    mean: float
    low95: float
    high95: float


class Paired(NamedTuple):
    """How two agents differ on the same tasks.

    Attributes:
        n: Tasks.
        difference: Mean of ours minus theirs.
        low95: Lower end of its 95 % bootstrap interval over tasks.
        high95: Upper end.
        p_value: Two-sided sign-flip permutation test; 1 where nothing differs.
        wilcoxon: Two-sided p-value of Wilcoxon's signed-rank test; 1 where nothing differs.
    """

    n: int
    difference: float
    low95: float
    high95: float
    p_value: float
    wilcoxon: float


class OverRuns(NamedTuple):
    """The mean of one number per training run.

    Attributes:
        n: Runs.
        mean: Mean over the runs.
        low95: Lower end of Student's 95 % interval.
        high95: Upper end.
        p_value: Two-sided, against the bound; 1 where all values equal it.
    """

    n: int
    mean: float
    low95: float
    high95: float
    p_value: float


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean and the bootstrap interval of one sample.

    Equal values, a single one or none give an interval of no width (0 for none): resampling
    cannot widen them. Outcomes of 0 and 1 have a better one, :func:`estimate_scores`.
    """
    return bootstrap_mean([values]) if len(values) else Estimate(mean=0.0, low95=0.0, high95=0.0)


def estimate_share(samples: Sequence[Sequence[float] | Floats]) -> Estimate:
    """Return the mean share of successes in the samples with a 95 % interval.

    One sample has the exact interval of Clopper and Pearson (1934), which holds the true share in
    at least 95 % of cases, whatever it is: where 0 of 24 tasks are solved it ends at 14.2 %, while
    resampling cannot leave 0. A mean of several shares is as far from the ends of its interval as
    independent errors add up: the root of the sum of their squared distances, over their number
    (Zou and Donner 2008, "method of variance estimates recovery").

    Args:
        samples: Of 0 and 1; each weighs the same. No sample, or one empty one, gives 0.

    Raises:
        BadValueError: Another value; one of several samples is empty.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if not arrays or (len(arrays) == 1 and not len(arrays[0])):
        return Estimate(mean=0.0, low95=0.0, high95=0.0)
    if any(len(array) == 0 or not has_outcomes(array) for array in arrays):
        raise BadValueError("estimate_share: expected samples of 0 and 1, at least one value each.")
    from scipy.special import betaincinv  # slow to import

    sizes = np.asarray([len(array) for array in arrays], dtype=np.float64)
    solved = np.asarray([array.sum() for array in arrays])
    shares, failed = solved / sizes, sizes - solved
    # the quantiles of beta distributions; at either end there is nothing beyond
    low = np.where(solved > 0, betaincinv(np.maximum(solved, 1), failed + 1, 0.025), 0.0)
    high = np.where(failed > 0, betaincinv(solved + 1, np.maximum(failed, 1), 0.975), 1.0)
    mean = float(shares.mean())
    below, above = (float(np.sqrt(np.sum((shares - end) ** 2))) for end in (low, high))
    return Estimate(
        mean=mean,
        low95=max(0.0, mean - below / len(arrays)),
        high95=min(1.0, mean + above / len(arrays)),
    )


def share_gain(before: Estimate, after: Estimate) -> Estimate:
    """Return what a share gained with a 95 % interval, from the two shares' own intervals.

    The tasks of both count as drawn apart, so for the same tasks it is wider than need be
    (Newcombe 1998, "Interval estimation for the difference between independent proportions",
    method 10, here from exact intervals).
    """
    gain = after.mean - before.mean
    down = np.hypot(after.mean - after.low95, before.high95 - before.mean)
    up = np.hypot(after.high95 - after.mean, before.mean - before.low95)
    return Estimate(mean=gain, low95=float(gain - down), high95=float(gain + up))


def has_outcomes(values: Sequence[float] | Floats) -> bool:
    """Return whether all values are 0 or 1: solved or not."""
    return bool(np.isin(values, (0.0, 1.0)).all())


def bootstrap_mean(samples: Sequence[Sequence[float] | Floats]) -> Estimate:
    """Return the mean of the samples' means with a 95 % percentile bootstrap interval.

    Each sample (the tasks of an environment) is resampled by itself, so which samples there are is
    not left to chance, and every sample weighs the same.

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
        return Estimate(mean=mean, low95=mean, high95=mean)
    if any(len(array) == 1 for array in arrays):  # which scipy refuses
        return estimate_of_means(samples)
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
    return Estimate(mean=mean, low95=float(interval.low), high95=float(interval.high))


def estimate_of_means(samples: Sequence[Sequence[float] | Floats]) -> Estimate:
    """Return what :func:`bootstrap_mean` does, from samples of ten thousands of values.

    They are resampled one after the other, so that memory holds one of them. No sample gives 0.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if len(arrays) < 2:
        return estimate(arrays[0].tolist() if arrays else [])
    mean = float(np.mean([array.mean() for array in arrays]))
    if all(array.max() == array.min() for array in arrays):
        return Estimate(mean=mean, low95=mean, high95=mean)
    rng = np.random.default_rng(0)
    total = np.zeros(RESAMPLES)
    for array in arrays:
        total += _resampled_means(array, rng, RESAMPLES)
    return _percentile_interval(mean, total / len(arrays))


def estimate_scores(samples: Sequence[Sequence[float] | Floats]) -> Estimate:
    """Return the mean of the samples' means with the 95 % interval that fits their values.

    Values of 0 and 1 have the exact one of :func:`estimate_share`, so that a return which is 1 for
    a solved task and 0 for another has the interval of the success; others are resampled as in
    :func:`estimate_of_means`. No sample, or one empty one, gives 0.
    """
    exact = all(len(sample) and has_outcomes(sample) for sample in samples)
    return (estimate_share if exact else estimate_of_means)(samples)


def over_runs(values: Sequence[float], bound: float = 0.0) -> OverRuns:
    """Return Student's t interval and test over runs, for numbers that a run has only one of.

    Args:
        values: One per training seed; for a comparison ours minus theirs.
        bound: What the mean is tested against.

    Raises:
        BadValueError: Less than two runs, or a value that is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2 or not bool(np.isfinite(array).all()):
        raise BadValueError(
            f"comparison over runs: {array.tolist()}; expected at least two finite numbers."
        )
    mean = float(array.mean())
    if bool((array == array[0]).all()):
        return OverRuns(len(array), mean, mean, mean, 1.0 if array[0] == bound else 0.0)
    from scipy.stats import ttest_1samp  # slow to import

    test: Any = ttest_1samp(array, bound)
    ends: Any = test.confidence_interval(0.95)
    return OverRuns(len(array), mean, float(ends.low), float(ends.high), float(test.pvalue))


def student_mean(values: Sequence[float]) -> Estimate:
    """Return the mean of a few runs with Student's 95 % interval; see :func:`over_runs`."""
    runs = over_runs(values)
    return Estimate(mean=runs.mean, low95=runs.low95, high95=runs.high95)


def task_gaps(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the differences of two agents task by task, ours less theirs; of rounding alone, none.

    Sums of the same rewards, and means of the same values in another order, differ in the last
    digits, and a test of signs would count each of them.

    Args:
        ours: Our agent's value of each task.
        theirs: The other one's, in the same order of tasks.

    Raises:
        BadValueError: No tasks, or not the same number.
    """
    if len(ours) != len(theirs) or not len(ours):
        raise BadValueError(
            f"paired test: {len(ours)} and {len(theirs)} values; expected one per task of both."
        )
    first, second = (np.asarray(side, dtype=np.float64) for side in (ours, theirs))
    same = np.isfinite(first) & np.isclose(first, second, rtol=SAME, atol=SAME)
    return np.where(same, 0.0, first - second).tolist()


def sign_flip_p(differences: Sequence[float] | Floats) -> float:
    """Return the p-value of the two-sided paired permutation test: as often up as down?

    Were both agents the same, each task's difference could as well have the other sign. All
    patterns of signs are tried for up to 13 tasks that differ, 9,999 random ones beyond.

    Args:
        differences: One per task, of two agents that played the same tasks (:func:`task_gaps`);
            weighted where tasks weigh differently.
    """
    array = np.asarray(differences, dtype=np.float64)
    array = array[array != 0.0]  # a task without a difference has no sign to flip
    if len(array) < 2:  # a single sign is as likely up as down
        return 1.0
    from scipy.stats import permutation_test  # slow to import

    # With one sample per call, `samples` permutes by changing signs. The p-value is the same in
    # batches of any size; of 500 patterns at a time 80,000 tasks took 2.6 GB.
    found: Any = permutation_test(
        (array,),
        np.sum,
        permutation_type="samples",
        n_resamples=PERMUTATIONS,
        batch=max(1, min(_BLOCK, _SIGNS // len(array))),
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def mcnemar_p(gained: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test: as many tasks gained as lost?

    Tasks that both agents solve, or neither, say nothing about which is better; were the agents
    equal, each of the others would be as likely gained as lost.

    Args:
        gained: Tasks that only our agent solves.
        lost: Tasks that only the other one solves.

    Raises:
        BadValueError: A number below 0.
    """
    if gained < 0 or lost < 0:
        raise BadValueError(
            f"mcnemar_p: {gained} gained and {lost} lost; expected numbers of tasks, 0 or more."
        )
    if not gained + lost:
        return 1.0
    from scipy.stats import binomtest  # slow to import

    return float(binomtest(gained, gained + lost).pvalue)


def paired_share(ours: Sequence[bool], theirs: Sequence[bool]) -> Estimate:
    """Return the difference of two shares of solved tasks, ours less theirs, on the same tasks.

    The 95 % interval is Student's t over the tasks' differences, cut at -1 and 1. Where all tasks
    differ by the same (mostly: none differs) t has no deviation, and the interval is that of the
    exact bound of Clopper and Pearson on the share of tasks that do otherwise: 20 tasks without a
    difference leave 16.8 points to either side.

    Args:
        ours: Whether our agent solved each task.
        theirs: Whether the other one did, in the same order of tasks.

    Raises:
        BadValueError: No tasks, or not the same number.
    """
    gaps = task_gaps([float(x) for x in ours], [float(x) for x in theirs])
    if len(set(gaps)) > 1:
        found = student_mean(gaps)
        low, high = max(-1.0, found.low95), min(1.0, found.high95)
        return Estimate(mean=found.mean, low95=low, high95=high)
    otherwise = 1 - 0.025 ** (1 / len(gaps))
    if gaps[0] == 0:  # at most all that do otherwise are gained, or all are lost
        return Estimate(mean=0.0, low95=-otherwise, high95=otherwise)
    if gaps[0] > 0:  # what is not gained may be lost
        return Estimate(mean=1.0, low95=1 - 2 * otherwise, high95=1.0)
    return Estimate(mean=-1.0, low95=-1.0, high95=2 * otherwise - 1)


def paired_mean(ours: Sequence[float], theirs: Sequence[float]) -> Estimate | None:
    """Return the difference of two means, ours less theirs, on the same tasks.

    The 95 % interval is Student's t over the tasks' differences. None where all tasks differ by the
    same (but for rounding), or there is one: nothing bounds the others then.

    Args:
        ours: Our agent's value of each task.
        theirs: The other one's, in the same order of tasks.

    Raises:
        BadValueError: No tasks, not the same number, or a value that is not finite.
    """
    gaps = task_gaps(ours, theirs)
    rounding = SAME * max(1.0, *(abs(x) for x in (*ours, *theirs)))
    spread = max(gaps) - min(gaps)
    return student_mean(gaps) if rounding < spread < math.inf else None


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Compare two agents task by task.

    Args:
        ours: One value per task (a mean over its tries).
        theirs: The other agent's, in the same order of tasks.

    Raises:
        BadValueError: No tasks, or not the same number.
    """
    gaps = np.asarray(task_gaps(ours, theirs), dtype=np.float64)
    mean = estimate(gaps.tolist())
    nonzero = gaps[gaps != 0]
    wilcoxon_p = 1.0
    if len(nonzero) > 1:
        from scipy.stats import wilcoxon  # slow to import

        signed: Any = wilcoxon(nonzero, method="approx")
        wilcoxon_p = float(signed.pvalue)
    return Paired(
        n=len(gaps),
        difference=mean.mean,
        low95=mean.low95,
        high95=mean.high95,
        p_value=sign_flip_p(gaps),
        wilcoxon=wilcoxon_p,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their number after Holm, in the order given.

    Rejecting those at or below 0.05 makes any false rejection at most 5 % likely.

    Raises:
        BadValueError: A value outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise BadValueError(f"holm: p-values {list(p_values)}; expected numbers from 0 to 1.")
    adjusted = [0.0] * len(p_values)
    lowest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        lowest = max(lowest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = lowest
    return adjusted


def pass_at(successes: int, trials: int, k: int) -> float:
    """Return pass@k: the unbiased chance that one of ``k`` fresh trials succeeds (2107.03374).

    Args:
        successes: Trials that solved the task.
        trials: Trials that were made.
        k: Trials that the chance is asked for; at most ``trials``.

    Raises:
        BadValueError: The numbers do not fit.
    """
    _check_k(successes, trials, k)
    return 1.0 - comb(trials - successes, k) / comb(trials, k)


def pass_all(successes: int, trials: int, k: int) -> float:
    """Return pass^k: the unbiased chance that all of ``k`` fresh trials succeed (2406.12045).

    Args and errors are those of :func:`pass_at`.
    """
    _check_k(successes, trials, k)
    return comb(successes, k) / comb(trials, k)


def _check_k(successes: int, trials: int, k: int) -> None:
    if not (0 <= successes <= trials and 1 <= k <= trials):
        raise BadValueError(
            f"pass@k: {successes} successes, {trials} trials, k = {k}; expected 0 <= successes <= "
            "trials and 1 <= k <= trials."
        )


def _percentile_interval(mean: float, drawn: Sequence[float] | Floats) -> Estimate:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(mean=mean, low95=float(min(low, mean)), high95=float(max(high, mean)))


def _resampled_means(values: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    out = np.empty(resamples)
    block = max(1, 1_000_000 // len(values))  # a million draws at a time
    for at in range(0, resamples, block):
        rows = min(block, resamples - at)
        out[at : at + rows] = values[rng.integers(len(values), size=(rows, len(values)))].mean(1)
    return out
