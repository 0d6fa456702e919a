"""Options of `turngym papers`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import tyro

Folder = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True, kw_only=True)
class PapersCheck:
    """Say what a folder of PaSa's files holds, what it lacks, and what is damaged.

    Attributes:
        folder: PaSa's folder data, or the one around it.
        all: Read every paper of the zip, not only some.
        sample: Papers of the zip to read otherwise.
    """

    folder: Folder
    all: bool = False
    sample: int = 1_000


@dataclass(frozen=True, kw_only=True)
class PapersPassages:
    """Write titles and abstracts as a passage file for `turngym index build`.

    Attributes:
        folder: Folder with id2paper.json and the zip, or PaSa's folder data.
        out: The file.
    """

    folder: Folder
    out: str


@dataclass(frozen=True, kw_only=True)
class PapersCommand:
    """Check PaSa's files, and prepare them for search (PaperCrawler)."""

    action: Annotated[
        Annotated[PapersCheck, tyro.conf.subcommand("check")]
        | Annotated[PapersPassages, tyro.conf.subcommand("passages")],
        tyro.conf.arg(name=""),
    ] = field()
