"""One agent against another: paired tests over tasks, probability of improvement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algos.intervals import estimate
from ...envs.errors import BadValueError

RESAMPLES = 9999
"""Sign patterns that are tried at most; up to 13 tasks that differ have fewer, and all are."""


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


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Compare two agents task by task; the same numbers always give the same answer.

    Were both agents the same, each task's difference could as well have the other sign. All
    patterns of signs are tried for up to 13 tasks that differ, 9,999 random ones beyond.

    Args:
        ours: One value per task (a mean over its tries).
        theirs: The other agent's, in the same order of tasks.

    Raises:
        BadValueError: No tasks, or not the same number.
    """
    if len(ours) != len(theirs) or not len(ours):
        raise BadValueError(
            f"paired test: {len(ours)} and {len(theirs)} values; expected one per task of both."
        )
    from scipy.stats import permutation_test, wilcoxon  # slow to import

    gaps = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    mean = estimate(gaps.tolist())
    told = gaps[gaps != 0]  # a task without a difference has no sign to flip
    if len(told) == 0:
        return Paired(len(gaps), 0.0, 0.0, 0.0, 1.0, 1.0)
    if len(told) == 1:  # both signs are as likely
        return Paired(len(gaps), mean.mean, mean.low95, mean.high95, 1.0, 1.0)
    test: Any = permutation_test(
        (told,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    signed: Any = wilcoxon(told, method="approx")
    return Paired(
        n=len(gaps),
        difference=mean.mean,
        low95=mean.low95,
        high95=mean.high95,
        p_value=float(test.pvalue),
        wilcoxon=float(signed.pvalue),
    )


def improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Probability that a value of ours exceeds one of theirs, equal ones counting half.

    Raises:
        BadValueError: A side without values.
    """
    if not len(ours) or not len(theirs):
        raise BadValueError("probability of improvement: a side has no values.")
    from scipy.stats import mannwhitneyu

    u = mannwhitneyu(ours, theirs, method="asymptotic").statistic
    return float(u) / (len(ours) * len(theirs))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number after Holm, in the order given.

    Rejecting those at or below 0.05 makes any false rejection at most 5 % likely.

    Raises:
        BadValueError: A value outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise BadValueError(f"holm: p-values {list(p_values)}; expected numbers from 0 to 1.")
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = least
    return adjusted
