"""The outcome of a claim: values per seed, findings per comparison, a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from ...envs.utils.seed_tests import AT_END, SeedTest
from ...leaderboard.schema.base import Form
from ..matrix.cell import Machine, Used
from .claim import Claim, Comparison

Verdict = Literal["reproduced", "not reproduced", "equivalent", "not decided"]
CONTROL_HOLDS, NO_DIFFERENCE = "control holds", "no difference"
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
        pairing: Hash of starting model, environment and tasks; arms that share it are paired by
            seed.
        problem: Reason why a seed has no values; empty if all have.
    """

    name: str
    folder: str
    runs: tuple[SeedRun, ...]
    pairing: str = ""
    problem: str = ""

    @property
    def tokens(self) -> float:
        """Return the mean number of sampled tokens per seed."""
        return sum(run.used.tokens for run in self.runs) / max(1, len(self.runs))

    @property
    def optimizer_steps(self) -> float:
        """Return the mean number of optimiser steps per seed."""
        return sum(run.used.optimizer_steps for run in self.runs) / max(1, len(self.runs))

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
        seeds: Pairs of seeds; unpaired: seeds of the smaller arm.
        units: Tasks that both sides have in all of them; 1 where a seed has one value.
        better: Mean of the arm that is expected above.
        worse: Mean of the other one; 0 where it is compared with 0.
        test: The test over seeds, of the difference in favour of the statement; None without one.
        adjusted: Its p-value after Holm over the claim's comparisons that expect a difference; None
            for those that expect equality.
        verdict: Verdict of the rule.
        why: Reason of the verdict.
    """

    comparison: Comparison
    seeds: int
    units: int
    better: float | None = None
    worse: float | None = None
    test: SeedTest | None = None
    adjusted: float | None = None
    verdict: Verdict = "not decided"
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether the comparison is as the statement expects."""
        wanted = "reproduced" if self.comparison.expected == "above" else "equivalent"
        return self.verdict == wanted

    @property
    def at_end(self) -> bool:
        """Whether both arms are at the same end of the measure, so that nothing was compared."""
        return self.why.startswith(AT_END)

    @property
    def shown(self) -> str:
        """Return the verdict for readers; see :func:`word_verdict`."""
        return word_verdict(self.verdict, [self.comparison])


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
        repetition: An arm against itself with other seeds, one finding per measure: what the
            rule says where there is no difference.
        arms: The measured arms, the repeated one last.
        machine: Machine that computed the verdict.
    """

    format: Literal[2] = 2
    claim: Claim
    digest: str
    seeds: int = Field(ge=1)
    verdict: Verdict
    why: str
    findings: tuple[Finding, ...]
    repetition: tuple[Finding, ...] = ()
    arms: tuple[ArmRuns, ...]
    machine: Machine | None = None

    @property
    def shown(self) -> str:
        """Return the verdict for readers; see :func:`word_verdict`."""
        return word_verdict(self.verdict, self.claim.comparisons)


def word_verdict(verdict: Verdict, comparisons: Sequence[Comparison]) -> str:
    """Return a verdict in words that say whether equality was expected.

    Equivalent arms confirm a control, and refute a statement that one of them is better: the one is
    "control holds", the other "no difference".
    """
    if verdict != "equivalent":
        return verdict
    control = all(comparison.expected == "equal" for comparison in comparisons)
    return CONTROL_HOLDS if control else NO_DIFFERENCE
