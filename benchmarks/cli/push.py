"""`turngym push`: a checkpoint or an entry of the leaderboard to a hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ...leaderboard.entries_io.files import MANIFEST
from .hub import find_uploads, push
from .model_options import model_path
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Command:
    """Send a model or a leaderboard entry to a hub, as one commit (extra train).

    A run directory sends its newest checkpoint, without the optimiser, and its settings, metrics
    and result. Of absolute paths in the settings only the last part is sent, of addresses no
    server. HF_TOKEN or `hf auth login` says who you are, HF_ENDPOINT which hub.

    Attributes:
        source: A run directory, a model folder, or the folder of an entry (`turngym submit`).
        repo: Where to, as ORGANISATION/NAME; models become a model there, entries a data set.
        private: Make a new repository private.
        message: Of the commit.
        dry: Only list what would be sent.
    """

    source: Annotated[str, tyro.conf.Positional]
    repo: Annotated[str, tyro.conf.Positional]
    private: bool = False
    message: str = "From turngym"
    dry: bool = False


def run(command: Command) -> None:
    """Send the files and say where they are.

    Raises:
        DataError: The source is no model and no entry.
        BadValueError: The hub refuses, or cannot be reached.
    """
    source = Path(command.source).expanduser()
    entry = (source / MANIFEST).is_file()
    also = ("a leaderboard entry",)
    model = None if entry else Path(model_path(command.source, also, "model"))
    kind, uploads = find_uploads(source, model)
    for name in sorted(uploads):
        say(f"  {name}")
    if command.dry:
        say(f"{len(uploads)} files would be sent to {command.repo}, as {kind}.")
        return
    url = push(command.repo, kind, uploads, private=command.private, message=command.message)
    say(f"{len(uploads)} files are at {url}")
    say(f"fetch them with: turngym pull {command.repo} --kind {kind} --out FOLDER")
