"""The rule for verdicts, fixed before anything is run.

A comparison is the difference of two arms, paired by seed and task.

1. Both arms within 3 points of the floor, or of the ceiling, of a share: not decided.
2. The 95 % interval lies wholly below margin + min_effect: not reproduced. The effect is absent
   or too small to matter.
3. The interval lies wholly above the margin, and the paired test gives p <= 0.05 after Holm:
   reproduced.
4. Else: not decided.

The interval resamples seeds and, within them, tasks; the test flips the signs of the tasks' mean
differences. Metrics with one value per seed are tested by Student's t over seeds.
A claim is reproduced when all of its comparisons are, and not reproduced when one is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...envs.utils.statistics import holm, over_runs, paired, two_stage
from .claim import Comparison
from .outcome import RUN, ArmRuns, Finding, Verdict

LEVEL = 0.05
EDGE = 0.03
SHARES = ("success", "recall")
"""Metrics with a floor of 0 and a ceiling of 1."""


def decide(comparisons: Sequence[Comparison], arms: Mapping[str, ArmRuns]) -> tuple[Finding, ...]:
    """Return a finding per comparison, in order."""
    found = [_measure(comparison, arms) for comparison in comparisons]
    tested = [i for i, finding in enumerate(found) if finding.p_value is not None]
    adjusted = holm([p for i in tested if (p := found[i].p_value) is not None])
    for i, p in zip(tested, adjusted, strict=True):
        found[i] = _judge(found[i].model_copy(update={"adjusted": p}))
    return tuple(found)


def judge_claim(findings: Sequence[Finding]) -> tuple[Verdict, str]:
    """Return the claim's verdict with the reason."""
    verdicts = [finding.verdict for finding in findings]
    count = len(verdicts)
    fail, still = verdicts.count("not reproduced"), verdicts.count("not decided")
    if fail:
        return "not reproduced", f"{fail} of {count} comparisons fail"
    if still:
        return "not decided", f"{still} of {count} comparisons are open"
    return "reproduced", f"{count} of {count} comparisons hold"


class _Table(NamedTuple):
    """Differences ``[seeds, units]`` in favour of the statement, and the two sides' means."""

    gaps: npt.NDArray[np.float64]
    better: float
    worse: float
    alone: bool


def _measure(comparison: Comparison, arms: Mapping[str, ArmRuns]) -> Finding:
    table = _table(comparison, arms)
    if isinstance(table, str):
        return Finding(comparison=comparison, seeds=0, units=0, why=table)
    gaps, margin = table.gaps, comparison.margin
    seeds, units = gaps.shape
    if table.alone:
        if seeds < 2:
            why = "one seed has one value; at least two seeds are needed"
            return Finding(comparison=comparison, seeds=seeds, units=units, why=why)
        means = gaps[:, 0]
        result = over_runs(means.tolist(), margin)
        interval, p_value, test = result[1:4], result.p_value, "Student's t over seeds"
    else:
        means = gaps.mean(axis=0)
        spread = two_stage({"": list(gaps)})
        interval = spread.mean, spread.low95, spread.high95
        p_value = paired((means - margin).tolist(), [0.0] * units).p_value
        test = "sign flips over tasks"
    deviation = float(means.std(ddof=1)) if len(means) > 1 else 0.0
    return Finding(
        comparison=comparison,
        seeds=seeds,
        units=units,
        better=table.better,
        worse=table.worse,
        difference=interval[0],
        low95=interval[1],
        high95=interval[2],
        effect=interval[0] / deviation if deviation > 0 else None,
        p_value=p_value,
        test=test,
    )


def _judge(finding: Finding) -> Finding:
    verdict, why = _verdict(finding)
    return finding.model_copy(update={"verdict": verdict, "why": why})


def _verdict(finding: Finding) -> tuple[Verdict, str]:
    low, high, p = finding.low95, finding.high95, finding.adjusted
    better, worse = finding.better, finding.worse
    comparison = finding.comparison
    if low is None or high is None or p is None or better is None or worse is None:
        return "not decided", finding.why
    if comparison.measure in SHARES and comparison.worse is not None:
        if min(better, worse) > 1 - EDGE:
            return "not decided", "both arms are at the ceiling"
        if max(better, worse) < EDGE:
            return "not decided", "both arms are at the floor"
    if high < comparison.margin + comparison.min_effect:
        return "not reproduced", "the interval excludes every difference that would matter"
    if low > comparison.margin and p <= LEVEL:
        return "reproduced", "the interval lies above the margin"
    if low > comparison.margin:
        return "not decided", f"the interval lies above the margin, but p is {p:.3f}"
    return "not decided", "the interval contains both"


def _table(comparison: Comparison, arms: Mapping[str, ArmRuns]) -> _Table | str:
    """Compute the differences, or return the reason why there are none."""
    runs = {
        name: {run.seed: run.values.get(comparison.measure, {}) for run in arms[name].runs}
        for name in comparison.arms
    }
    for name, found in runs.items():
        if arms[name].problem:
            return f"arm {name}: {arms[name].problem}"
        if not any(found.values()):
            return f"arm {name}: nothing was measured"
    seeds = sorted(set.intersection(*(set(found) for found in runs.values())))
    if not seeds:
        return "the arms have no seed in common"
    units = sorted(set.intersection(*(set(runs[n][s]) for n in runs for s in seeds)))
    if not units:
        return "the arms have no task in common"

    def values(name: str) -> npt.NDArray[np.float64]:
        return np.array([[runs[name][s][u] for u in units] for s in seeds])

    better = values(comparison.better)
    worse = values(comparison.worse) if comparison.worse else np.zeros_like(better)
    gaps = better - worse
    if comparison.beyond is not None:
        first, second = comparison.beyond
        gaps = gaps - (values(first) - values(second))
    return _Table(
        gaps=gaps if comparison.higher else -gaps,
        better=float(better.mean()),
        worse=float(worse.mean()),
        alone=units == [RUN],
    )
