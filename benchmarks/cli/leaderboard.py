"""`turngym leaderboard`: entries, boards and suites; the site, its server and sealed seasons."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ...algos.runs.progress import reporter
from ...envs.core.errors import DataError, TurngymError, UnknownNameError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import check_writable, write_whole
from ...leaderboard.entries_io.signing import new_key
from ...leaderboard.ranking.board import make_boards
from ...leaderboard.ranking.index import (
    entries_folder,
    entry_folders,
    index_path,
    read_index,
    rebuild,
)
from ...leaderboard.schema.entry import EPISODES, MANIFEST
from ...leaderboard.schema.limits import ReplayLimits
from ...leaderboard.schema.result import Verdict
from ...leaderboard.suites.digests import find_drifts
from ...leaderboard.suites.files import known_suites, load_suite, suite_ids
from ...leaderboard.verification.sandbox import verify, verify_queue
from . import freeze, leaderboard_server, references, rerun
from .arguments import Repeated, output_file
from .leaderboard_server import Bounds
from .tables import (
    board_table,
    escape,
    say,
    scores_table,
    self_table,
    suites_table,
    table_console,
)

Entries = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ENTRY")]


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Replay entries step by step and recompute every score; refuse with the first difference.

    Attributes:
        entries: Folders, or zip or tar archives.
        suite_file: JSON file of a further suite, repeatable.
        json: File for the verdicts, one JSON object per line.
        bounds: Limits of each replay.
    """

    entries: Entries
    suite_file: Repeated = ()
    json: str | None = None
    bounds: Bounds = field(default_factory=ReplayLimits)


