"""Measure a column of a matrix: its start, and the recipes as its cells had them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...algos.core.checks import check_minimum
from ...algos.core.recipe import Recipe
from ...algos.runs.progress import Silent
from ...algos.training.config import Budget, TrainConfig, model_digest
from ...envs.core.errors import BadValueError, DataError
from ..matrix.cell import Cell, ColumnResult
from ..matrix.matrix_files import MatrixFiles
from ..matrix.references import make_start_model
from ..matrix.suite import Limits, Suite, SuiteEnv
from ..matrix.train_cell import RefusedCellError, has_model, make_train_config
from .crew import Bench, OwnProcess
from .giving import OwnPartError
from .halfway import bare, train_critic, train_halfway
from .report import FILE, At, CreditReport, MatrixPlace
from .study import Study, StudySettings
from .truth import TruthSettings

POLICY = "policy"
"""Folder of the half-way policy of a column."""
SHARE = 0.5
"""Part of the budget after which a run is half way."""


@dataclass(frozen=True, kw_only=True)
class ColumnSettings:
    """How every column is measured.

    Attributes:
        batches: Training batches of each row whose turns are measured.
        compared: Training batches of each row that are compared with the reference.
        reference: Parts of the reference, of 8 batches each.
        batch_tokens: Sampled tokens of a batch where the column does not say
            (``tokens_per_step``).
        continuations: K, per turn.
        noise: Seed of the continuations.
        samples: Samples of the bootstrap over batches, of which there are ten and more.
    """

    batches: int = 3
    compared: int = 24
    reference: int = 8
    batch_tokens: int = 256
    continuations: int = 8
    noise: int = 0
    samples: int = 200

    def __post_init__(self) -> None:
        check_minimum(self, batches=2, compared=2, reference=2, batch_tokens=1, samples=100)

    def study(self, column: SuiteEnv) -> StudySettings:
        """Return the settings of a column's study."""
        return StudySettings(
            batches=self.batches,
            batch_tokens=column.tokens_per_step or self.batch_tokens,
            compared=self.compared,
            reference=self.reference,
            truth=TruthSettings(continuations=self.continuations, noise=self.noise),
            samples=self.samples,
            strict=False,
            keep=0,
        )


@dataclass(frozen=True, kw_only=True)
class ColumnJob:
    """A column at one policy.

    Attributes:
        suite: The suite.
        start: The column's start.
        rows: Labels of the rows that are measured.
        rates: Learning rates that a search found, by label.
        refused: Rows that are left out, with the reason.
        at: Which policy.
        folder: Of the report.
        settings: How.
    """

    suite: Suite
    start: ColumnResult
    rows: tuple[str, ...]
    rates: dict[str, float]
    refused: dict[str, str]
    at: At
    folder: Path
    settings: ColumnSettings = field(default_factory=ColumnSettings)

    @property
    def name(self) -> str:
        """Column and policy, for messages."""
        return f"{self.start.column} ({self.at})"

    @property
    def file(self) -> Path:
        """Where the report goes."""
        return self.folder / FILE


def plan_columns(
    files: MatrixFiles,
    only: Sequence[str],
    ats: Sequence[At],
    folder: Path,
    settings: ColumnSettings,
) -> list[ColumnJob]:
    """Return a job for every column with a start, at every policy that is asked for.

    Args:
        files: The matrix.
        only: Words of :meth:`~turngym.benchmarks.matrix.suite.Suite.only`.
        ats: The policies.
        folder: Of the reports: ``AT/COLUMN/credit.json``.
        settings: How.

    Raises:
        BadValueError: A word of another form, words that no cell fits, or a seed: a column is
            measured once.
        UnknownNameError: A name that the suite does not have.
        DataError: None of the columns has a start.
    """
    suite = files.suite
    if any(word.startswith("seed=") for word in only):
        raise BadValueError("credit: --only seed=N: a column is measured once, not per seed.")
    wanted: dict[str, list[str]] = {}
    for cell in suite.some(only):
        rows = wanted.setdefault(cell.column, [])
        if cell.recipe not in rows:
            rows.append(cell.recipe)
    jobs = []
    for at in ats:
        for name, labels in wanted.items():
            start = files.columns.get(name)
            if start is None or start.state != "finished":
                continue
            refused = {
                label: f"repeats {twin} with other seeds: one credit"
                for label, twin in suite.yardsticks.items()
                if label in labels
            }
            found = {pair[0]: s.rate for pair, s in files.searches.items() if pair[1] == name}
            jobs.append(
                ColumnJob(
                    suite=suite,
                    start=start,
                    rows=tuple(label for label in labels if label not in refused),
                    rates={label: rate for label, rate in found.items() if rate is not None},
                    refused=refused,
                    at=at,
                    folder=folder / at / name,
                    settings=settings,
                )
            )
    if not jobs:
        raise DataError(
            f"credit: no column of {', '.join(wanted) or 'the matrix'} has a finished start; fill "
            "the matrix first (`turngym bench`)."
        )
    return jobs


