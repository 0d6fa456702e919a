"""`turngym pull`: a checkpoint or an entry of the leaderboard from a hub."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Annotated

import tyro

from .arguments import new_folder
from .hub import Kind, pull
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Command:
    """Fetch a model or a leaderboard entry from a hub into a folder (extra train).

    Only weights as safetensors and texts are fetched: nothing that runs code when it is read.

    Attributes:
        repo: Where from, as ORGANISATION/NAME.
        out: New folder.
        kind: What it is: a model, or an entry.
        revision: Branch, tag or commit; left out: the newest.
    """

    repo: Annotated[str, tyro.conf.Positional]
    out: str
    kind: Kind = "model"
    revision: str | None = None


def run(command: Command) -> None:
    """Fetch the files and say what can be done with them.

    Raises:
        BadValueError: The folder holds files; the hub refuses, or cannot be reached.
        DataError: What came is neither a model nor an entry.
    """
    out = new_folder(command.out)
    found = pull(command.repo, command.kind, out, command.revision)
    say(f"{len(found)} files are in {out}")
    if command.kind == "entry":
        say(f"check it with: turngym leaderboard verify {quote(str(out))}")
    else:
        say(f"play it with: turngym eval --agent {quote(str(out))}")
