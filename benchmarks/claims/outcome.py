"""The outcome of a claim: values per seed, findings per comparison, a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from ...leaderboard.schema.base import Form
from ..matrix.cell import Machine, Used
from .claim import Claim, Comparison

Verdict = Literal["reproduced", "not reproduced", "not decided"]
RUN = "run"
"""Unit of metrics with one value per seed."""


class SeedRun(Form):
    """An arm with one seed.

    Attributes:
        seed: The seed.
        values: Values by metric and unit (a task, or :data:`RUN`).
        used: Cost.
    """

    seed: int
    values: Mapping[str, Mapping[str, float]]
    used: Used = Used()


class ArmRuns(Form):
    """An arm with all seeds.

    Attributes:
        name: Name of the arm.
        folder: Its folder below the claims' folder.
        runs: One per seed that finished.
        problem: Reason why a seed has no values; empty if all have.
    """

    name: str
    folder: str
    runs: tuple[SeedRun, ...]
    problem: str = ""

    def mean(self, measure: str) -> float | None:
        """Return the mean over seeds of the means over units; None without values."""
        means = [
            sum(units.values()) / len(units)
            for run in self.runs
            if (units := run.values.get(measure))
        ]
        return sum(means) / len(means) if means else None


class Finding(Form):
    """Result of a comparison.

    Attributes:
        comparison: The comparison.
        seeds: Seeds that both sides have.
        units: Tasks that both sides have in all of them; 1 where a seed has one value.
        better: Mean of the arm that is expected above.
        worse: Mean of the other one; 0 where it is compared with 0.
        difference: Difference; positive values support the statement.
        low95: Lower end of its 95 % interval.
        high95: Upper end.
        effect: The difference in standard deviations of the differences; None where they have none.
        p_value: Two-sided p-value against the margin.
        adjusted: p-value after Holm over the claim's comparisons.
        test: Name of the test.
        verdict: Verdict of the rule.
        why: Reason of the verdict.
    """

    comparison: Comparison
    seeds: int
    units: int
    better: float | None = None
    worse: float | None = None
    difference: float | None = None
    low95: float | None = None
    high95: float | None = None
    effect: float | None = None
    p_value: float | None = None
    adjusted: float | None = None
    test: str = ""
    verdict: Verdict = "not decided"
    why: str = ""


class Outcome(Form):
    """``results/CLAIM.json``.

    Attributes:
        format: Version of this schema.
        claim: The whole definition.
        digest: Hash of it.
        seeds: Number of requested seeds.
        verdict: Verdict on the claim.
        why: Reason of the verdict.
        findings: One per comparison.
        arms: The measured arms.
        machine: Machine that computed the verdict.
    """

    format: Literal[1] = 1
    claim: Claim
    digest: str
    seeds: int = Field(ge=1)
    verdict: Verdict
    why: str
    findings: tuple[Finding, ...]
    arms: tuple[ArmRuns, ...]
    machine: Machine | None = None
