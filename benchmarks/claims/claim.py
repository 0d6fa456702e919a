"""A claim: a paper's statement with the experiment and the comparisons that decide it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ...envs.core.digest import digest_of
from ...leaderboard.schema.base import Form
from .experiments import Crawling, Planning, Playing, Training

Unit = Literal["points", "times", "plain"]
Experiment = Annotated[Training | Playing | Crawling | Planning, Field(discriminator="kind")]


class Source(Form):
    """Where a statement stands.

    Attributes:
        paper: Name and number of the paper.
        where: Section or table.
        figure: What was published.
    """

    paper: str
    where: str
    figure: str


class Comparison(Form):
    """One arm expected above another; a claim holds when all of its comparisons do.

    Attributes:
        better: The arm that is expected above.
        worse: The arm that is expected below; None compares ``better`` with 0.
        measure: What is compared.
        higher: More of it is better; False where less is.
        margin: The difference must lie above it. Below 0 the arm must only be not much worse.
        least: The smallest difference beyond the margin that would matter, in the unit of the
            measure.
        beyond: Two further arms: the difference must exceed theirs (first minus second).
        unit: ``points`` are shares, ``times`` logarithms to base 2 of a ratio, ``plain`` anything.
    """

    better: str
    worse: str | None = None
    measure: str
    higher: bool = True
    margin: float = 0.0
    least: float = Field(gt=0)
    beyond: tuple[str, str] | None = None
    unit: Unit = "points"

    @property
    def arms(self) -> tuple[str, ...]:
        """Every arm that it looks at."""
        named = (self.better, *((self.worse,) if self.worse else ()), *(self.beyond or ()))
        return tuple(dict.fromkeys(named))


class Claim(Form):
    """A statement of a paper and how it is decided here.

    Attributes:
        name: Short name.
        statement: The statement.
        source: Where it stands.
        experiment: What is run, at equal budgets.
        comparisons: What must hold.
        minutes: CPU time of three seeds on one core, about; models that are made first are not
            counted, they are kept.
        weaker: What the small experiment cannot say.
    """

    name: str
    statement: str
    source: Source
    experiment: Experiment
    comparisons: tuple[Comparison, ...] = Field(min_length=1)
    minutes: float = Field(gt=0)
    weaker: str

    @model_validator(mode="after")
    def _check(self) -> Claim:
        names = [arm.name for arm in self.experiment.arms]
        if len(set(names)) != len(names):
            raise ValueError(f"arms {names}: one of them stands there twice")
        for comparison in self.comparisons:
            for name in comparison.arms:
                if name not in names:
                    raise ValueError(f"comparison: no arm {name!r}; expected one of {names}")
            known = self.experiment.measures
            if comparison.measure not in known:
                raise ValueError(
                    f"comparison: no measure {comparison.measure!r}; expected one of {list(known)}"
                )
        return self

    @property
    def digest(self) -> str:
        """Stable hash of the content."""
        return digest_of(self.model_dump(mode="json"))
