"""`turngym retail`: the shop's tasks made again, or taken from tau-bench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.table import Table

from ...algos.runs.console import PlainConsole
from ...envs.core.errors import UnknownNameError
from ...envs.retail.env import prove_solvable
from ...envs.retail.tasks.checkout import export_checkout
from ...envs.retail.tasks.generated import DIGESTS, remake_tasks
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """Regenerate the shop's tasks and compare them with their published digests.

    Attributes:
        size: full or micro.
        split: train, dev, test or hard; one or several.
    """

    size: str = "full"
    split: tuple[str, ...] = ("train", "dev", "test", "hard")


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write tau-bench's retail files as a folder that `Retail-v0` opens with `data=`.

    Its task lists are Python modules; they are read, never run.

    Attributes:
        checkout: A checkout of tau-bench.
        out: The folder to write.
    """

    checkout: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    out: str


Command = (
    Annotated[Tasks, tyro.conf.subcommand("tasks")]
    | Annotated[Export, tyro.conf.subcommand("export")]
)


def run(command: Command) -> None:
    """Regenerate the tasks, or export those of tau-bench."""
    if isinstance(command, Tasks):
        regenerate(command)
    else:
        export(command)


def regenerate(action: Tasks) -> None:
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
    PlainConsole().print(table)


def export(action: Export) -> None:
    """Write tau-bench's files as a folder and say what it holds."""
    counts = export_checkout(action.checkout, action.out)
    tasks = ", ".join(f"{count} {split}" for split, count in counts.items())
    say(f"{action.out}: {tasks} tasks. Play them with Retail-v0, data={action.out!r}.")
