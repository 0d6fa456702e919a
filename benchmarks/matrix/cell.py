"""Cells of the matrix, the starts of columns, and their result files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from ...leaderboard.schema.base import Form

State = Literal["waiting", "running", "finished", "failed", "refused", "interrupted"]
FORMAT = 2


class Cell(Form):
    """One row in one column with one seed.

    Attributes:
        recipe: Label of the row.
        column: Name of the column.
        seed: Seed of the suite; the training seed is this plus the row's offset.
    """

    recipe: str
    column: str
    seed: int = Field(ge=0)

    @property
    def key(self) -> str:
        """Name of its files."""
        return f"{self.recipe}--{self.column}--s{self.seed}"

    def __str__(self) -> str:
        return f"{self.recipe} on {self.column}, seed {self.seed}"


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


class TrainingCurve(Form):
    """The measure of the training rollouts, one entry per training step.

    Attributes:
        tokens: Tokens sampled for training until the end of the step.
        calls: Actions taken for training until then.
        values: Mean of the measure over the step's episodes, which the weights before the step's
            update played.
    """

    tokens: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> TrainingCurve:
        if not len(self.tokens) == len(self.calls) == len(self.values):
            raise ValueError("training curve: as many tokens, calls and values are expected")
        return self


What = Literal["solved", "returns", "measured"]


class Tries(Form):
    """All trials of the evaluation tasks by one policy.

    Attributes:
        tasks: Ids of the tasks.
        solved: By trial, whether each task was solved; None where the environment failed.
        returns: By trial, the return of each task; None where the environment failed.
        measured: By trial, the column's measure of each task; empty where the measure is success.
    """

    tasks: list[str]
    solved: list[list[bool | None]]
    returns: list[list[float | None]]
    measured: list[list[float | None]] = Field(default_factory=list)

    @property
    def errors(self) -> int:
        """Count the episodes in which the environment failed."""
        return sum(value is None for tried in self.solved for value in tried)

    def flat(self, what: What) -> list[float]:
        """Return every scored episode's value; the measure is success where no other was taken."""
        return [float(value) for tried in self._rows(what) for value in tried if value is not None]

    def mean(self, what: What) -> float | None:
        """Return the mean over scored episodes; None without any."""
        values = self.flat(what)
        return sum(values) / len(values) if values else None

    def by_task(self, what: What) -> dict[str, list[float]]:
        """Return the scored values of each task's trials."""
        found: dict[str, list[float]] = {}
        for tried in self._rows(what):
            for task, value in zip(self.tasks, tried, strict=True):
                if value is not None:
                    found.setdefault(task, []).append(float(value))
        return found

    def _rows(self, what: What) -> list[list[Any]]:
        if what == "measured" and not self.measured:
            return list(self.solved)
        return list(getattr(self, what))


class Used(Form):
    """Cost of training.

    Attributes:
        tokens: Tokens sampled.
        calls: Actions taken in environments.
        steps: Training steps.
        optimizer_steps: Optimiser steps: mini batches by epochs by training steps.
        seconds: Wall time of training and its evaluations.
    """

    tokens: int = Field(default=0, ge=0)
    calls: int = Field(default=0, ge=0)
    steps: int = Field(default=0, ge=0)
    optimizer_steps: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0)

    def __add__(self, other: Used) -> Used:
        return Used(**{name: getattr(self, name) + getattr(other, name) for name in ADDED})


ADDED = tuple(Used.model_fields)