@dataclass(frozen=True, kw_only=True)
class Index:
    """Rebuild the index from the folder of entries; unchanged entries keep their verdict.

    Attributes:
        entries: Folder of entries; left out: the package's own.
        db: The index; left out: a file in the cache.
        fresh: Replay every entry again.
        suite_file: JSON file of a further suite, repeatable.
        bounds: Limits of each replay.
    """

    entries: str | None = None
    db: str | None = None
    fresh: bool = False
    suite_file: Repeated = ()
    bounds: Bounds = field(default_factory=ReplayLimits)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Show the boards of the index.

    Attributes:
        db: The index; left out: a file in the cache.
        suite: Only boards of this suite.
        board: Only boards of this kind.
        json: File for the rows.
    """

    db: str | None = None
    suite: str | None = None
    board: Literal["agents", "algorithms"] | None = None
    json: str | None = None


@dataclass(frozen=True, kw_only=True)
class Suites:
    """List the suites, or check that the installed environments still match some.

    Attributes:
        check: Suites to check, by id or JSON file; every task's digest is computed anew.
    """

    check: Repeated = ()


@dataclass(frozen=True, kw_only=True)
class Key:
    """Make a key that signs entries.

    Attributes:
        file: New file for the private key; keep it to yourself.
    """

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True, kw_only=True)
class Build:
    """Write the site: static pages of boards, entries, episodes and environments.

    Attributes:
        out: Folder of the site; pages of an earlier build that are still right stay.
        entries: Folder of entries; left out: the package's own.
        db: The index; left out: a file in the cache.
        suite_file: JSON file of a further suite, repeatable.
        no_transcripts: Leave the pages of episodes out.
    """

    out: str
    entries: str | None = None
    db: str | None = None
    suite_file: Repeated = ()
    no_transcripts: bool = False


Command = (
    Annotated[Verify, tyro.conf.subcommand("verify")]
    | Annotated[references.Command, tyro.conf.subcommand("reference")]
    | Annotated[rerun.Command, tyro.conf.subcommand("rerun")]
    | Annotated[Index, tyro.conf.subcommand("index")]
    | Annotated[Table, tyro.conf.subcommand("table")]
    | Annotated[Suites, tyro.conf.subcommand("suites")]
    | Annotated[freeze.Command, tyro.conf.subcommand("freeze")]
    | Annotated[Key, tyro.conf.subcommand("key")]
    | Annotated[Build, tyro.conf.subcommand("build")]
    | Annotated[leaderboard_server.Serve, tyro.conf.subcommand("serve")]
    | Annotated[leaderboard_server.Token, tyro.conf.subcommand("token")]
    | Annotated[leaderboard_server.Season, tyro.conf.subcommand("season")]
    | Annotated[leaderboard_server.Reveal, tyro.conf.subcommand("reveal")]
)


def check_entries(action: Verify) -> None:
    """Verify entries one after the other.

    Raises:
        DataError: An entry or a file is missing.
        TurngymError: An entry was refused.
    """
    out = None if action.json is None else output_file(action.json)
    files = _suite_files(action.suite_file)
    entries = [_entry(word) for word in action.entries]
    if not entries:
        raise DataError("name an entry: a folder, or a zip or tar archive of one.")
    verdicts: list[Verdict] = []
    missing: list[DataError] = []
    with reporter().bar("replaying") as bar:
        queue = verify_queue(
            entries,
            suites=files,
            replay=action.bounds,
            on_progress=lambda done, total: bar.update(done / total, f"{done} of {total}"),
        )
        for entry, outcome in queue:
            if isinstance(outcome, DataError):
                missing.append(outcome)
            else:
                verdicts.append(outcome)
                _show_verdict(entry, outcome)
    if out is not None:
        lines = "".join(verdict.model_dump_json() + "\n" for verdict in verdicts)
        write_whole(out, lines)
    if missing:
        raise missing[0]
    if refused := sum(not verdict.accepted for verdict in verdicts):
        raise TurngymError(f"{refused} of {len(verdicts)} entries refused.")


def rebuild_index(action: Index) -> None:
    """Rebuild the index."""
    root, database = _folder(action.entries), _database(action.db)
    make_folder(database.parent)
    check_writable(database)  # before hours of replay
    files = _suite_files(action.suite_file)
    with reporter().bar("indexing") as bar:
        found = rebuild(
            root,
            database,
            lambda folder: verify(folder, suites=files, replay=action.bounds),
            fresh=action.fresh,
            on_progress=lambda name, place, count: bar.update(place / count, name),
        )
    for one in found:
        if one.verdict.refusal is not None:
            say(
                f"[red]refused[/] {escape(one.entry_id)}: {escape(one.verdict.refusal.message)}",
                markup=True,
            )
    accepted = sum(one.verdict.accepted for one in found)
    say(f"{accepted} of {len(found)} entries are in {database}")


def show_boards(action: Table) -> None:
    """Show the boards.

    Raises:
        UnknownNameError: No board of that suite.
        DataError: There is no index yet.
    """
    out = None if action.json is None else output_file(action.json)
    found = make_boards(read_index(_database(action.db)))
    if action.suite is not None and action.suite not in {board.suite for board in found}:
        raise UnknownNameError("suite on a board", action.suite, {board.suite for board in found})
    chosen = [
        board
        for board in found
        if action.suite in (None, board.suite) and action.board in (None, board.board)
    ]
    for board in chosen:
        table_console().print(board_table(board))
        if (against_itself := self_table(board)) is not None:
            table_console().print(against_itself)
        if board.missing_references:
            suite = board.suite if board.suite in known_suites() else "FILE"
            say(
                f"missing: {', '.join(board.missing_references)}; make them with `turngym "
                f"leaderboard reference --suite {suite}`"
                + (f", FILE being that of {board.suite}" if suite == "FILE" else "")
            )
    if not chosen:
        say("no entry is on such a board.")
    if out is not None:
        data = [board.model_dump() for board in chosen]
        text = json.dumps(data, indent=2) + "\n"
        write_whole(out, text)


def show_suites(action: Suites) -> None:
    """List or check suites.

    Raises:
        TurngymError: A suite does not match the installed environments.
    """
    if not action.check:
        table_console().print(suites_table([load_suite(name) for name in suite_ids()]))
        return
    drifted = 0
    for name in action.check:
        suite = load_suite(name)
        count = 0
        for drift in find_drifts(suite):
            count += 1
            task = "" if drift.task is None else f" task {drift.task}"
            say(f"{suite.id} {drift.env}{task}: {drift.what}")
        tasks = sum(len(cell.tasks) for cell in suite.cells)
        say(f"{suite.id}: {count} of {tasks} tasks differ")
        drifted += count
    if drifted:
        raise TurngymError(
            f"{drifted} tasks are others than the suites say: an environment changed without a "
            "new version of its id."
        )


def make_key(action: Key) -> None:
    """Make a signing key."""
    path = output_file(action.file)
    public = new_key(path)
    say(f"private key: {path} (readable by you alone)")
    say(f"public key: {public}")


def write_site(action: Build) -> None:
    """Write the site."""
    from ...leaderboard.site import SiteSettings, build_site
    from ...leaderboard.site.build import still_there

    index = read_index(_database(action.db))
    settings = SiteSettings(
        entries=_folder(action.entries),
        suites=known_suites([_path(word) for word in action.suite_file]),
        out=make_folder(_path(action.out)),
        transcripts=not action.no_transcripts,
    )
    there = {one.entry_id for one in index}
    if gone := sorted(there - {one.entry_id for one in still_there(index, settings.entries)}):
        say(f"in the index, but deleted since, so not on the site: {', '.join(gone)}")
    if left := [name for name, _ in entry_folders(settings.entries) if name not in there]:
        say(
            f"not in the index, so not on the site: {', '.join(left)}; replay them with "
            "`turngym leaderboard index`"
        )
    with reporter().bar("writing") as bar:
        count = build_site(
            index, settings, lambda what, place, parts: bar.update(place / parts, what)
        )
    say(f"wrote {count} files; open {settings.out / 'index.html'}")


def _show_verdict(entry: Path, verdict: Verdict) -> None:
    if verdict.scores is not None and verdict.manifest is not None:
        say(
            f"[green]accepted[/] {escape(str(entry))}: {verdict.replayed} episodes replayed in "
            f"{verdict.seconds:.1f} s",
            markup=True,
        )
        table_console().print(scores_table(verdict.manifest.name, verdict.scores))
        return
    assert verdict.refusal is not None
    refusal = verdict.refusal
    say(
        f"[red]refused[/] {escape(str(entry))} ({refusal.reason}): {escape(refusal.message)}",
        markup=True,
    )
    for label, value in (("expected", refusal.expected), ("got", refusal.got)):
        if value:
            say(f"  {label}: {value}")


def _suite_files(words: Sequence[str]) -> list[Path]:
    paths = [_path(word) for word in words]
    for path in paths:
        load_suite(path)
    return paths


def _path(word: str) -> Path:
    return Path(word).expanduser()


def _entry(word: str) -> Path:
    """Return the path of an entry.

    Raises:
        DataError: It is a file of an entry.
    """
    path = _path(word)
    if path.is_file():
        for folder in list(path.absolute().parents)[:3]:
            if (folder / MANIFEST).is_file() and (folder / EPISODES).is_dir():
                own = path.absolute().relative_to(folder)
                raise DataError(
                    f"{word}: is the file {own} of an entry; expected the entry, a folder or an "
                    f"archive. Name its folder: {path.parents[len(own.parts) - 1]}"
                )
    return path


def _folder(word: str | None) -> Path:
    return _path(word) if word else entries_folder()


def _database(word: str | None) -> Path:
    return _path(word) if word else index_path()


_RUNNERS: dict[type, Callable[[Any], None]] = {
    Verify: check_entries,
    references.Command: references.run,
    rerun.Command: rerun.run,
    Index: rebuild_index,
    Table: show_boards,
    Suites: show_suites,
    freeze.Command: freeze.run,
    Key: make_key,
    Build: write_site,
    **leaderboard_server.RUNNERS,
}


def run(command: Command) -> None:
    """Run the subcommand that the options belong to."""
    _RUNNERS[type(command)](command)
