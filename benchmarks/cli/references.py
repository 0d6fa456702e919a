"""`turngym leaderboard reference`: the rows that every board shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...agents.models.built_folder import whole_or_nothing
from ...algos.runs.progress import reporter
from ...envs.core.errors import DataError, UnknownNameError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import check_writable
from ...leaderboard.entries_io.files import write_entry
from ...leaderboard.entries_io.packing import make_manifest
from ...leaderboard.ranking.board import REFERENCES
from ...leaderboard.ranking.index import entries_folder
from ...leaderboard.schema.entry import RESERVED, Manifest, ModelCard
from ...leaderboard.schema.suite import Suite
from ...leaderboard.suites.files import load_suite
from .arguments import Repeated
from .submit import scripted_episodes
from .tables import say

_DESCRIPTIONS = {
    "expert": "The worlds' own scripted experts, which read the hidden state: about the best "
    "that can be reached.",
    "random": "A legal action at random where the world lists them, else random words in the "
    "form of an action.",
    "null": "Says nothing, every turn.",
}


@dataclass(frozen=True, kw_only=True)
class Command:
    """Make the rows that every board shows: expert, random, null.

    Attributes:
        suite: Suite to play.
        out: Folder of entries; left out: the package's own.
        only: One of expert, random, null, repeatable; left out: all.
        overwrite: Replace entries that are there.
    """

    suite: str = "micro-v3"
    out: str | None = None
    only: Repeated = ()
    overwrite: bool = False


def run(action: Command) -> None:
    """Play and write the reference rows.

    Raises:
        UnknownNameError: There is no such row or suite.
        DataError: An entry is there already.
    """
    suite = load_suite(action.suite)
    root = Path(action.out).expanduser() if action.out else entries_folder()
    for name in action.only:
        if name not in REFERENCES:
            raise UnknownNameError("reference row", name, REFERENCES)
    chosen = [name for name in REFERENCES if not action.only or name in action.only]
    folders = [root / suite.id / name for name in chosen]
    for folder in folders:
        if folder.exists() and not action.overwrite:
            raise DataError(f"{folder}: exists; --overwrite replaces it.")
    check_writable(make_folder(root / suite.id))
    for name, folder in zip(chosen, folders, strict=True):
        write_reference(name, suite, folder)
        say(f"wrote {folder}")


def write_reference(name: str, suite: Suite, folder: Path) -> None:
    """Play a reference row; an older one in the folder is replaced when it is whole."""
    with reporter().bar(f"{name} on {suite.id}") as bar:
        episodes = list(scripted_episodes(name, suite, 0, bar))
    with whole_or_nothing(folder, replace=True) as draft:
        write_entry(draft, reference_manifest(name, suite), episodes)


def reference_manifest(name: str, suite: Suite) -> Manifest:
    """Return the description of a reference row: expert, random or null."""
    return make_manifest(
        suite,
        name=name,
        organisation=RESERVED,
        board="agents",
        description=_DESCRIPTIONS[name],
        card=ModelCard(model=name, recipe="scripted"),
        licence="Apache-2.0",
        reference=name,
    )
