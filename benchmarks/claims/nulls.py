"""Nulls: arms without a difference, judged by the rule of the claims.

What the rule says about them are its false positives. Two shapes are measured: the finals of GRPO
and Tree-GRPO on Fork-v0, and a saturated environment, both with the evaluation noise of 60 tasks
played twice. The others are what seeds of an environment can look like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from .claim import Comparison
from .outcome import RUN, ArmRuns, SeedRun
from .verdicts import LEVEL, decide

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
SEEDS = (5, 10)
"""Numbers of seeds that are simulated."""
TRIALS = 1_500
"""Simulated claims per null and number of seeds."""
ERRORS = 3.0
"""Standard errors that are allowed for in the rates of a single null; a shape has no allowance."""
MAX_REPRODUCED = 0.025
MAX_SIGNIFICANT = 0.06
MIN_COVERAGE = 0.94
FORK = tuple(
    percent / 100
    for percent in (
        22,
        97,
        23,
        93,
        20,
        92,
        100,
        30,
        75,
        37,
        80,
        40,
        100,
        37,
        83,
        95,
        100,
        20,
        83,
        23,
    )
)
"""Success after 14,000 tokens on Fork-v0, five seeds of four arms."""
SATURATED = (0.84, 0.85, 0.86, 0.87)
_TRIES = 120
_EFFECT = 1e-6  # no difference is too small to matter: the tests alone keep the rates


@dataclass(frozen=True, kw_only=True)
class Null:
    """Two equal arms.

    Attributes:
        shape: Shape of the values.
        name: What is particular about the comparison; empty where nothing is.
        draw: Draws values of the given shape, one per seed.
        paired: Whether both arms have the same seeds.
        shared: Share of a seed's value that both arms have in common.
        ratio: Deviation of the second arm over that of the first.
        margin: Margin of the comparison; the true difference is the margin.
        comparisons: Comparisons of one claim, whose false positives are counted together.
        interaction: Whether the difference is compared with that of two further arms.
    """

    shape: str
    name: str = ""
    draw: Draw
    paired: bool = True
    shared: float = 0.0
    ratio: float = 1.0
    margin: float = 0.0
    comparisons: int = 1
    interaction: bool = False


@dataclass(frozen=True)
class Rates:
    """What the rule said about nulls.

    Attributes:
        name: Of the null, or of its shape.
        seeds: Seeds of each arm; 0 where several numbers are pooled.
        claims: Simulated claims.
        reproduced: Share of claims in which some comparison was reproduced.
        significant: Share of comparisons with p <= .05 before Holm.
        covered: Share of intervals that contain the true difference.
    """

    name: str
    seeds: int
    claims: int
    reproduced: float
    significant: float
    covered: float

    def broken(self, errors: float = 0.0) -> list[str]:
        """Return the bounds that are broken.

        Args:
            errors: Standard errors of the simulation that are allowed for.
        """
        rates = (
            ("reproduced", self.reproduced, MAX_REPRODUCED),
            (f"p <= {LEVEL:g}", self.significant, MAX_SIGNIFICANT),
            ("not covered", 1 - self.covered, 1 - MIN_COVERAGE),
        )
        return [
            f"{name} {rate:.1%}"
            for name, rate, bound in rates
            if rate > bound + errors * sqrt(bound * (1 - bound) / self.claims)
        ]


def _normal(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.normal(0.5, 0.1, size)


def _pool(values: Sequence[float]) -> Draw:
    def draw(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
        return rng.binomial(_TRIES, rng.choice(values, size)) / _TRIES

    return draw


def _beta(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.beta(0.4, 3.0, size)


def _ties(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.binomial(10, 0.3, size) / 10


def _coins(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.binomial(1, 0.5, size).astype(np.float64)


def _collapses(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return np.where(rng.random(size) < 0.15, 0.2, 0.9) + rng.normal(0.0, 0.02, size)


NULLS = (
    Null(shape="normal", draw=_normal),
    Null(shape="normal", name="shared half", draw=_normal, shared=0.5),
    Null(shape="normal", name="unpaired", draw=_normal, paired=False),
    Null(
        shape="normal",
        name="unpaired, 4 times the deviation",
        draw=_normal,
        paired=False,
        ratio=4.0,
    ),
    Null(shape="normal", name="at the margin -.05", draw=_normal, margin=-0.05),
    Null(shape="normal", name="three comparisons", draw=_normal, comparisons=3),
    Null(shape="normal", name="difference of differences", draw=_normal, interaction=True),
    Null(shape="two modes (Fork-v0)", draw=_pool(FORK)),
    Null(shape="two modes (Fork-v0)", name="shared half", draw=_pool(FORK), shared=0.5),
    Null(shape="two modes (Fork-v0)", name="unpaired", draw=_pool(FORK), paired=False),
    Null(shape="saturated", draw=_pool(SATURATED)),
    Null(shape="saturated", name="unpaired", draw=_pool(SATURATED), paired=False),
    Null(shape="skewed (beta)", draw=_beta),
    Null(shape="skewed (beta)", name="unpaired", draw=_beta, paired=False),
    Null(shape="many ties (binomial of 10)", draw=_ties),
    Null(shape="many ties (binomial of 10)", name="unpaired", draw=_ties, paired=False),
    Null(shape="all or nothing", draw=_coins),
    Null(shape="rare collapses", draw=_collapses),
    Null(shape="rare collapses", name="unpaired", draw=_collapses, paired=False),
)


def simulate_nulls(
    nulls: Sequence[Null] | None = None, seeds: Sequence[int] = SEEDS, trials: int | None = None
) -> Iterator[tuple[Null, Rates]]:
    """Yield the rates of every null with every number of seeds; the same ones every time.

    Args:
        nulls: :data:`NULLS` when left out.
        seeds: Numbers of seeds.
        trials: Claims of each; :data:`TRIALS` when left out.
    """
    for place, null in enumerate(NULLS if nulls is None else nulls):
        for count in seeds:
            rng = np.random.default_rng([place, count])
            yield null, simulate(null, count, TRIALS if trials is None else trials, rng)


def pool_by_shape(found: Iterable[tuple[Null, Rates]]) -> list[Rates]:
    """Return the mean rates of each shape, over its comparisons and numbers of seeds."""
    by_shape: dict[str, list[Rates]] = {}
    for null, rates in found:
        by_shape.setdefault(null.shape, []).append(rates)
    return [
        Rates(
            shape,
            0,
            sum(one.claims for one in rates),
            *(
                sum(getattr(one, what) * one.claims for one in rates)
                / sum(one.claims for one in rates)
                for what in ("reproduced", "significant", "covered")
            ),
        )
        for shape, rates in by_shape.items()
    ]


def simulate(null: Null, seeds: int, trials: int, rng: np.random.Generator) -> Rates:
    """Judge simulated claims by :func:`~turngym.benchmarks.claims.verdicts.decide`."""
    names = [f"arm {i}" for i in range(4 if null.interaction else 2 * null.comparisons)]
    comparisons = [
        Comparison(
            better=names[2 * i],
            worse=names[2 * i + 1],
            measure="value",
            margin=null.margin,
            min_effect=_EFFECT,
            beyond=(names[2], names[3]) if null.interaction else None,
        )
        for i in range(null.comparisons)
    ]
    reproduced = significant = covered = 0
    for values in _draw_arms(null, (trials, len(names), seeds), rng):
        arms = {
            name: make_arm(name, row, 0 if null.paired else at * seeds)
            for at, (name, row) in enumerate(zip(names, values, strict=True))
        }
        found = decide(comparisons, arms)
        reproduced += any(finding.verdict == "reproduced" for finding in found)
        tests = [finding.test for finding in found if finding.test is not None]
        significant += sum(test.p_value <= LEVEL for test in tests)
        covered += sum(test.low95 <= null.margin <= test.high95 for test in tests)
    tested = trials * null.comparisons
    name = ", ".join(filter(None, (null.shape, null.name)))
    return Rates(name, seeds, trials, reproduced / trials, significant / tested, covered / tested)


def _draw_arms(null: Null, size: tuple[int, int, int], rng: np.random.Generator) -> Floats:
    """Draw values ``[trials, arms, seeds]``."""
    values = null.draw(rng, size)
    common = null.draw(rng, (size[0], 1, size[2]))
    values = np.where(rng.random(size) < null.shared, common, values)
    values[:, 1::2] *= null.ratio
    values[:, 1::2] -= (null.ratio - 1) * float(null.draw(rng, (100_000,)).mean()) + null.margin
    return values


def make_arm(name: str, values: Floats, first: int) -> ArmRuns:
    """Make an arm of values, one per seed from the first one."""
    runs = [
        SeedRun(seed=first + i, values={"value": {RUN: value}})
        for i, value in enumerate(values.tolist())
    ]
    return ArmRuns(name=name, folder=name, runs=tuple(runs))
