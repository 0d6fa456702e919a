"""Do gradient cosines order recipes as their areas do? Reports of the microscope and a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from ...algos.evaluation.set_content import say_other_settings
from ...envs.core.errors import DataError, UnknownNameError
from ...envs.core.registration import default_settings
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.seed_tests import rank_correlation
from ...leaderboard.schema.base import Form
from ..matrix.report import write_pages
from ..matrix.results import Results
from ..matrix.suite import SuiteEnv
from .metrics import MIN_RELIABILITY
from .report import FILE, TEMPLATES, CreditReport, Row

MEASURES = {
    "cosine_batch": "cosine with the truth of the same batch or group",
    "cosine_turns": "the same turn by turn",
    "cosine_mean": "cosine with the truth, all batches or groups summed",
    "rank": "rank correlation with the truth",
    "explained": "explained variance",
    "signal_per_1k": "signal per 1,000 tokens",
    "cosine_reference": "cosine of a training batch with the reference",
    "cosine_summed": "cosine of many batches with the reference",
    "reference_per_1k": "signal towards the reference per 1,000 tokens",
}
"""Measures that are set against areas, in words."""
OF_REFERENCE = ("cosine_reference", "cosine_summed", "reference_per_1k")
"""Measures whose noise is the reference's; that of all others is the truth's."""
AGAINST = "against.json"
ENOUGH = 40
"""Cells that the claim asks for."""


class CreditCell(Form):
    """A recipe on an environment: what the microscope saw, and how it learned.

    Attributes:
        column: Column of the matrix.
        at: ``start`` or ``halfway``; empty for a study of its own.
        recipe: Row of the matrix.
        measures: Of the microscope, by name; those that are too noisy are left out.
        noisy: Names of these.
        area: Mean area over seeds.
        seeds: Number of seeds.
        halves: Mean areas of every other seed and of the rest; None of one seed.
    """

    column: str
    at: str
    recipe: str
    measures: dict[str, float]
    noisy: list[str]
    area: float
    seeds: int
    halves: tuple[float, float] | None


class Order(Form):
    """How one measure orders the recipes, beside their areas.

    Attributes:
        at: Which policy; empty for studies of their own.
        measure: Name of the measure.
        cells: Cells that have an order.
        columns: Columns that they are in.
        noisy: Cells that were left out, because truth or reference is reliable below .5 there.
        rho: Rank correlation within columns, pooled; None where there are too few cells.
        low95: Lower end of its interval, over columns; None where leaving any of them out changes
            nothing.
        high95: Upper end.
        p: Share of orders by chance, drawn anew in every column, that are as strong.
    """

    at: str
    measure: str
    cells: int
    columns: int
    noisy: int
    rho: float | None = None
    low95: float | None = None
    high95: float | None = None
    p: float | None = None


class Comparison(Form):
    """``against.json``: the microscope's reports beside a matrix.

    Attributes:
        format: Version of the record.
        suite: Name of the suite.
        suite_digest: Hash of its content.
        cells: All cells that have a measure and an area.
        refused: Rows that were not measured, by column and policy, with the reason.
        area_reliability: How well half of the seeds orders the recipes as the other half does,
            stepped up to all seeds (Spearman and Brown); no correlation with areas can be expected
            beyond its root. None of one seed.
        orders: By policy and measure.
        doubts: Where a study of its own is of something else than the column it is set beside.
    """

    format: Literal[1] = 1
    suite: str
    suite_digest: str
    cells: list[CreditCell]
    refused: dict[str, dict[str, str]]
    area_reliability: float | None
    orders: list[Order]
    doubts: list[str] = Field(default_factory=list)


def compare_reports(results: str, reports: Sequence[str]) -> Comparison:
    """Set reports beside a matrix.

    Args:
        results: Folder of a matrix, or its packed results.
        reports: As of :func:`read_cells`.

    Raises:
        DataError: As :func:`read_cells`.
    """
    matrix = Results.read(Path(results))
    cells = read_cells(results, reports)
    files = report_files(reports)
    found = [CreditReport.read(path) for path in files]
    places = [report.place for report in found if report.place is not None]
    return Comparison(
        suite=matrix.suite.name,
        suite_digest=matrix.suite.digest,
        cells=cells,
        refused={f"{p.column}, {p.at}": p.refused for p in places if p.refused},
        area_reliability=area_reliability(cells),
        orders=correlate(cells),
        doubts=[
            f"{path}: {doubt}"
            for path, report in zip(files, found, strict=True)
            for doubt in say_doubts(matrix, report, path)
        ],
    )


def say_doubts(matrix: Results, report: CreditReport, path: Path) -> list[str]:
    """Return what a study of its own has otherwise than the column that it is set beside.

    A study of :class:`MatrixPlace` has the column's settings.
    """
    name = _column(matrix, report, path)
    said = []
    if report.place is None:
        own = matrix.suite.column(name).settings
        there = {key: value for key, value in report.env_settings.items() if key not in own}
        if other := say_other_settings(there, {}, _defaults(report.env_id)):
            said.append(f"settings that column {name} does not name: {other}")
    start = matrix.columns.get(name)
    known = set() if start is None else {start.start_digest, report.start_digest} - {""}
    if len(known) > 1 and report.place is not None:
        said.append(f"measured {report.place.policy}, but of another start than {name} has now")
    elif len(known) > 1:
        said.append(
            f"measured the policy {report.model}, which is not what column {name} starts from"
        )
    return said


def _defaults(env_id: str) -> dict[str, str]:
    """Return the settings of an environment that are not given, as text; none of an unknown one."""
    try:
        return {name: str(value) for name, value in default_settings(env_id).items()}
    except UnknownNameError:  # of a plugin that is not loaded
        return {}


def report_files(reports: Sequence[str]) -> list[Path]:
    """Return the files of these names: files, folders with one, or folders of such folders.

    A file that several of the names lead to is there once.

    Raises:
        DataError: A folder without any.
    """
    files: list[Path] = []
    for name in reports:
        path = Path(name)
        if not path.is_dir() or (path / FILE).exists():
            files.append(path / FILE if path.is_dir() else path)
            continue
        inside = sorted(path.rglob(FILE))
        if not inside:
            raise DataError(
                f"{path}: there is no {FILE} in it or below; `turngym credit` makes it."
            )
        files += inside
    return list({path.expanduser().resolve(): path for path in reversed(files)}.values())[::-1]


def read_cells(results: str, reports: Sequence[str]) -> list[CreditCell]:
    """Return the cells that are both in the reports and in the matrix.

    Args:
        results: Folder of a matrix, or its packed results.
        reports: Files ``credit.json``, folders with one, or folders of such folders.

    Raises:
        DataError: A file that is missing or damaged, a report of another matrix or of an
            environment that the matrix does not have, or a cell that two reports describe.
    """
    matrix = Results.read(Path(results))
    cells: dict[tuple[str, str, str], CreditCell] = {}
    for path in report_files(reports):
        report = CreditReport.read(path)
        column = _column(matrix, report, path)
        at = report.place.at if report.place is not None else ""
        for row in report.rows:
            areas = matrix.areas(row.name, column) if row.name in matrix.recipes else {}
            if row.role != "recipe" or not areas or not MEASURES.keys() & row.measures.keys():
                continue
            if (at, column, row.name) in cells:
                raise DataError(
                    f"{path}: {row.name} on {column} is in an earlier report as well. Give one "
                    "report per environment and policy."
                )
            noisy = _noisy(row, report.place is not None)
            values = list(areas.values())
            halves = (float(np.mean(values[::2])), float(np.mean(values[1::2] or [0.0])))
            cells[at, column, row.name] = CreditCell(
                column=column,
                at=at,
                recipe=row.name,
                measures={
                    name: value.value
                    for name, value in row.measures.items()
                    if name in MEASURES and name not in noisy
                },
                noisy=noisy,
                area=float(np.mean(values)),
                seeds=len(areas),
                halves=halves if len(values) > 1 else None,
            )
    if not cells:
        raise DataError(
            f"credit: no recipe of the reports has a finished run with an area in {results}; rows "
            f"there: {', '.join(matrix.recipes)}."
        )
    return list(cells.values())


def _noisy(row: Row, required: bool) -> list[str]:
    """Return the measures of a row whose truth or reference is reliable below .5.

    Args:
        row: The recipe's.
        required: Whether a reliability that is missing counts as too low.
    """
    out = []
    for name in filter(row.measures.__contains__, MEASURES):
        by = "reference_reliability" if name in OF_REFERENCE else "reliability"
        found = row.measures.get(by)
        if (found is None and required) or (found is not None and found.value < MIN_RELIABILITY):
            out.append(name)
    return out


def _column(matrix: Results, report: CreditReport, path: Path) -> str:
    """Return the report's column, or that of its environment with most of its settings."""
    place = report.place
    if place is not None:
        if place.suite_digest != matrix.suite.digest or place.column not in matrix.envs:
            raise DataError(
                f"{path}: it is of column {place.column!r} of suite {place.suite!r} "
                f"({place.suite_digest[:12]}); the matrix is {matrix.suite.name!r} "
                f"({matrix.suite.digest[:12]}) with columns {', '.join(matrix.envs)}."
            )
        return place.column

    def agrees(column: SuiteEnv) -> bool:
        here = {name: str(value) for name, value in column.settings.items()}
        there = {name: value for name, value in report.env_settings.items() if name in here}
        return column.id == report.env_id and not say_other_settings(there, here, defaults)

    defaults = _defaults(report.env_id)

    fitting = [c for c in matrix.suite.envs if c.name in matrix.envs and agrees(c)]
    if not fitting:
        raise DataError(
            f"{path}: the matrix has no column of {report.env_id} with settings "
            f"{report.env_settings}; columns: {', '.join(matrix.envs)}."
        )
    return max(fitting, key=lambda column: len(column.settings)).name


