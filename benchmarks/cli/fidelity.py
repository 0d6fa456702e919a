"""`turngym fidelity`: how closely an environment follows transcripts of the original."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape

from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.utils.disk_errors import write_whole
from ..fidelity.agreement import Agreement, tabulate
from ..fidelity.household import (
    HouseholdAgreement,
    measure_household,
    measure_live_household,
)
from ..fidelity.live import LiveSettings
from ..fidelity.science_world import (
    ScienceAgreement,
    measure_live_science,
    measure_science_world,
    title_task,
)
from .arguments import Repeated, refuse_without
from .tables import plain_table, say, table_console

_SHOWN = 300


@dataclass(frozen=True, kw_only=True)
class Command:
    """Replay transcripts of an original environment, and report how many steps agree.

    Attributes:
        env: The environment that the transcripts are of: scienceworld or household.
        folder: Folder of transcripts, one JSON file each; for household a folder that holds
            ``games`` and ``transcripts``, or with --live the original's games.
        live: Let the original engine play now instead: runs that solve the task and random walks,
            over variations or games drawn from the seed. Needs Java and the extra science-jvm, for
            household the extra household-original.
        settings: What --live generates.
        task: Name or id of a task (for household: a task type) to replay, repeatable; left out:
            all.
        json: File for the figures.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    folder: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = None
    live: bool = False
    settings: Annotated[LiveSettings, tyro.conf.arg(name="")] = field(default_factory=LiveSettings)
    task: Repeated = ()
    json: str | None = None


@dataclass(frozen=True)
class Original:
    """How an environment is compared with its original.

    Attributes:
        agreement: What is counted.
        measure: Replays the transcripts of a folder, of the tasks named (all when none is).
        measure_live: Replays what the original plays now: on the games of a folder, or out of
            itself, for which it takes no folder.
        title: What a task is called in the table.
    """

    agreement: type[Agreement]
    measure: Callable[[str, Iterable[str]], Mapping[str, Agreement]]
    measure_live: Callable[[str | None, LiveSettings, Iterable[str]], Mapping[str, Agreement]]
    title: Callable[[str], str] = str


ORIGINALS: Mapping[str, Original] = {
    "scienceworld": Original(
        ScienceAgreement, measure_science_world, measure_live_science, title_task
    ),
    "household": Original(HouseholdAgreement, measure_household, measure_live_household),
}
"""The environments that have an original to be compared with."""


def run(command: Command) -> None:
    """Replay transcripts and print the agreement per task.

    Raises:
        UnknownNameError: No such environment or task.
        BadValueError: No transcripts, or none can be made.
    """
    if command.env not in ORIGINALS:
        raise UnknownNameError("environment", command.env, ORIGINALS, "fidelity")
    if not command.live:
        refuse_without(command, "--live", [field.name for field in fields(LiveSettings)])
    original = ORIGINALS[command.env]
    found = _measure(command, original)
    if command.json is not None:
        rows = {name: agreement.as_row() for name, agreement in found.items()}
        _write(rows, Path(command.json).expanduser())
    show(found, original)


def show(found: Mapping[str, Agreement], original: Original) -> None:
    """Print a row per task and one for all, then the first difference of each task."""
    task, *heads = original.agreement.heads
    table = plain_table(task, right=heads)
    for column in table.columns:
        column.no_wrap = True
    for row in tabulate(found, original.agreement, original.title):
        table.add_row(*row)
    table_console().print(table)
    for name, agreement in found.items():
        if (first := agreement.first) is not None:
            lines = (
                f"{first.where}, step {first.step}: {first.action}",
                f"  {first.what} of the original: {first.expected[:_SHOWN]!r}",
                f"  {first.what} here:            {first.got[:_SHOWN]!r}",
            )
            shown = f"[bold]{escape(name)}[/] first difference: " + escape("\n".join(lines))
            say(f"\n{shown}", markup=True)


def _measure(command: Command, original: Original) -> Mapping[str, Agreement]:
    if command.live:
        return original.measure_live(command.folder, command.settings, command.task)
    if command.folder is None:
        raise BadValueError(
            f"fidelity {command.env}: name a FOLDER of transcripts, or let the original play "
            "(--live)."
        )
    return original.measure(command.folder, command.task)


def _write(rows: Mapping[str, Any], path: Path) -> None:
    try:
        write_whole(path, json.dumps(rows, indent=1) + "\n")
    except OSError as error:
        raise BadValueError(f"fidelity: cannot write {path} ({error.strerror}).") from error
