"""All columns of a matrix under the microscope, one per process at a time."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field, replace

from ...envs.core.errors import TurngymError
from ...envs.utils.system import count_cores
from ..matrix.jobs import describe_error
from ..runtime.threads import begin_worker
from ..runtime.worker_pool import WorkerPool
from .columns import ColumnJob, measure_column
from .report import CreditReport


@dataclass(kw_only=True)
class Sweep:
    """What a sweep did.

    Attributes:
        kept: Reports that were there before.
        measured: New reports.
        failed: Reasons, by the job's name.
    """

    kept: list[CreditReport] = field(default_factory=list)
    measured: list[CreditReport] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def run_sweep(
    jobs: Sequence[ColumnJob],
    workers: int,
    tell: Callable[[str], None],
) -> Sweep:
    """Measure the columns that have no report yet.

    Each column is measured by one process from beginning to end, and its report is written at its
    end: an interrupt loses what is under way, at one policy of one column per process.

    Args:
        jobs: The columns.
        workers: Processes.
        tell: Called with a line per column.

    Raises:
        DataError: A report that is there is damaged, or of other settings.
    """
    sweep = Sweep()
    waiting = []
    for job in jobs:
        if (old := kept_report(job)) is None:
            waiting.append(with_earlier_rows(job))
        else:
            sweep.kept.append(old)
    for done, (job, found) in enumerate(_run(waiting, workers), 1):
        if isinstance(found, str):
            sweep.failed[job.name] = found
            tell(f"{done} of {len(waiting)}: {job.name} failed: {found}")
            continue
        sweep.measured.append(found)
        place = found.place
        assert place is not None
        tell(
            f"{done} of {len(waiting)}: {job.name}, "
            f"{sum(row.role == 'recipe' for row in found.rows)} rows in {place.seconds:.0f} s"
        )
    return sweep


def kept_report(job: ColumnJob) -> CreditReport | None:
    """Return the report of a job that is there; None where it is to be measured.

    One of other settings, another suite, another start or other rows is measured again.

    Raises:
        DataError: The file is damaged.
    """
    old = _earlier_report(job)
    return old if old and {*job.rows, *job.refused} <= _rows_of(old) else None


def with_earlier_rows(job: ColumnJob) -> ColumnJob:
    """Return the job with the rows of the report that its own takes the place of.

    Raises:
        DataError: The file is damaged.
    """
    old = _earlier_report(job)
    if old is None or old.place is None:
        return job
    apart = job.refused | {
        label: why for label, why in old.place.refused.items() if label in job.suite.yardsticks
    }
    wanted = {*job.rows, *_rows_of(old)} - apart.keys()
    rows = tuple(row.label for row in job.suite.recipes if row.label in wanted)
    return replace(job, rows=rows, refused=apart)


def _earlier_report(job: ColumnJob) -> CreditReport | None:
    """Return the report that is there; None where it is of something else than its rows alone."""
    if not job.file.exists():
        return None
    old = CreditReport.read(job.file)
    how = job.settings.study(job.suite.column(job.start.column))
    place = old.place
    same = (
        place is not None
        and place.suite_digest == job.suite.digest
        and (place.column, place.at) == (job.start.column, job.at)
        and len({job.start.start_digest, old.start_digest} - {""}) < 2
        and (old.batches, old.batch_tokens, old.compared, old.reference)
        == (how.batches, how.batch_tokens, how.compared, how.reference)
        and (old.continuations, old.noise) == (how.truth.continuations, how.truth.noise)
    )
    return old if same else None


def _rows_of(report: CreditReport) -> set[str]:
    """Return the rows that a report has, and those that it could not measure."""
    refused = report.place.refused if report.place else {}
    return {row.name for row in report.rows if row.role == "recipe"} | refused.keys()


def _run(jobs: Sequence[ColumnJob], workers: int) -> Iterator[tuple[ColumnJob, CreditReport | str]]:
    """Yield every job with its report, or the reason why there is none, as they end."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield job, _measure(job)
        return
    threads = max(1, count_cores() // workers)
    with WorkerPool(min(workers, len(jobs)), begin_worker, threads) as pool:
        under_way: dict[Future[CreditReport | str], ColumnJob] = {
            pool.submit(_measure, job): job for job in jobs
        }
        while under_way:
            ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=lambda f: jobs.index(under_way[f])):
                yield under_way.pop(future), report_or_reason(future)


def report_or_reason(future: Future[CreditReport | str]) -> CreditReport | str:
    """Return what a job gave; why there is none where its process, or another, was killed."""
    try:
        return future.result()
    except BrokenExecutor as end:
        return str(end)


def _measure(job: ColumnJob) -> CreditReport | str:
    try:
        return measure_column(job)
    except TurngymError as fault:
        return str(fault)
    except Exception as error:  # noqa: BLE001 - of a user's part: the other columns go on
        traceback.print_exc()
        return describe_error(error)