def correlate(cells: Sequence[CreditCell]) -> list[Order]:
    """Return how every measure orders the recipes at every policy, beside their areas.

    Areas of different environments have different scales, so both sides are ranked within their
    environment first, and values change places within theirs. Environments with one recipe, or in
    which one side does not vary, have no order and are left out.
    """
    orders = []
    for at in dict.fromkeys(cell.at for cell in cells):
        here = [cell for cell in cells if cell.at == at]
        for measure in MEASURES:
            known = [cell for cell in here if measure in cell.measures]
            noisy = sum(measure in cell.noisy for cell in here)
            if not known and not noisy:
                continue
            x, y, columns = within_columns(known, measure)
            count = len(set(columns))
            found = None if count < 2 or len(x) < 3 else rank_correlation(x, y, columns)
            orders.append(
                Order(
                    at=at,
                    measure=measure,
                    cells=len(x),
                    columns=count,
                    noisy=noisy,
                    rho=None if found is None else found.rho,
                    low95=None if found is None else found.low95,
                    high95=None if found is None else found.high95,
                    p=None if found is None else found.p,
                )
            )
    return orders


def area_reliability(cells: Sequence[CreditCell]) -> float | None:
    """Return how reliably the areas order the recipes of a column, at least -1.

    None of single seeds.
    """
    first = cells[0].at if cells else ""
    known = [cell for cell in cells if cell.halves is not None and cell.at == first]
    sides = [
        cell.model_copy(update={"area": cell.halves[1], "measures": {"half": cell.halves[0]}})
        for cell in known
        if cell.halves is not None
    ]
    x, y, columns = within_columns(sides, "half")
    if len(set(columns)) < 2 or len(x) < 3:
        return None
    half = rank_correlation(x, y, columns).rho
    return 2 * half / (1 + half) if half > -1 / 3 else -1.0


