"""Cells of the matrix, the starts of columns, and their result files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from ...algos.evaluation.result import SetScore
from ...leaderboard.schema.base import Form

State = Literal["waiting", "running", "finished", "failed", "refused", "interrupted"]
FORMAT = 1


class Cell(Form):
    """One recipe on one environment with one seed."""

    recipe: str
    env_id: str
    seed: int = Field(ge=0)

    @property
    def key(self) -> str:
        """Name of its files."""
        return f"{self.recipe}--{self.env_id}--s{self.seed}"

    def __str__(self) -> str:
        return f"{self.recipe} on {self.env_id}, seed {self.seed}"


class Machine(Form):
    """The machine that computed a result.

    Attributes:
        system: Operating system and processor.
        processor: Its name.
        cores: Cores that the process may use.
        memory_gb: Memory of the machine.
        gpu: Name of the GPU that was used, empty without.
        threads: Threads of a computation.
        started: Start time, in UTC.
        versions: Versions of Python, the packages and the source tree.
    """

    system: str
    processor: str
    cores: int
    memory_gb: float
    gpu: str
    threads: int
    started: str
    versions: dict[str, str]


class Point(Form):
    """A point of a learning curve: the evaluation after a training step.

    Attributes:
        step: Training steps taken.
        tokens: Tokens sampled for training until then.
        calls: Actions taken for training until then.
        success: Share of solved episodes.
        return_: Mean return.
        return_low95: Lower end of its 95 % interval over the tasks.
        return_high95: Upper end.
    """

    step: int = Field(ge=0)
    tokens: int = Field(ge=0)
    calls: int = Field(ge=0)
    success: float
    return_: float = Field(alias="return")
    return_low95: float
    return_high95: float


class Tries(Form):
    """All trials of the evaluation tasks by one policy.

    Attributes:
        tasks: Ids of the tasks.
        solved: By trial, whether each task was solved; None where the environment failed.
        returns: By trial, the return of each task; None where the environment failed.
    """

    tasks: list[str]
    solved: list[list[bool | None]]
    returns: list[list[float | None]]

    @property
    def errors(self) -> int:
        """Count the episodes in which the environment failed."""
        return sum(value is None for tried in self.solved for value in tried)

    def flat(self, what: Literal["solved", "returns"]) -> list[float]:
        """Return every scored episode's value."""
        rows: list[list[Any]] = list(getattr(self, what))
        return [float(value) for tried in rows for value in tried if value is not None]

    def mean(self, what: Literal["solved", "returns"]) -> float | None:
        """Return the mean over scored episodes; None without any."""
        values = self.flat(what)
        return sum(values) / len(values) if values else None

    def by_task(self, what: Literal["solved", "returns"]) -> dict[str, list[float]]:
        """Return the scored values of each task's trials."""
        rows: list[list[Any]] = list(getattr(self, what))
        found: dict[str, list[float]] = {}
        for tried in rows:
            for task, value in zip(self.tasks, tried, strict=True):
                if value is not None:
                    found.setdefault(task, []).append(float(value))
        return found


class Used(Form):
    """Cost of training.

    Attributes:
        tokens: Tokens sampled.
        calls: Actions taken in environments.
        steps: Training steps.
        seconds: Wall time of training and its evaluations.
    """

    tokens: int = Field(default=0, ge=0)
    calls: int = Field(default=0, ge=0)
    steps: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0)


class CellResult(Form):
    """``cells/RECIPE--ENV--sSEED.json``: the result of a cell.

    Attributes:
        format: Version of this schema.
        suite: Name of the suite.
        suite_version: Its version.
        suite_digest: Hash of its content.
        cell: The cell.
        state: ``finished``; ``refused`` (invalid combination: ``reason``), ``failed`` (an error:
            ``reason`` and ``trace``), ``interrupted`` (resumed by the next call).
        reason: Why there is no score, empty when finished.
        trace: Traceback of a failure.
        start_digest: Hash of the starting model.
        used: Cost of training.
        curve: Evaluations while training.
        before: Score before training; None unless finished.
        after: Score after training; None unless finished.
        tries: Every trial of every evaluation task after training; None unless finished.
        machine: Where it was computed; None where the worker died.
    """

    format: Literal[1] = FORMAT
    suite: str
    suite_version: int
    suite_digest: str
    cell: Cell
    state: State
    reason: str = ""
    trace: str = ""
    start_digest: str = ""
    used: Used = Used()
    curve: tuple[Point, ...] = ()
    before: SetScore | None = None
    after: SetScore | None = None
    tries: Tries | None = None
    machine: Machine | None = None


class EnvResult(Form):
    """``envs/ENV.json``: the start of a column, and its reference players.

    Attributes:
        format: Version of this schema.
        suite_digest: Hash of the suite's content.
        env_id: The environment.
        state: ``finished``, ``failed`` or ``refused``.
        reason: Why the column has no start.
        start: Folder or name of the starting model.
        start_digest: Hash of it.
        settings: Constructor settings of the environment.
        about: How the starting model was made.
    reference: Trials of the scripted ``expert`` (where there is one), ``random`` and ``null``.
        seconds: Duration.
        machine: Where it was made.
    """

    format: Literal[1] = FORMAT
    suite_digest: str
    env_id: str
    state: State
    reason: str = ""
    start: str = ""
    start_digest: str = ""
    settings: Mapping[str, Any] = Field(default_factory=dict)
    about: Mapping[str, Any] = Field(default_factory=dict)
    reference: Mapping[str, Tries] = Field(default_factory=dict)
    seconds: float = 0.0
    machine: Machine | None = None
