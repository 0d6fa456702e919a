"""`turngym papers check | passages | stats | imitation | draw | curve`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table

from ...algos.runs.progress import reporter
from ...envs.core.errors import DataError
from ...envs.paper_crawler.real.check import FoundPapers, FoundRows, PapersReport, check_papers
from ...envs.paper_crawler.real.database import PaperDatabase, write_passages
from ...envs.paper_crawler.real.layout import find_database_files
from .index import Stages
from .papers_crawls import curve, draw
from .papers_imitation import imitation
from .papers_options import (
    PapersCheck,
    PapersCommand,
    PapersCurve,
    PapersDraw,
    PapersImitation,
    PapersPassages,
    PapersStats,
)
from .papers_stats import stats


def run(command: PapersCommand) -> None:
    """Do what was asked for."""
    action = command.action
    doers: dict[type, Callable[[Any], None]] = {
        PapersCheck: check,
        PapersPassages: passages,
        PapersStats: stats,
        PapersImitation: imitation,
        PapersDraw: draw,
        PapersCurve: curve,
    }
    doers[type(action)](action)


def check(action: PapersCheck) -> None:
    """Print what a folder holds; what is damaged is told as an error.

    Raises:
        DataError: No such folder, or something in it is damaged.
    """
    with ExitStack() as stack:
        stages = Stages(reporter(), stack)
        report = check_papers(
            action.folder, every=action.all, sample=action.sample, progress=stages
        )
    Console().print(_shown(report))
    if report.damaged:
        raise DataError("\n".join(report.damaged))


def passages(action: PapersPassages) -> None:
    """Write a passage file and say how to index it.

    Raises:
        DataError: Files are missing, or the passage file is there.
    """
    files = find_database_files(action.folder)
    with ExitStack() as stack:
        stages = Stages(reporter(), stack)
        written, damaged = write_passages(
            PaperDatabase(files.titles, files.papers), action.out, stages
        )
    lost = f", {damaged:,} of them without the abstract of a damaged member" if damaged else ""
    Console().print(
        f"{written:,} papers in {escape(action.out)}{lost}. Next: turngym index build --corpus "
        f"{escape(action.out)} --out FOLDER",
        highlight=False,
        soft_wrap=True,
    )


def _shown(report: PapersReport) -> Group:
    parts: list[Table | str] = [_files(report)]
    if report.queries or report.examples:
        parts += ["", _rows((*report.queries, *report.examples))]
    if report.papers is not None:
        parts += ["", _papers(report.papers)]
    return Group(*parts)


def _files(report: PapersReport) -> Table:
    table = Table(title=escape(str(report.folder)), title_justify="left", box=None)
    table.add_column("file", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("gives", overflow="fold")
    for found in report.files:
        need = "missing" if found.part.needed else "missing, not needed"
        state = f"[yellow]{need}[/]" if found.size is None else f"{found.size / 2**20:,.1f} MiB"
        table.add_row(escape(found.name), state, found.part.gives)
    return table


def _rows(found: tuple[FoundRows, ...]) -> Table:
    table = Table(box=None)
    table.add_column("rows of", overflow="fold", min_width=20)
    for name in ("good", "unanswered", "bad", "answers", "repeated", "titled", "in zip"):
        table.add_column(name, justify="right")
    for rows in found:
        table.add_row(
            escape(rows.name.removesuffix(".jsonl")),
            *(f"{n:,}" for n in (rows.rows, rows.unanswered, rows.damaged.count)),
            *(f"{n:,}" for n in (rows.answers, rows.repeated)),
            *(_share(n, rows.answers) for n in (rows.with_title, rows.with_member)),
        )
    return table


def _papers(found: FoundPapers) -> Table:
    table = Table(box=None, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in {
        "papers in id2paper.json": f"{found.papers:,}",
        "with a member in the zip": _share(found.with_member, found.papers),
        "id without a date": f"{found.undated:,}",
        "title shared with an earlier one": f"{found.shared_titles:,}",
        "members of the zip": f"{found.members:,}",
        "hidden by a later member": f"{found.repeated:,}",
        "members read": f"{found.checked:,}",
        "damaged among them": f"{found.damaged.count:,}",
        "sections per member": f"{found.sections / max(found.checked, 1):.1f}",
        "citations per member": f"{found.cited / max(found.checked, 1):.1f}",
        "citations that resolve": _share(found.resolved, found.cited),
    }.items():
        table.add_row(name, value)
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
