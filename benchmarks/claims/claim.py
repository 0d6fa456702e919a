"""A claim: a paper's statement with the experiment and the comparisons that decide it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ...envs.core.digest import digest_of
from ...leaderboard.schema.base import Form
from .experiments import Experiment

Unit = Literal["points", "times", "plain"]
Expected = Literal["above", "equal"]


class Source(Form):
    """Source of a statement.

    Attributes:
        paper: Name and number of the paper.
        where: Section or table.
        figure: The published numbers.
    """

    paper: str
    where: str
    figure: str


class Rerun(Form):
    """A published repetition of the experiment by others.

    Attributes:
        paper: Name and number of the paper that ran it again.
        figure: Its numbers.
        where: Models and tasks.
    """

    paper: str
    figure: str
    where: str


class Comparison(Form):
    """One arm expected above another, or equal to it; a claim holds when all its comparisons do.

    Attributes:
        better: The arm that is expected above.
        worse: The arm that is expected below; None compares ``better`` with 0.
        measure: The compared metric.
        expected: ``above``, or ``equal`` where equality is the right answer (a control).
        higher: Whether higher is better.
        margin: Lower bound of the difference; below 0 tests non-inferiority.
        min_effect: Smallest relevant difference beyond the margin, in the unit of the metric.
            Without a margin, arms within it are equivalent.
        beyond: Two further arms: the difference must exceed theirs (first minus second).
        unit: ``points`` are shares, ``times`` logarithms to base 2 of a ratio, ``plain`` anything.
        floor: What a policy scores that has learned nothing, such as a blind guess; None is 0 for
            shares, and no floor for other metrics. Where both arms are there, nothing was compared.
    """

    better: str
    worse: str | None = None
    measure: str
    expected: Expected = "above"
    higher: bool = True
    margin: float = 0.0
    min_effect: float = Field(gt=0)
    beyond: tuple[str, str] | None = None
    unit: Unit = "points"
    floor: float | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """Return every arm of the comparison."""
        named = (self.better, *((self.worse,) if self.worse else ()), *(self.beyond or ()))
        return tuple(dict.fromkeys(named))

    @property
    def bound(self) -> float | None:
        """Return the bound of equivalence; None where a margin is tested."""
        return self.min_effect if self.margin == 0 else None

    @model_validator(mode="after")
    def _check(self) -> Comparison:
        if self.expected == "equal" and (self.margin or self.worse is None):
            raise ValueError("comparison: expected equal needs two arms and no margin")
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave an undeclared floor out, so that it changes no digest."""
        found = dict(dump(self))
        if self.floor is None:
            found.pop("floor", None)
        return found


def above(
    better: str, worse: str, min_effect: float = 0.05, measure: str = "success", **changes: Any
) -> Comparison:
    """Make a comparison of two arms, usually of their success."""
    return Comparison(better=better, worse=worse, measure=measure, min_effect=min_effect, **changes)


def equal(
    one: str, other: str, bound: float = 0.05, measure: str = "success", **changes: Any
) -> Comparison:
    """Make a comparison of two arms that are expected to be equal within a bound."""
    return above(one, other, bound, measure, expected="equal", **changes)


class Claim(Form):
    """A statement of a paper and its test.

    Attributes:
        name: Short name.
        statement: The statement.
        source: Source in the paper.
        experiment: The experiment, at equal budgets.
        comparisons: Comparisons that must hold.
        minutes: Approximate CPU minutes of five seeds on one core, the repetition included, without
            starting models, which are cached.
        weaker: Limitations of the small experiment.
        reruns: Published repetitions by others.
    """

    name: str
    statement: str
    source: Source
    experiment: Annotated[Experiment, Field(discriminator="kind")]
    comparisons: tuple[Comparison, ...] = Field(min_length=1)
    minutes: float = Field(gt=0)
    weaker: str
    reruns: tuple[Rerun, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Claim:
        names = [arm.name for arm in self.experiment.arms]
        if len(set(names)) != len(names):
            raise ValueError(f"arms {names}: duplicate name")
        for comparison in self.comparisons:
            for name in comparison.arms:
                if name not in names:
                    raise ValueError(f"comparison: no arm {name!r}; expected one of {names}")
            known = self.experiment.measures
            if comparison.measure not in known:
                raise ValueError(
                    f"comparison: no metric {comparison.measure!r}; expected one of {list(known)}"
                )
        return self

    @property
    def digest(self) -> str:
        """Return a stable hash of the content."""
        return digest_of(self.model_dump(mode="json"))

    @property
    def repeated(self) -> str:
        """Return the arm that runs again with other seeds, to be compared with itself."""
        first = self.comparisons[0]
        return first.worse or first.better
