"""Options of `turngym retail`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class RetailTasks:
    """Make the shop's tasks again and compare them with their published digests.

    Attributes:
        size: full or micro.
        split: train, dev, test or hard; one or several.
    """

    size: str = "full"
    split: tuple[str, ...] = ("train", "dev", "test", "hard")


@dataclass(frozen=True, kw_only=True)
class RetailExport:
    """Write tau-bench's retail files as a folder that `Retail-v0` opens with `data=`.

    Its task lists are Python modules; they are read, never run.

    Attributes:
        checkout: A checkout of tau-bench.
        out: The folder to write.
    """

    checkout: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    out: str


@dataclass(frozen=True, kw_only=True)
class RetailCommand:
    """Tasks of the shop: made again and checked, or taken from tau-bench."""

    action: Annotated[
        Annotated[RetailTasks, tyro.conf.subcommand("tasks")]
        | Annotated[RetailExport, tyro.conf.subcommand("export")],
        tyro.conf.arg(name=""),
    ] = field()
