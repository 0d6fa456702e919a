"""What comes of a claim: values per seed, findings per comparison, a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from ...leaderboard.schema.base import Form
from ..matrix.cell import Machine, Used
from .claim import Claim, Comparison

Verdict = Literal["reproduced", "not reproduced", "not decided"]
RUN = "run"
"""Unit of a measure that a seed has only one value of."""


class SeedRun(Form):
    """An arm with one seed.

    Attributes:
        seed: The seed.
        values: By measure, by unit (a task, or :data:`RUN`).
        used: What it cost.
    """

    seed: int
    values: Mapping[str, Mapping[str, float]]
    used: Used = Used()


class ArmRuns(Form):
    """An arm with all seeds.

    Attributes:
        name: Of the arm.
        folder: Its folder below the claims' folder.
        runs: One per seed that finished.
        problem: Why a seed has no values; empty when all have.
    """

    name: str
    folder: str
    runs: tuple[SeedRun, ...]
    problem: str = ""

    def mean(self, measure: str) -> float | None:
        """Mean over seeds of the means over units; None without values."""
        means = [
            sum(units.values()) / len(units)
            for run in self.runs
            if (units := run.values.get(measure))
        ]
        return sum(means) / len(means) if means else None


class Finding(Form):
    """What came of a comparison.

    Attributes:
        comparison: Which.
        seeds: Seeds that both sides have.
        units: Tasks that both sides have in all of them; 1 where a seed has one value.
        better: Mean of the arm that is expected above.
        worse: Mean of the other one; 0 where it is compared with 0.
        difference: In favour of the statement where positive.
        low95: Lower end of its 95 % interval.
        high95: Upper end.
        effect: The difference in standard deviations of the differences; None where they have none.
        p_value: Two-sided, against the margin.
        adjusted: After Holm, over the claim's comparisons.
        test: Which test.
        verdict: What the rule says.
        why: In words.
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
        seeds: Seeds that were asked for.
        verdict: Of the claim.
        why: In words.
        findings: One per comparison.
        arms: What was measured.
        machine: Where the verdict was reached.
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