def measure_column(job: ColumnJob) -> CreditReport:
    """Measure a column and write its report.

    Raises:
        TurngymError: No row can be measured, the start is not there, or the environment failed.
    """
    began, cpu = time.monotonic(), time.process_time()
    start = found_start(job.suite, job.start)
    configs, refused = row_configs(job, start)
    if not configs:
        raise BadValueError(f"credit: {job.name}: no row can be measured: {refused}.")
    critics: dict[str, Any] = {}
    policy = "the start of the column"
    if job.at == "halfway":
        policy = _go_halfway(job, start)
        folder = str(job.folder / POLICY)
        configs = {label: replace(config, model=folder) for label, config in configs.items()}
        limits = _half(job)
        for label, config in configs.items():
            if config.recipe.critic:
                critics[label] = train_critic(bare(config, limits), config.recipe)
    first = max(configs.values(), key=lambda config: config.recipe.hints is not None)
    recipes: dict[str, Recipe] = {label: config.recipe for label, config in configs.items()}
    bench = Bench(first)
    study = Study(
        bench, recipes, job.settings.study(job.suite.column(start.column)), Silent(), critics
    )
    found = study.run(OwnProcess(bench))
    if study.failed:
        raise OwnPartError(" ".join(study.failed.values()))
    report = found.model_copy(
        update={
            "place": MatrixPlace(
                suite=job.suite.name,
                suite_digest=job.suite.digest,
                column=start.column,
                at=job.at,
                policy=policy,
                start_digest=start.start_digest,
                refused=job.refused | refused | study.refused,
                seconds=time.monotonic() - began,
                cpu_seconds=time.process_time() - cpu,
            )
        }
    )
    report.write(job.file)
    return report


def found_start(suite: Suite, start: ColumnResult) -> ColumnResult:
    """Return a column's start with a model that is here.

    It is made again where it is not: packed results hold no models, and a folder that was moved
    names a place on another machine.

    Raises:
        TurngymError: The model cannot be made, or is another one than it was.
    """
    if has_model(start):
        return start
    made, _ = make_start_model(suite.column(start.column), suite.device)
    if start.start_digest in ("", model_digest(made)):
        return start.model_copy(update={"start": made})
    raise DataError(
        f"column {start.column!r}: its starting model ({start.start_digest[:19]}) is not here, and "
        "the one that was made here is another one (made on another machine, it may differ by "
        f"rounding). Copy it to {made} from the machine that filled the matrix."
    )


def row_configs(
    job: ColumnJob, start: ColumnResult
) -> tuple[dict[str, TrainConfig], dict[str, str]]:
    """Return the configuration of each row as its cells had it, and why others have none.

    Temperatures must agree: at another temperature the policy, and so the truth, is another one.
    """
    configs: dict[str, TrainConfig] = {}
    refused: dict[str, str] = {}
    limits = job.suite.column(start.column).limits
    for label in job.rows:
        try:
            config = _config(job, start, label, limits)
        except RefusedCellError as fault:
            refused[label] = str(fault)
            continue
        recipe = config.recipe
        if not recipe.rollout.samples:
            refused[label] = "its actions are not sampled by the policy: no advantage under it"
        elif configs and recipe.temperature != (t := _first(configs).recipe.temperature):
            refused[label] = f"samples at temperature {recipe.temperature:g}, other rows at {t:g}"
        else:
            configs[label] = config
    return configs, refused


def _config(job: ColumnJob, start: ColumnResult, label: str, limits: Limits) -> TrainConfig:
    seed = job.suite.seeds[0]
    cell = Cell(recipe=label, column=start.column, seed=seed)
    return make_train_config(job.suite, cell, start, seed, limits, job.rates.get(label))


def _first(configs: dict[str, TrainConfig]) -> TrainConfig:
    return next(iter(configs.values()))


def _half(job: ColumnJob) -> Budget:
    limits = job.suite.column(job.start.column).limits.part(SHARE)
    return Budget(steps=limits.steps, tokens=limits.tokens, calls=limits.calls)


def reference_row(job: ColumnJob) -> str:
    """Return the row whose run goes half way: the suite's first one in the column.

    It does not depend on the rows that are asked for, so that any of them can be added later.
    """
    column = job.suite.column(job.start.column)
    return next(r.label for r in job.suite.recipes if not column.rows or r.label in column.rows)


def _go_halfway(job: ColumnJob, start: ColumnResult) -> str:
    """Train the column's reference run to half its budget; return what it is in words."""
    label, limits = reference_row(job), job.suite.column(start.column).limits
    job.folder.mkdir(parents=True, exist_ok=True)
    train_halfway(bare(_config(job, start, label, limits), _half(job)), job.folder / POLICY)
    return f"{label}, seed {job.suite.seeds[0]}, after half of its budget"
