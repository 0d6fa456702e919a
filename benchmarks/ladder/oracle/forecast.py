"""The oracle's forecast: which arms can differ on a family, before any network is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from ....envs.core.digest import digest_of
from ....envs.utils.seed_tests import SeedTest, compare_seeds, seed_interval
from ....envs.utils.statistics import Estimate
from ....leaderboard.schema.base import Form
from ..families import CONTROL, FAMILIES, SOLVED, Family, Size
from .arms import arms_of, twin_of
from .learning import Schedule, learn
from .twins import Doubles

VERSION = 1
"""Raised with every change of the oracle that changes its numbers."""
RATES = (0.03, 0.12)
"""Learning rates of the tables: about as fast as small networks learn, and four times that."""
MIN_EFFECT = 0.02
"""Smallest difference of areas that counts as a mechanism that shows."""
EQUAL = 0.03
"""Difference of areas within which the control's arms are called equal."""
LEVEL = 0.05
Says = Literal["can show", "cannot show", "equal", "differs", "not decided"]


class ArmForecast(Form):
    """What the oracle saw of one arm at one size.

    Attributes:
        arm: Label of the row, or of a variant that only the oracle plays.
        column: Name of the column.
        rate: Learning rate of all tables there: of :data:`RATES` the one at which this arm is
            farther from the baseline.
        steps: Rollout batches.
        actions: Mean sampled actions of a seed.
        area: Mean of the measure over the budget, with Student's interval over seeds.
        final: Measure of the last policies, likewise.
        solved_frac: Share of seeds whose last policy has a measure of at least .8.
        against: Comparison of the areas with the baseline's, unpaired; None for the baseline.
        says: ``can show`` or ``cannot show`` at a size, ``cannot show`` for the baseline itself; in
            the control ``equal``, ``differs`` or ``not decided``.
    """

    arm: str
    column: str
    rate: float
    steps: int
    actions: float
    area: Estimate
    final: Estimate
    solved_frac: float
    against: SeedTest | None
    says: Says


class FamilyForecast(Form):
    """The forecast of a family.

    Attributes:
        family: Its name.
        digest: Hash of the family, the sizes, the number of seeds and the oracle's version.
        baseline: The arm that the others are compared with.
        rows: One per column and arm.
    """

    family: str
    digest: str
    baseline: str
    rows: tuple[ArmForecast, ...]

    def find(self, arm: str, column: str) -> ArmForecast | None:
        """Return the forecast of an arm in a column; None where it was not played."""
        return next((r for r in self.rows if (r.arm, r.column) == (arm, column)), None)


class Oracle(Form):
    """``oracle.json``: the forecasts of a ladder.

    Attributes:
        version: Version of the oracle.
        seeds: Seeds of every arm.
        families: One forecast each.
    """

    version: int
    seeds: int
    families: tuple[FamilyForecast, ...]

    def find(self, family: str) -> FamilyForecast | None:
        """Return the forecast of a family; None where there is none."""
        return next((f for f in self.families if f.family == family), None)


def consult(
    families: Sequence[Family], *, quick: bool = True, seeds: int = 100, path: Path | None = None
) -> Oracle:
    """Return the forecasts of families; those that a file has already are kept.

    Args:
        families: The families.
        quick: Only the quick suite's sizes.
        seeds: Seeds of every arm.
        path: File of the oracle, written after every family; None writes nothing. What another
            process has written there meanwhile stays in it.

    Returns:
        These families' forecasts, and others that the file has.

    Raises:
        DataError: A damaged file.
    """
    found = _read(path, seeds)
    for family in families:
        old = found.get(family.name)
        if old is None or old.digest != _digest(family, quick, seeds):
            made = {family.name: forecast(family, quick=quick, seeds=seeds)}
            found = found | _read(path, seeds) | made
            if path is not None:
                _collect(found, seeds).write(path, alone=False)
    return _collect(found, seeds)


def _read(path: Path | None, seeds: int) -> dict[str, FamilyForecast]:
    """Return the forecasts of a file by family: none of another number of seeds."""
    known = Oracle.read(path) if path is not None and path.exists() else None
    return {f.family: f for f in known.families} if known and known.seeds == seeds else {}


def _collect(found: Mapping[str, FamilyForecast], seeds: int) -> Oracle:
    order = [name for name in FAMILIES if name in found]
    return Oracle(version=VERSION, seeds=seeds, families=tuple(found[name] for name in order))


def _digest(family: Family, quick: bool, seeds: int) -> str:
    played = family.model_dump(mode="json", exclude={"guess", "guesses"})  # these are only compared
    return digest_of([VERSION, seeds, quick, played])


def forecast(family: Family, *, quick: bool = True, seeds: int = 100) -> FamilyForecast:
    """Play all arms of a family at its sizes and in its control.

    Args:
        family: The family.
        quick: Only the quick suite's sizes.
        seeds: Seeds of every arm.
    """
    rows: list[ArmForecast] = []
    sizes: tuple[Size | str, ...] = (*(family.quick if quick else family.sizes), CONTROL)
    for size in sizes:
        rows += forecast_size(family, size, seeds)
    return FamilyForecast(
        family=family.name,
        digest=_digest(family, quick, seeds),
        baseline=family.rows[0],
        rows=tuple(rows),
    )


def schedule_of(family: Family, size: Size | str) -> Schedule:
    """Return the budget of a size as the oracle spends it: an action is a token."""
    return Schedule(actions=family.tokens, per_step=family.step_tokens(size))


def forecast_size(family: Family, size: Size | str, seeds: int) -> list[ArmForecast]:
    """Play all arms at one size, or in the control, at every rate; keep each arm's clearest."""
    by_rate = [_play_arms(family, size, rate, seeds) for rate in RATES]
    return [max(same, key=_clarity) for same in zip(*by_rate, strict=True)]


def _play_arms(family: Family, size: Size | str, rate: float, seeds: int) -> list[ArmForecast]:
    twin = twin_of(family, size)
    baseline: Doubles | None = None
    rows = []
    for number, (label, arm) in enumerate(arms_of(family, size).items()):
        run = learn(
            twin, arm, replace(schedule_of(family, size), lr=rate, seeds=seeds, seed=number)
        )
        test = None
        if baseline is None:
            baseline = run.area
        else:
            test = compare_seeds(run.area, baseline, paired=False, bound=EQUAL)
        rows.append(
            ArmForecast(
                arm=label,
                column=family.column(size),
                rate=rate,
                steps=run.steps,
                actions=run.actions,
                area=seed_interval(run.area),
                final=seed_interval(run.final),
                solved_frac=float(np.mean(run.final >= SOLVED)),
                against=test,
                says=judge(test, control=size == CONTROL),
            )
        )
    return rows


def _clarity(row: ArmForecast) -> float:
    """Return how far an arm is from the baseline; the baseline itself is shown at the slow rate."""
    return -row.rate if row.against is None else abs(row.against.difference)


def judge(test: SeedTest | None, *, control: bool) -> Says:
    """Say what a comparison with the baseline means.

    At a size an arm can show where its area differs by at least :data:`MIN_EFFECT` and the
    interval leaves 0 out. In the control it is equal where two one-sided tests hold the
    difference within :data:`EQUAL`; else it differs where the interval leaves 0 out.
    """
    if test is None:
        return "cannot show"
    apart = test.low95 > 0 or test.high95 < 0
    if control:
        if test.equivalence_p is not None and test.equivalence_p <= LEVEL:
            return "equal"
        return "differs" if apart else "not decided"
    return "can show" if apart and abs(test.difference) >= MIN_EFFECT else "cannot show"
