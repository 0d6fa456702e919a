"""`turngym retail tasks | export`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ...envs.core.errors import UnknownNameError
from ...envs.retail.env import prove_solvable
from ...envs.retail.tasks.checkout import export_checkout
from ...envs.retail.tasks.generated import DIGESTS, remake_tasks
from .retail_options import RetailCommand, RetailExport, RetailTasks


def run(command: RetailCommand) -> None:
    """Do what was asked for."""
    if isinstance(command.action, RetailTasks):
        tasks(command.action)
    else:
        export(command.action)


def tasks(action: RetailTasks) -> None:
    """Make the tasks again; the first split that differs is an error.

    Raises:
        UnknownNameError: No such size or split.
        DataError: The tasks differ from the published ones.
    """
    if action.size not in DIGESTS:
        raise UnknownNameError("size", action.size, list(DIGESTS), "retail tasks")
    for split in action.split:
        if split not in DIGESTS[action.size]:
            known = list(DIGESTS[action.size])
            raise UnknownNameError("split", split, known, "retail tasks")
    table = Table("split", "digest, as published")
    for split in action.split:
        table.add_row(split, remake_tasks(action.size, split, prove_solvable))
    Console().print(table)


def export(action: RetailExport) -> None:
    """Write tau-bench's files as a folder and say what it holds."""
    counts = export_checkout(action.checkout, action.out)
    told = ", ".join(f"{count} {split}" for split, count in counts.items())
    Console().print(
        f"{action.out}: {told} tasks. Play them with Retail-v0, data={action.out!r}.",
        soft_wrap=True,
        highlight=False,
    )
