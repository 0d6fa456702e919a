"""ScienceWorld task by task: measured agents beside published scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...algos.evaluation.evaluate import Evaluation
from ...algos.training.config import EnvConfig, EvalConfig
from ...envs.core.errors import BadValueError
from ...envs.science_world.tasks.catalogue import find_kind
from ...envs.science_world.tasks.source import choose_tasks

ENVIRONMENT = "ScienceWorld-v0"
REACHED = "reached"
"""The metric that published tables show: the last score that was not negative."""
_FILE = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class Published:
    """One column of a published table.

    Attributes:
        group: Table that it is from: paper, gpt-4 or gpt-3.5.
        name: The agent.
        source: Where it was published, and how it was measured.
        scores: Score per task id, 0 to 100.
    """

    group: str
    name: str
    source: str
    scores: Mapping[str, float]


def published() -> tuple[list[Published], Mapping[str, float]]:
    """Return all published columns, and the mean length of the original's gold runs per task."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    return [Published(**column) for column in data["columns"]], data["length"]["steps"]


def task_sets(env: EnvConfig, split: str, n: int) -> list[EvalConfig]:
    """Return one evaluation set per task of ScienceWorld.

    Raises:
        BadValueError: Another environment.
    """
    if env.id != ENVIRONMENT:
        raise BadValueError(
            f"--per-task: goes with --env {ENVIRONMENT}, whose tasks published tables list; got "
            f"{env.id}."
        )
    ids = choose_tasks(env.settings.get("tasks"), env.settings.get("size", "full"))
    return [
        EvalConfig(
            name=task,
            env=EnvConfig(id=env.id, settings={**env.settings, "tasks": task}),
            split=split,
            n=n,
        )
        for task in ids
    ]


def task_table(measured: Mapping[str, Sequence[Evaluation]], groups: Sequence[str]) -> Table:
    """Return a row per task; columns are measured agents, then published ones of some groups.

    Args:
        measured: Evaluations per agent, one per task in the same order.
        groups: Published tables to show.
    """
    columns, lengths = published()
    shown = [column for column in columns if column.group in groups]
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("task", no_wrap=True)
    table.add_column("gold\nsteps", justify="right")
    for agent, evaluations in measured.items():
        count = max((len(e.scored) for e in evaluations), default=0)
        table.add_column(f"[bold]{escape(agent)}[/]\nn {count}", justify="right")
    for column in shown:
        table.add_column(f"{escape(column.name)}\n{column.group}", justify="right", style="dim")
    tasks = [evaluation.name for evaluation in next(iter(measured.values()))]
    for at, task in enumerate(tasks):
        ours = (_mean(evaluations[at]) for evaluations in measured.values())
        theirs = (column.scores[task] for column in shown)
        table.add_row(
            f"{task} {find_kind(task).name}"[:26],
            f"{lengths[task]:g}",
            *(f"[bold]{_number(score)}[/]" for score in ours),
            *(_number(score) for score in theirs),
        )
    whole = [_mean_of([_mean(e) for e in evaluations]) for evaluations in measured.values()]
    whole += [_mean_of([column.scores[task] for task in tasks]) for column in shown]
    table.add_row("[bold]mean of tasks[/]", "", *(f"[bold]{_number(score)}[/]" for score in whole))
    return table


def show_tasks(
    console: Console, measured: Mapping[str, Sequence[Evaluation]], groups: Sequence[str]
) -> None:
    """Print the table, and the sources of what was published."""
    console.print(task_table(measured, groups))
    for line in sources(groups):
        console.print(line, highlight=False, style="dim")


def sources(groups: Sequence[str]) -> list[str]:
    """Return one line per published table that is shown."""
    found = {column.group: column.source for column in published()[0] if column.group in groups}
    return [f"{group}: {source}" for group, source in found.items()]


def _mean(evaluation: Evaluation) -> float | None:
    return evaluation.mean(REACHED) if evaluation.scored else None


def _mean_of(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None


def _number(score: float | None) -> str:
    return "" if score is None else f"{score:.1f}".removesuffix(".0")