class CellResult(Form):
    """``cells/ROW--COLUMN--sSEED.json``: the result of a cell, of the weights at its end.

    Attributes:
        format: Version of this schema.
        suite: Name of the suite.
        suite_version: Its version.
        suite_digest: Hash of the content of the suite that it was computed for.
        digest: Hash of what its numbers depend on (:meth:`Suite.cell_digest`); empty in files from
            before there was one, which the folder's suite vouches for.
        cell: The cell.
        state: ``finished``; ``refused`` (invalid combination: ``reason``), ``failed`` (an error:
            ``reason`` and ``trace``), ``interrupted`` (resumed by the next call).
        reason: Why there is no score, empty when finished.
        trace: Traceback of a failure.
        start_digest: Hash of the starting model.
        tasks_digest: Hash of the evaluation tasks' ids and contents; empty in files from before
            there was one, and where tasks have no stable form.
        used: Cost of training.
        rate: Learning rate of the policy; None where the recipe has none.
        search: Cost of the search for the rate, which all seeds of the row share; None without.
        curve: Evaluations while training; empty where the column has none.
        training: The measure of the training rollouts.
        area: Mean of the measure of the training rollouts over the whole budget of sampled tokens;
            None where the policy does not play them (imitation).
        to_threshold: Sampled tokens until the column's threshold was reached; None if it was not.
        tries: Sampled trials of every evaluation task after training; None unless finished.
        greedy_tries: A greedy trial of every evaluation task, likewise.
        seconds: Wall time of the whole job, loading and final evaluation included.
        machine: Where it was computed; None where the worker died.
    """

    format: Literal[2] = FORMAT
    suite: str
    suite_version: int
    suite_digest: str
    digest: str = ""
    cell: Cell
    state: State
    reason: str = ""
    trace: str = ""
    start_digest: str = ""
    tasks_digest: str = ""
    used: Used = Used()
    rate: float | None = None
    search: Used | None = None
    curve: tuple[Point, ...] = ()
    training: TrainingCurve = TrainingCurve()
    area: float | None = None
    to_threshold: int | None = None
    tries: Tries | None = None
    greedy_tries: Tries | None = None
    seconds: float = Field(default=0.0, ge=0)
    machine: Machine | None = None

    @property
    def sampled(self) -> float | None:
        """Return the success of the sampled trials after training; None without one."""
        return self.tries.mean("solved") if self.tries is not None else None

    @property
    def greedy(self) -> float | None:
        """Return the success of the greedy trials after training; None without one."""
        return self.greedy_tries.mean("solved") if self.greedy_tries is not None else None


class TriedRate(Form):
    """One trial of a search for the learning rate.

    Attributes:
        rate: The learning rate.
        seed: The training seed.
        area: Mean of the measure over the trial's budget; None where there is none.
        used: Cost.
    """

    rate: float
    seed: int
    area: float | None
    used: Used


class SearchResult(Form):
    """``searches/ROW--COLUMN.json``: the learning rate of a row in a column.

    Attributes:
        format: Version of this schema.
        suite_digest: Hash of the content of the suite that it was computed for.
        digest: Hash of what it depends on; empty likewise.
        recipe: Label of the row.
        column: Name of the column.
        state: As a cell's.
        reason: Why no rate was found.
        tried: The trials so far.
        rate: The chosen rate; None unless finished.
    """

    format: Literal[2] = FORMAT
    suite_digest: str
    digest: str = ""
    recipe: str
    column: str
    state: State
    reason: str = ""
    tried: tuple[TriedRate, ...] = ()
    rate: float | None = None

    @property
    def used(self) -> Used:
        """Return the cost of all trials."""
        return sum((trial.used for trial in self.tried), Used())

    @property
    def at_end(self) -> str:
        """Return whether the rate is the last one tried, in words: better ones may lie beyond.

        Empty within the tried rates, and where the row kept its own, which is tried first.
        """
        rates = [trial.rate for trial in self.tried]
        if self.rate is None or not rates or self.rate == rates[0]:
            return ""
        ends = {max(rates): "the largest tried", min(rates): "the smallest tried"}
        return ends.get(self.rate, "")


class ColumnResult(Form):
    """``columns/COLUMN.json``: the start of a column, and its reference players.

    Attributes:
        format: Version of this schema.
        suite_digest: Hash of the content of the suite that it was computed for.
        digest: Hash of what it depends on; empty likewise.
        column: Name of the column.
        state: ``finished``, ``failed`` or ``refused``.
        reason: Why the column has no start.
        start: Folder or name of the starting model.
        start_digest: Hash of it.
        tasks_digest: Hash of the evaluation tasks that it and the reference players played; empty
            likewise.
        settings: Constructor settings of the environment.
        about: How the starting model was made.
        reference: Trials of the scripted ``expert`` (where there is one), ``random`` and ``null``.
        tries: Sampled trials of the starting model on the evaluation tasks.
        greedy_tries: Its greedy trials.
        zero_shot_tries: Sampled trials of the model before its warm start, where it has one.
        zero_shot_greedy_tries: Its greedy trials.
        seconds: Duration.
        machine: Where it was made.
    """

    format: Literal[2] = FORMAT
    suite_digest: str
    digest: str = ""
    column: str
    state: State
    reason: str = ""
    start: str = ""
    start_digest: str = ""
    tasks_digest: str = ""
    settings: Mapping[str, Any] = Field(default_factory=dict)
    about: Mapping[str, Any] = Field(default_factory=dict)
    reference: Mapping[str, Tries] = Field(default_factory=dict)
    tries: Tries | None = None
    greedy_tries: Tries | None = None
    zero_shot_tries: Tries | None = None
    zero_shot_greedy_tries: Tries | None = None
    seconds: float = 0.0
    machine: Machine | None = None

    def has_other_tasks(self, digest: str) -> bool:
        """Return whether evaluation tasks are known not to be this column's."""
        return bool(self.tasks_digest and digest) and self.tasks_digest != digest
