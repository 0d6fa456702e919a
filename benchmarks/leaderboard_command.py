"""`turngym leaderboard`: verify, reference, index, table, suites, key; the others are handed on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ..algos.progress import Bar, reporter
from ..envs.errors import DataError, TurngymError, UnknownNameError
from ..leaderboard.entries_io.files import write_entry
from ..leaderboard.entries_io.signing import new_key
from ..leaderboard.ranking.board import REFERENCES, boards
from ..leaderboard.ranking.index import entries_folder, index_path, read_index, rebuild
from ..leaderboard.schema.limits import ReplayLimits
from ..leaderboard.schema.result import Verdict
from ..leaderboard.suites import load_suite, suite_ids
from ..leaderboard.suites.digests import drifts
from ..leaderboard.verification.sandbox import verify, verify_queue
from .leaderboard_options import (
    BoardIndex,
    BoardKey,
    BoardReference,
    BoardSuites,
    BoardTable,
    BoardVerify,
    BoundOptions,
    LeaderboardCommand,
)
from .leaderboard_site_command import run_site
from .leaderboard_tables import board_table, scores_table, suites_table
from .suite_play import reference_manifest, scripted_episodes


def run(command: LeaderboardCommand) -> None:
    """Do what was asked for."""
    action = command.action
    if isinstance(action, BoardVerify):
        check(action)
    elif isinstance(action, BoardReference):
        reference(action)
    elif isinstance(action, BoardIndex):
        index(action)
    elif isinstance(action, BoardTable):
        table(action)
    elif isinstance(action, BoardSuites):
        suites(action)
    elif isinstance(action, BoardKey):
        key(action)
    else:
        run_site(action)


def check(action: BoardVerify) -> None:
    """Verify entries one after the other.

    Raises:
        DataError: An entry or a file is missing.
        TurngymError: An entry was refused.
    """
    console = Console()
    files = _suite_files(action.suite_file)
    entries = [Path(word).expanduser() for word in action.entries]
    if not entries:
        raise DataError("name an entry: a folder, or a zip or tar archive of one.")
    verdicts: list[Verdict] = []
    missing: list[DataError] = []
    with reporter().bar("replaying") as bar:
        queue = verify_queue(
            entries,
            suites=files,
            replay=_limits(action.bounds),
            tell=lambda done, total: bar.update(done / total, f"{done} of {total}"),
        )
        for entry, outcome in queue:
            if isinstance(outcome, DataError):
                missing.append(outcome)
            else:
                verdicts.append(outcome)
                _show(console, entry, outcome)
    if action.json is not None:
        lines = "".join(verdict.model_dump_json() + "\n" for verdict in verdicts)
        Path(action.json).expanduser().write_text(lines, encoding="utf-8")
    if missing:
        raise missing[0]
    if refused := sum(not verdict.accepted for verdict in verdicts):
        raise TurngymError(f"{refused} of {len(verdicts)} entries refused.")


def reference(action: BoardReference) -> None:
    """Make the reference rows.

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
    report = reporter()
    for name, folder in zip(chosen, folders, strict=True):
        manifest = reference_manifest(name, suite)
        with report.bar(f"{name} on {suite.id}") as bar:
            episodes = list(scripted_episodes(name, suite, 0, bar))
        if folder.exists():
            shutil.rmtree(folder)
        write_entry(folder, manifest, episodes)
        Console().print(f"wrote {folder}", highlight=False)


def index(action: BoardIndex) -> None:
    """Rebuild the index."""
    root = Path(action.entries).expanduser() if action.entries else entries_folder()
    database = Path(action.db).expanduser() if action.db else index_path()
    files = _suite_files(action.suite_file)
    limits = _limits(action.bounds)
    console = Console()
    with reporter().bar("indexing") as bar:
        found = rebuild(
            root,
            database,
            lambda folder: verify(folder, suites=files, replay=limits),
            fresh=action.fresh,
            tell=lambda name, place, count: _tell(bar, name, place, count),
        )
    for one in found:
        if one.verdict.refusal is not None:
            console.print(
                f"[red]refused[/] {one.entry_id}: {escape(one.verdict.refusal.message)}",
                highlight=False,
            )
    taken = sum(one.verdict.accepted for one in found)
    console.print(f"{taken} of {len(found)} entries are in {database}", highlight=False)