def order_line(order: Order) -> str:
    """Return an order in a line of text."""
    where = {"start": "at the start, ", "halfway": "half way, "}.get(order.at, "")
    noisy = f"; {order.noisy} cells too noisy" if order.noisy else ""
    if order.rho is None:
        return (
            f"{where}{order.measure}: not decided, needs at least two environments with an order"
            f"{noisy}"
        )
    few = f"; the claim asks for {ENOUGH} cells" if order.cells < ENOUGH else ""
    sure = "no interval" if order.low95 is None else f"{order.low95:.2f} to {order.high95:.2f}"
    return (
        f"{where}{order.measure}: rank correlation with the area {order.rho:.2f} "
        f"({sure}, p {order.p:.3f}) over {order.cells} cells of {order.columns} environments"
        f"{few}{noisy}"
    )


def write_comparison(found: Comparison, folder: Path) -> list[Path]:
    """Write ``against.json`` and ``against.md`` into a folder.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    make_folder(folder)
    found.write(folder / AGAINST)
    content: dict[str, Any] = {
        "found": found,
        "measures": MEASURES,
        "reasons": _reasons(found),
        "enough": ENOUGH,
    }
    pages = {"against.md": "against.md.j2"}
    return [folder / AGAINST, *write_pages(folder, pages, [TEMPLATES], {}, content)]


def _reasons(found: Comparison) -> dict[str, int]:
    """Count the reasons for which rows were not measured."""
    counted: dict[str, int] = {}
    for rows in found.refused.values():
        for row, reason in rows.items():
            text = f"{row}: {reason}"
            counted[text] = counted.get(text, 0) + 1
    return counted


def within_columns(
    cells: Sequence[CreditCell], measure: str
) -> tuple[list[float], list[float], list[str]]:
    """Return ranks in [0, 1] within each column: of the measure, of the area, and the column."""
    from scipy.stats import rankdata  # slow to import

    x: list[float] = []
    y: list[float] = []
    columns: list[str] = []
    for column in dict.fromkeys(cell.column for cell in cells):
        inside = [cell for cell in cells if cell.column == column]
        sides = [cell.measures[measure] for cell in inside], [cell.area for cell in inside]
        if len(inside) < 2 or any(np.ptp(side) == 0 for side in sides):
            continue
        ranks = [(rankdata(side) - 1) / (len(inside) - 1) for side in sides]
        x += ranks[0].tolist()
        y += ranks[1].tolist()
        columns += [column] * len(inside)
    return x, y, columns
