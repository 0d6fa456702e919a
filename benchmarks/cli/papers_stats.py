"""`turngym papers stats`: what generated citation worlds are like, beside their bands."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...algos.runs.progress import reporter
from ...envs.core.errors import BadValueError
from ...envs.paper_crawler.world.expected_ranges import Measured, check_orderings, compare
from ...envs.paper_crawler.world.parameters import world_parameters
from ...envs.paper_crawler.world.statistics import average_statistics, compute_world_statistics
from ...envs.paper_crawler.world.world import load_world
from .papers_options import PapersStats
from .tables import table_console


def stats(action: PapersStats) -> None:
    """Measure the worlds, print the table, and say what lies outside its band.

    Raises:
        BadValueError: No seed, or fewer than one request.
        UnknownNameError: No such size or preset.
    """
    if not action.world_seed or action.n < 1:
        raise BadValueError(
            f"papers stats: seeds {action.world_seed} and n {action.n}; expected one seed and one "
            "request at least."
        )
    parameters = world_parameters(action.size, action.preset)
    measured = []
    with reporter().bar("measuring worlds") as bar:
        for number, seed in enumerate(action.world_seed):
            bar.update(number / len(action.world_seed), f"seed {seed}")
            measured.append(compute_world_statistics(load_world(parameters, seed), action.n))
    values = average_statistics(measured)
    rows = compare(values, action.size, action.preset)
    console = table_console()
    console.print(_table(rows))
    for ordering in check_orderings(values) if action.preset == "default" else ():
        mark = "[green]holds[/]" if ordering.holds else "[red]does not hold[/]"
        console.print(f"{ordering.text}: {mark}", highlight=False)
    _verdict(console, rows)
    if action.out is not None:
        out = Path(action.out).expanduser()
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _table(rows: list[Measured]) -> Table:
    table = Table(box=None)
    table.add_column("value", no_wrap=True)
    for head in ("measured", "band from", "to"):
        table.add_column(head, justify="right")
    table.add_column("")
    for row in rows:
        band = (
            ("", "") if row.low is None or row.high is None else (_told(row.low), _told(row.high))
        )
        mark = {True: "[green]inside[/]", False: "[red]outside[/]", None: ""}[row.inside]
        table.add_row(row.name, _told(row.value), *band, mark)
    return table


def _told(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def _verdict(console: Console, rows: list[Measured]) -> None:
    judged = [row for row in rows if row.inside is not None]
    if judged:
        inside = sum(bool(row.inside) for row in judged)
        console.print(f"{inside} of {len(judged)} values lie inside their bands.")