def table(action: BoardTable) -> None:
    """Show the boards.

    Raises:
        UnknownNameError: No board of that suite.
        DataError: There is no index yet.
    """
    found = boards(read_index(Path(action.db).expanduser() if action.db else index_path()))
    if action.suite is not None and action.suite not in {board.suite for board in found}:
        raise UnknownNameError("suite on a board", action.suite, {board.suite for board in found})
    chosen = [
        board
        for board in found
        if action.suite in (None, board.suite) and action.board in (None, board.board)
    ]
    console = Console()
    for board in chosen:
        console.print(board_table(board))
        if board.missing_references:
            console.print(
                f"missing: {', '.join(board.missing_references)}; make them with `turngym "
                f"leaderboard reference --suite {board.suite}`",
                highlight=False,
            )
    if not chosen:
        console.print("no entry is on such a board.")
    if action.json is not None:
        data = [board.model_dump() for board in chosen]
        text = json.dumps(data, indent=2) + "\n"
        Path(action.json).expanduser().write_text(text, encoding="utf-8")


def suites(action: BoardSuites) -> None:
    """List or check suites.

    Raises:
        TurngymError: A suite is no longer that of the installed worlds.
    """
    console = Console()
    if not action.check:
        console.print(suites_table([load_suite(name) for name in suite_ids()]))
        return
    drifted = 0
    for name in action.check:
        suite = load_suite(name)
        count = 0
        for drift in drifts(suite):
            count += 1
            task = "" if drift.task is None else f" task {drift.task}"
            console.print(f"{suite.id} {drift.env}{task}: {escape(drift.what)}", highlight=False)
        tasks = sum(len(cell.tasks) for cell in suite.cells)
        console.print(f"{suite.id}: {count} of {tasks} tasks differ", highlight=False)
        drifted += count
    if drifted:
        raise TurngymError(
            f"{drifted} tasks are others than the suites say: a world changed without a new "
            "version of its id."
        )


def key(action: BoardKey) -> None:
    """Make a signing key."""
    path = Path(action.file).expanduser()
    public = new_key(path)
    console = Console()
    console.print(f"private key: {path} (readable by you alone)", highlight=False)
    console.print(f"public key: {public}", highlight=False, soft_wrap=True)


def _show(console: Console, entry: Path, verdict: Verdict) -> None:
    if verdict.scores is not None and verdict.manifest is not None:
        console.print(
            f"[green]accepted[/] {escape(str(entry))}: {verdict.replayed} episodes replayed in "
            f"{verdict.seconds:.1f} s",
            highlight=False,
        )
        console.print(scores_table(verdict.manifest.name, verdict.scores))
        return
    assert verdict.refusal is not None
    refusal = verdict.refusal
    console.print(
        f"[red]refused[/] {escape(str(entry))} ({refusal.reason}): {escape(refusal.message)}",
        highlight=False,
        soft_wrap=True,
    )
    for label, value in (("expected", refusal.expected), ("got", refusal.got)):
        if value:
            console.print(f"  {label}: {escape(value)}", highlight=False, soft_wrap=True)


def _tell(bar: Bar, name: str, place: int, count: int) -> None:
    bar.update(place / count, name)


def _limits(bounds: BoundOptions) -> ReplayLimits:
    return ReplayLimits(cpu_s=bounds.cpu_s, wall_s=bounds.wall_s, memory_mib=bounds.memory_mib)


def _suite_files(words: Sequence[str]) -> list[Path]:
    paths = [Path(word).expanduser() for word in words]
    for path in paths:
        load_suite(path)
    return paths
